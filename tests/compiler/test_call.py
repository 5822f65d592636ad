"""A call as the user makes it: the program that is compiled is the one that JAX runs for it."""

from __future__ import annotations

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.compiler import Request, build
from shardnb.compiler.call import read_call
from shardnb.findings import report_of_program
from shardnb.mesh import make_grid

GRID = make_grid("data=8")
ROWS = NamedSharding(GRID.mesh, P("data"))
COLUMNS = NamedSharding(GRID.mesh, P(None, "data"))
W = jax.ShapeDtypeStruct((1024, 1024), jnp.float32)
X = jax.ShapeDtypeStruct((4096, 1024), jnp.float32)


def step(w, x):
    return w - 0.1 * jax.grad(lambda w: jnp.mean((x @ w) ** 2))(w)


def explained(fn, *args, **options):
    return sn.explain(fn, *args, mesh=GRID, **options)


def held(report):
    memory = report.memory
    return memory.arguments, memory.outputs, memory.aliased


def by_jax(lowered):
    """What one device holds, as JAX says of its own compile."""
    stats = lowered.compile().memory_analysis()
    return (
        stats.argument_size_in_bytes,
        stats.output_size_in_bytes,
        stats.alias_size_in_bytes,
    )


# What a function was jitted with


def test_shardings_and_donation_are_the_functions_own():
    """An eighth of w and x is 2.5 MiB, and the 512 KiB of w are reused for the result."""
    jitted = jax.jit(step, in_shardings=(ROWS, ROWS), out_shardings=ROWS, donate_argnums=0)
    report = explained(jitted, W, X)
    assert [value.spec for value in report.inputs] == [(("data",), ())] * 2
    assert [value.spec for value in report.outputs] == [(("data",), ())]
    assert held(report) == (5 << 19, 1 << 19, 1 << 19) == by_jax(jitted.lower(W, X))
    assert not [finding for finding in report.findings if finding.kind == "replicated"]


def test_the_mesh_is_that_of_its_shardings():
    jitted = jax.jit(step, in_shardings=(ROWS, ROWS))
    assert sn.explain(jitted, W, X).mesh.shape == {"data": 8}


def test_a_prefix_of_shardings_serves_the_arrays_below_it():
    jitted = jax.jit(lambda tree, x: (tree["a"] + x, tree["b"]), in_shardings=(ROWS, None))
    inputs = explained(jitted, {"a": X, "b": W}, X).inputs
    assert [bool(value.spec[0]) for value in inputs] == [True, True, False]


def test_static_arguments_are_skipped_by_its_shardings():
    @functools.partial(jax.jit, static_argnums=0, static_argnames="power", in_shardings=(ROWS,))
    def scaled(factor, x, power=1):
        assert (factor, power) == (3, 1)
        return x * factor

    (x,) = explained(scaled, 3, X).inputs
    assert (x.name, x.spec) == ("x", (("data",), ()))


def test_static_arguments_by_keyword():
    @functools.partial(jax.jit, static_argnames="count")
    def repeated(x, *, count):
        assert type(count) is int
        return x * count

    assert [value.name for value in explained(repeated, X, count=2).inputs] == ["x"]


def test_donation_by_name():
    jitted = jax.jit(lambda old, x: old + x, donate_argnames="old")
    assert held(explained(jitted, X, X)) == by_jax(jax.jit(jitted, donate_argnums=0).lower(X, X))
    assert explained(jitted, X, X).memory.aliased == 4096 * 1024 * 4


def test_unused_arguments_are_kept_where_it_keeps_them():
    jitted = jax.jit(lambda x, unused: x * 2, keep_unused=True)
    assert [value.details for value in explained(jitted, X, W).inputs] == ["", ""]
    plain = jax.jit(lambda x, unused: x * 2)
    assert explained(plain, X, W).inputs[1].details == "not used by the program"


def test_compiler_options_are_the_functions_own():
    """The CPU compiler fuses a multiply with an add unless fusion is off."""
    options = {"xla_disable_hlo_passes": "fusion,cpu-instruction-fusion,fusion-wrapper"}
    text = {
        name: explained(jax.jit(lambda x: jnp.tanh(x * 2) + 1, **given), X).texts["optimized"]
        for name, given in {"with": {"compiler_options": options}, "without": {}}.items()
    }
    assert "calls=%fused" in text["without"] or "fusion" in text["without"]
    assert "tanh_add_fusion" not in text["with"]
    assert text["with"].count("fusion(") != text["without"].count("fusion(")


def test_explicit_options_beside_a_functions_own():
    jitted = jax.jit(lambda x: x * 2, in_shardings=(ROWS,))
    report = explained(jitted, X, donate_argnums=0, out_specs=P(None, "data"))
    assert report.memory.aliased == 4096 * 1024 * 4 // 8
    assert report.outputs[0].spec == ((), ("data",))


@pytest.mark.parametrize(
    ("options", "given", "message"),
    [
        ({"in_shardings": (ROWS, None)}, {"in_specs": P()}, "in_specs has w too"),
        ({"out_shardings": ROWS}, {"out_specs": P()}, "jitted with out_shardings, but out_specs"),
        (
            {"donate_argnums": 0},
            {"donate_argnums": 1},
            "already jitted with donate_argnums: leave donate_argnums out, or pass the function without",
        ),
        (
            {"donate_argnames": "w"},
            {"donate_argnums": 1},
            "already jitted with donate_argnums: leave donate_argnums out, or pass the function without",
        ),
        ({"in_shardings": (ROWS,)}, {}, "in_shardings for 1 arguments, but is called with 2: w, x"),
    ],
)
def test_a_contradiction_is_an_error_that_names_it(options, given, message):
    with pytest.raises(ValueError, match=message):
        explained(jax.jit(step, **options), W, X, **given)


@pytest.mark.filterwarnings("ignore:backend and device:DeprecationWarning")
def test_a_backend_is_an_error_that_names_it():
    with pytest.raises(ValueError, match="jitted with backend, which is not read"):
        explained(jax.jit(step, backend="cpu"), W, X)


def test_in_specs_add_to_shardings_that_leave_an_argument_open():
    jitted = jax.jit(step, in_shardings=(None, ROWS))
    report = explained(jitted, W, X, in_specs={"w": P(None, "data")})
    assert [value.spec for value in report.inputs] == [((), ("data",)), (("data",), ())]


def test_an_array_that_jax_refuses_is_refused():
    x = jax.device_put(np.ones((8, 8), np.float32), NamedSharding(GRID.mesh, P(None, "data")))
    jitted = jax.jit(lambda x: x * 2, in_shardings=ROWS)
    with pytest.raises(ValueError, match="does not match the sharding"):
        jitted(x)
    with pytest.raises(ValueError, match=r"x has the sharding .*: jax.jit refuses it"):
        explained(jitted, x)


def test_an_array_that_is_donated_and_given_again_is_refused():
    x = jnp.ones((8, 8))
    with pytest.raises(ValueError, match="x and y are the same array, and it is donated"):
        explained(jax.jit(lambda x, y: x + y, donate_argnums=0), x, x)
    assert explained(jax.jit(lambda x, y: x + y), x, x).inputs


def test_keywords_with_in_shardings_are_refused_as_by_jax():
    jitted = jax.jit(lambda x, y: x + y, in_shardings=ROWS)
    with pytest.raises(ValueError, match="kwargs"):
        jitted.lower(X, y=X)
    with pytest.raises(ValueError, match="no arguments by keyword: y"):
        explained(jitted, X, y=X)


@pytest.mark.parametrize("name", ["in_shardings", "out_shardings", "backend"])
def test_options_that_have_another_name_here(name):
    with pytest.raises(TypeError, match=f"the jax.jit option {name} is not accepted here"):
        explained(step, W, X, **{name: P()})


# What is called


def test_arguments_by_keyword():
    def applied(x, *, train=False, bias=None):
        assert train is True
        return x * 2 + bias

    report = explained(applied, X, train=True, bias=X, in_specs={"bias": P("data")})
    assert [(value.name, value.spec) for value in report.inputs] == [
        ("x", ((), ())),
        ("bias", (("data",), ())),
    ]


def test_specs_for_positional_arguments_only():
    report = explained(lambda x, y: x + y, X, y=X, in_specs=(P("data"),))
    assert [value.spec for value in report.inputs] == [(("data",), ()), ((), ())]


class Model:
    """An object with methods; a leaf for JAX."""

    def __init__(self):
        self.factor = 2

    @functools.partial(jax.jit, static_argnums=0, donate_argnums=1)
    def jitted(self, x):
        return x * self.factor

    def plain(self, x):
        return x * self.factor

    def __call__(self, x):
        return x * self.factor


@pytest.mark.parametrize(
    ("fn", "aliased"),
    [
        (Model().jitted, True),
        (Model().plain, False),
        (Model(), False),
        (functools.partial(Model.plain, Model()), False),
        (functools.partial(Model.jitted, Model()), True),
        (functools.partial(jax.jit(lambda scale, x: scale * x, donate_argnums=1), 2.0), True),
        (jax.tree_util.Partial(lambda scale, x: scale * x, 2.0), False),
    ],
)
def test_methods_partials_and_callable_objects(fn, aliased):
    report = explained(fn, X, in_specs=(P("data"),))
    (x,) = (value for value in report.inputs if value.name == "x")
    assert x.spec == (("data",), ())
    assert (report.memory.aliased > 0) == aliased
    assert report.sources[0].name in ("jitted", "plain", "__call__", "<lambda>")
    assert " x" in report.sources[0].text


def test_what_a_partial_binds_is_an_argument_of_a_jitted_function():
    jitted = jax.jit(lambda w, x: x @ w, in_shardings=(ROWS, None))
    report = explained(functools.partial(jitted, np.ones((1024, 1024), np.float32)), X)
    assert [(value.name, value.spec) for value in report.inputs] == [
        ("w", (("data",), ())),
        ("x", ((), ())),
    ]


# Functions that libraries jit


def test_a_step_of_nnx_keeps_the_state_that_it_returns():
    """Of 8 arrays of the model and its optimizer all are donated, and updated in place."""
    nnx = pytest.importorskip("flax.nnx")
    optax = pytest.importorskip("optax")
    model = nnx.Linear(64, 64, rngs=nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param)

    @nnx.jit(donate_argnums=(0, 1))
    def train(model, optimizer, x):
        loss, grads = nnx.value_and_grad(lambda model: jnp.mean(model(x) ** 2))(model)
        optimizer.update(model, grads)
        return loss

    x = jnp.ones((16, 64))
    report = explained(train, model, optimizer, x, in_specs={"x": P("data")})
    alone = by_jax(train.lower(model, optimizer, x).lowered)
    # x is an eighth of what one device alone holds.
    assert held(report) == (alone[0] - 16 * 64 * 4 * 7 // 8, *alone[1:])
    assert report.memory.aliased == 3 * (64 * 64 + 64) * 4 + 8
    assert len(report.outputs) == 9
    # The gradients of the kernel and of the bias, and the loss, are sums over the batch.
    assert {c.kind for c in report.collectives} == {"all-reduce"}


def test_shardings_of_nnx_jit():
    nnx = pytest.importorskip("flax.nnx")
    jitted = nnx.jit(step, in_shardings=(ROWS, ROWS), out_shardings=ROWS, donate_argnums=0)
    assert held(explained(jitted, W, X)) == (5 << 19, 1 << 19, 1 << 19)
    with pytest.raises(ValueError, match="in_specs has w too"):
        explained(jitted, W, X, in_specs=(P("data"), None))


def test_donation_of_filter_jit():
    eqx = pytest.importorskip("equinox")
    model = eqx.nn.Linear(64, 64, key=jax.random.key(0))

    @eqx.filter_jit(donate="all-except-first")
    def applied(x, model, factor):
        assert type(factor) is int
        return jax.tree.map(lambda w: w * factor if eqx.is_array(w) else w, model), x.sum()

    x = jnp.ones((16, 64))
    report = explained(applied, x, model, 3, in_specs=(P("data"), None, None))
    names = [value.name for value in report.inputs]
    assert names == ["x", "model.weight", "model.bias"]
    assert report.memory.aliased == (64 * 64 + 64) * 4


def test_nnx_jit_traces_a_number_and_filter_jit_does_not():
    nnx, eqx = pytest.importorskip("flax.nnx"), pytest.importorskip("equinox")

    def scaled(factor, x):
        return x * factor

    by_nnx = explained(nnx.jit(scaled), 0.5, X, in_specs=(None, P("data")))
    assert [(value.name, value.shape) for value in by_nnx.inputs] == [
        ("factor", ()),
        ("x", X.shape),
    ]
    by_eqx = explained(eqx.filter_jit(scaled), 0.5, X, in_specs=(None, P("data")))
    assert [value.name for value in by_eqx.inputs] == ["x"]


def test_filter_jit_may_return_a_module_with_what_is_not_an_array():
    eqx = pytest.importorskip("equinox")
    model = eqx.nn.MLP(8, 4, 16, 1, key=jax.random.key(0))

    @eqx.filter_jit
    def halved(model):
        return jax.tree.map(lambda w: w / 2 if eqx.is_array(w) else w, model), "halved"

    report = explained(halved, model)
    # filter_jit's own program returns one number more.
    assert [value.shape for value in report.outputs] == [(16, 8), (16,), (4, 16), (4,), ()]


# Pytrees


def test_none_is_an_empty_subtree():
    tree = {"kernel": X, "bias": None, "layers": [None, W]}
    report = explained(lambda d, x: d["kernel"] * x, tree, X, in_specs=(P("data"), P("data")))
    assert [value.name for value in report.inputs] == ["d['kernel']", "d['layers'][1]", "x"]


@jax.tree_util.register_pytree_with_keys_class
class Sized:
    """A pytree whose metadata depends on its leaves, and that takes nothing but arrays."""

    def __init__(self, array):
        self.array, self.shape = array, array.shape

    def tree_flatten_with_keys(self):
        return [(jax.tree_util.GetAttrKey("array"), self.array)], self.array.shape

    @classmethod
    def tree_unflatten(cls, shape, children):
        (array,) = children
        if hasattr(array, "shape"):
            assert array.shape == shape
        return cls(array)


def test_a_pytree_that_reads_its_leaves():
    report = explained(lambda d: d["s"].array * 2, {"s": Sized(X), "mode": "x"}, in_specs=P("data"))
    assert [(v.name, v.spec) for v in report.inputs] == [("d['s'].array", (("data",), ()))]


@pytest.mark.parametrize(("kind", "size"), [("threefry2x32", 8), ("rbg", 16), ("unsafe_rbg", 16)])
def test_keys_of_each_type(kind, size):
    key = jax.random.key(0, impl=kind)
    report = explained(lambda key: jax.random.normal(key, (8,)), key)
    assert report.inputs[0].bytes == size


def test_keys_of_a_type_of_the_users_own():
    impl = jax.extend.random.define_prng_impl(
        key_shape=(3,),
        seed=lambda seed: jnp.zeros((3,), jnp.uint32),
        split=lambda key, shape: jnp.zeros((*shape, 3), jnp.uint32),
        random_bits=lambda key, width, shape: jnp.zeros(shape, jnp.uint32),
        fold_in=lambda key, data: key,
        name="three_words",
        tag="three",
    )
    key = jax.random.key(0, impl=impl)
    report = explained(jax.random.key_data, key)
    assert report.inputs[0].bytes == 12


def test_plans_and_checks_take_a_jitted_function():
    x = np.ones((16, 16), np.float32)
    jitted = jax.jit(lambda x: x @ x, in_shardings=ROWS, donate_argnums=0)
    assert sn.numeric_check(jitted, x, mesh=GRID).ok
    plans = sn.plan(jitted, x, mesh=GRID, previews=5, compiles=2)
    assert {str(spec) for plan in plans.plans for spec in plan.specs.values()} == {
        "(('data',), ())"
    }


def test_a_program_of_a_jitted_function_runs():
    jitted = jax.jit(lambda x, y: x + y, in_shardings=(ROWS, None))
    program = build(read_call(jitted, (np.ones((8, 8), np.float32), 2.0)).request(GRID))
    np.testing.assert_array_equal(program.run(), np.full((8, 8), 3))


# Jitted functions that a cell calls


def cell(fn, **arguments):
    return build(Request(fn, arguments, GRID, in_jit=False))


def test_arrays_of_a_cell_lie_as_the_jitted_function_says_that_takes_them():
    jitted = jax.jit(step, in_shardings=(ROWS, ROWS), out_shardings=ROWS, donate_argnums=0)
    program = cell(lambda w, x: {"new": jitted(w, x)}, w=W, x=X)
    assert held(report_of_program(program)) == (5 << 19, 1 << 19, 1 << 19)


def test_an_array_that_a_cell_uses_besides_stays_as_it_is():
    jitted = jax.jit(lambda x: x * 2, in_shardings=ROWS, donate_argnums=0)
    report = report_of_program(cell(lambda x: (jitted(x), x.sum()), x=X))
    assert report.inputs[0].spec == ((), ())
    assert report.memory.aliased == 0


def test_the_python_of_a_cell_runs_once():
    calls = []

    @functools.partial(jax.jit, in_shardings=ROWS)
    def doubled(x):
        calls.append(x)
        return x * 2

    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    program = cell(lambda x: doubled(x) + 1, x=x)
    np.testing.assert_array_equal(program.run(), 2 * x + 1)
    assert len(calls) == 1
    assert program.shardings["x"].spec == P("data")


def test_functions_that_say_different_shardings_decide_nothing():

    first = jax.jit(lambda x: x * 2, in_shardings=ROWS)
    second = jax.jit(lambda x: x + 2, in_shardings=COLUMNS)
    program = cell(lambda x: (first(x), second(x)), x=X)
    assert program.shardings["x"].spec == P()


# Arrays that a function closes over


def kept_by_jax(fn, *args):
    """How many bytes of constants JAX's own program has on one device, and what it is given."""
    lowered = jax.jit(fn).lower(*args)
    text = lowered.compile().as_text()
    sizes = [4 * int(rows) * int(columns) for rows, columns in CONSTANT.findall(text)]
    return sum(sizes), by_jax(lowered)[0]


CONSTANT = re.compile(r"= f32\[(\d+),(\d+)\]\{1,0\} constant\(")


@pytest.mark.parametrize("spec", [None, P("data"), P()])
def test_what_jax_makes_a_constant_is_whole_on_each_device(spec):
    """JAX makes a constant of it whatever its sharding: 2 MiB on each of 8 devices."""
    w = jnp.asarray(np.random.default_rng(0).normal(size=(512, 1024)), jnp.float32)
    if spec is not None:
        w = jax.device_put(np.asarray(w), NamedSharding(GRID.mesh, spec))
    x = jax.ShapeDtypeStruct((64, 512), jnp.float32, sharding=ROWS)
    assert kept_by_jax(lambda x: x @ w, x) == (2 << 20, 8 * 512 * 4)
    report = explained(lambda x: x @ w, x, out_specs=P("data"))
    (closed,) = (value for value in report.inputs if value.closed_over)
    assert (closed.name, closed.spec, closed.shard_bytes) == ("w", ((), ()), 2 << 20)
    assert report.memory.constants == 2 << 20
    assert report.memory.arguments == (2 << 20) + 8 * 512 * 4
    (finding,) = (finding for finding in report.findings if finding.kind == "replicated")
    assert finding.wasted_bytes == (2 << 20) - (256 << 10)  # per device, sharded over all 8
    assert "pass it as an argument, with a spec" in finding.message
    assert "2.0 MiB closed over" in str(report)


def test_constants_of_functions_inside_are_whole_too():
    w = jnp.asarray(np.random.default_rng(0).normal(size=(512, 1024)), jnp.float32)
    inner = jax.jit(lambda x: x @ w)

    def outer(x):
        return jax.lax.fori_loop(0, 3, lambda _, y: inner(y) @ w.T, x)

    x = jax.ShapeDtypeStruct((64, 512), jnp.float32)
    report = explained(outer, x, in_specs=P(None, "data"))
    assert [(v.name, v.spec) for v in report.inputs if v.closed_over] == [("w", ((), ()))]
    plain = jax.jit(outer).lower(jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=COLUMNS))
    theirs = sn.explain(plain).collectives
    ours = report.collectives
    assert [(c.kind, c.axes, c.shape, c.trips) for c in ours] == [
        (c.kind, c.axes, c.shape, c.trips) for c in theirs
    ]


def test_arrays_that_a_cell_closes_over_lie_as_they_do():
    """Line by line there is no jax.jit, and nothing becomes a constant."""
    w = jax.device_put(np.ones((512, 1024), np.float32), ROWS)
    report = report_of_program(cell(lambda x: x @ w, x=jax.ShapeDtypeStruct((64, 512), "f4")))
    (closed,) = (value for value in report.inputs if value.closed_over)
    assert closed.spec == (("data",), ())
    assert report.memory.constants == 0


def test_a_jitted_function_that_a_cell_calls_keeps_its_constants():
    """The call makes constants of what the function closes over; its arguments keep their shardings."""
    w, v = (jax.device_put(np.ones((512, 1024), np.float32), ROWS) for _ in range(2))
    layer = jax.jit(lambda x: x @ w)
    scaled = jax.jit(lambda x, v: x @ v.T)
    x = jax.ShapeDtypeStruct((64, 512), "f4")
    report = report_of_program(cell(lambda x: scaled(layer(x), v), x=x))
    closed = sorted((v.spec, v.shard_bytes) for v in report.inputs if v.closed_over)
    assert closed == [(((), ()), 2 << 20), ((("data",), ()), (2 << 20) // 8)]
    assert report.memory.constants == 2 << 20
    (finding,) = (finding for finding in report.findings if finding.kind == "replicated")
    assert "jax.jit makes a constant" in finding.message


def test_a_loop_that_a_cell_runs_takes_what_its_body_closes_over_as_it_lies():
    w = jax.device_put(np.ones((512, 512), np.float32), ROWS)
    layer = jax.jit(lambda x: x @ w)
    x = jax.ShapeDtypeStruct((64, 512), "f4")
    report = report_of_program(
        cell(lambda x: jax.lax.fori_loop(0, 3, lambda _, y: layer(y), x), x=x)
    )
    (closed,) = (value for value in report.inputs if value.closed_over)
    assert closed.spec == (("data",), ())
