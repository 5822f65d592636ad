"""The shard_map checker against JAX itself, and against what is known of single bodies."""

import inspect

import jax
import jax.numpy as jnp
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jax import lax
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.axis_types import checked
from shardnb.manual.checker import ShardMapCall
from shardnb.mesh import make_grid
from shardnb.propagation.typed_view import typed_program
from shardnb.terms.primitives import FUNCTIONS

X = jax.ShapeDtypeStruct((8, 16), jnp.float32)
W = jax.ShapeDtypeStruct((16, 8), jnp.float32)


def f32(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def check(fn, args, in_specs, out_specs, mesh="data=4,model=2", *, compiled=False, **options):
    call = ShardMapCall(fn, tuple(args), make_grid(mesh), in_specs, out_specs, **options)
    return checked(call.of_shapes(), compiled=compiled)


BODIES = {
    "product": lambda x, w: x @ w,
    "summed product": lambda x, w: lax.psum(x @ w, "model"),
    "averaged": lambda x, w: lax.pmean(x, "data") * w.sum(),
    "scalar": lambda x, w: x.sum() + w.sum(),
    "summed scalar": lambda x, w: lax.psum(x.sum() + w.sum(), ("data", "model")),
    "largest": lambda x, w: lax.pmax(x, "data"),
    "gathered": lambda x, w: lax.all_gather(x, "model", axis=1, tiled=True),
    "gathered, the same": lambda x, w: lax.all_gather(x, "data", tiled=True, to="invarying"),
    "scattered": lambda x, w: lax.psum_scatter(x @ w, "model", scatter_dimension=1, tiled=True),
    "shifted": lambda x, w: lax.ppermute(x, "data", [(0, 1), (1, 0)]),
    "indexed": lambda x, w: x + lax.axis_index("data"),
    "two results": lambda x, w: (x, w),
    "loop": lambda x, w: lax.scan(lambda c, _: (c * 2, None), x, None, length=2)[0],
    "loop that starts unvarying": lambda x, w: lax.scan(
        lambda c, _: (c + x.sum(), None), 0.0, None, length=2
    )[0],
    "constant": lambda x, w: jnp.ones((2, 2)),
    "over an axis that is not there": lambda x, w: lax.psum(x, "rows"),
}
MESHES = ("data=4,model=2", "data=2,model=2", "data=8,model=1", "data=3,model=2")
ENTRIES = st.sampled_from([None, None, "data", "model", ("data", "model"), "rows"])
SPECS = st.lists(ENTRIES, max_size=3).map(lambda entries: P(*entries))


def verdict_of_jax(fn, args, mesh, in_specs, out_specs):
    mapped = jax.shard_map(fn, mesh=mesh, in_specs=in_specs, out_specs=out_specs)
    try:
        jax.jit(mapped).trace(*args).lower()
    except Exception as error:  # noqa: BLE001 - the verdict, whatever it is
        return type(error).__name__
    return ""


@settings(
    max_examples=200,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(
    mesh=st.sampled_from(MESHES),
    body=st.sampled_from(sorted(BODIES)),
    in_specs=st.tuples(SPECS, SPECS),
    out_specs=st.one_of(SPECS, st.tuples(SPECS, SPECS)),
)
def test_the_verdict_is_that_of_jax(mesh, body, in_specs, out_specs):
    fn, grid = BODIES[body], make_grid(mesh)
    found = check(fn, (X, W), in_specs, out_specs, mesh)
    assert found.error == verdict_of_jax(fn, (X, W), grid.mesh, in_specs, out_specs)
    # The single checks say the same as the whole: one fails exactly where JAX refuses.
    failed = [step.name for step in found.steps if step.passed is False]
    assert bool(failed) == (not found.accepted), found


def test_a_sum_that_is_missing_is_named_with_its_line_and_axis():
    def body(a, b):
        c = a @ b
        return jnp.tanh(c)

    found = check(body, (X, W), (P("data", "model"), P("model", None)), P("data", None))
    (missing,) = found.missing
    assert (missing.collective, missing.axes) == ("psum", ("model",))
    assert missing.fix == "jax.lax.psum(a @ b, 'model')"
    assert missing.location.line == body.__code__.co_firstlineno + 1


@pytest.mark.parametrize(
    ("reduce", "collective"), [(jnp.sum, "psum"), (jnp.max, "pmax"), (jnp.min, "pmin")]
)
def test_the_collective_fits_the_reduction(reduce, collective):
    (missing,) = check(lambda x: reduce(x, 0), (X,), P("data"), P()).missing
    assert missing.collective == collective


# The index of the largest element of a block, or a block sorted by itself, is not part of the
# answer for the whole array that a sum, mean or maximum over the devices could make one of.
@pytest.mark.parametrize(
    ("body", "primitive", "dim"),
    [
        (lambda x: jnp.argmax(x, 0), "argmax", 0),
        (lambda x: jnp.argmin(x.T, 1), "argmin", 1),
        (lambda x: jnp.prod(x, 0), "reduce_prod", 0),
        (lambda x: lax.sort(x, dimension=0), "sort", 0),
        (lambda x: lax.cumsum(x, 0), "cumsum", 0),
        (lambda x: lax.rev(x, (0,)), "rev", 0),
        (lambda x: lax.top_k(x.T, 1)[0], "top_k", 1),
        (lambda x: jnp.fft.fft(x, axis=0), "fft", None),
        (lambda x: jnp.argmax(x, 0) + 1, "argmax", 0),
    ],
)
def test_what_was_done_on_blocks_alone_is_to_be_gathered_before(body, primitive, dim):
    (missing,) = check(body, (X,), P("data"), P()).missing
    assert missing.collective is None
    assert missing.why.startswith(f"{primitive} sees only each device's own block along 'data'")
    gather = f"jax.lax.all_gather(..., 'data', axis={dim}, tiled=True, to='invarying')"
    assert dim is None or missing.fix.startswith(f"{gather} on the operand of ")
    assert "psum" not in missing.fix


def test_what_works_along_another_dimension_keeps_its_blocks():
    (missing,) = check(lambda x: lax.sort(x, dimension=1), (X,), P("data"), P()).missing
    assert missing.fix == "out_specs P('data')"


@pytest.mark.parametrize(("dtype", "function"), [(jnp.float32, "pmean"), (jnp.int32, "pmax")])
def test_equal_values_whose_type_varies_keep_their_dtype(dtype, function):
    def body(x):
        return lax.pcast(jnp.zeros(3, dtype), "data", to="varying")

    (missing,) = check(body, (X,), P("data"), P()).missing
    assert missing.fix == f"jax.lax.{function}(result, 'data')"
    combine = getattr(lax, function)
    fixed = check(lambda x: combine(body(x), "data"), (X,), P("data"), P())
    assert (fixed.accepted, fixed.outputs[0].dtype) == (
        True,
        {"pmean": "f32", "pmax": "s32"}[function],
    )


def test_what_differs_otherwise_is_not_said_to_be_a_sum():
    (missing,) = check(lambda x: lax.axis_index("data"), (X,), P("data"), P()).missing
    assert missing.collective is None
    assert missing.fix.startswith("a collective over 'data'")


def test_blocks_that_are_claimed_to_be_whole_are_to_be_joined():
    (missing,) = check(lambda x: x.T * 2, (X,), P("data"), P()).missing
    assert missing.collective == "all_gather"
    assert missing.fix == "out_specs P(None, 'data')"


def test_a_gather_whose_type_varies_is_to_say_invarying():
    found = check(lambda x: lax.all_gather(x, "data", tiled=True), (X,), P("data"), P())
    (missing,) = found.missing
    assert missing.fix == "lax.all_gather(x, \"data\", tiled=True, to='invarying')"


def test_a_loop_keeps_what_its_carry_is():
    def body(x):
        return lax.scan(lambda total, row: (total + row.sum(), None), x[0].sum(), x)[0]

    (missing,) = check(body, (X,), P(None, "model"), P()).missing
    assert missing.collective == "psum"


def test_the_shapes_of_one_device_are_divided_by_the_axes():
    found = check(
        lambda a, b: lax.psum(a @ b, "model"),
        (f32(256, 512), f32(512, 1024)),
        (P("data", "model"), P("model", None)),
        P("data", None),
    )
    assert [shard.local_shape for shard in found.inputs] == [(64, 256), (256, 1024)]
    assert [(shard.shape, shard.local_shape) for shard in found.outputs] == [
        ((256, 1024), (64, 1024))
    ]


def test_the_varying_set_stands_after_every_line():
    found = check(
        lambda a, b: lax.psum(a @ b, "model"),
        (f32(256, 512), f32(512, 1024)),
        (P("data", "model"), P("model", None)),
        P("data", None),
    )
    types = [(line.primitive, line.binds[-1].type) for line in found.lines]
    # As the jaxpr in the first seed prints them.
    assert types == [
        ("", "f32[256,1024]{V:model}"),
        ("pvary", "f32[256,1024]{V:(data,model)}"),
        ("dot_general", "f32[64,1024]{V:(data,model)}"),
        ("psum_invariant", "f32[64,1024]{V:data}"),
    ]


def test_the_pvary_of_jax_is_marked_as_inserted():
    found = check(
        lambda a, b: lax.psum(a @ b, "model"),
        (X, W),
        (P("data", "model"), P("model", None)),
        P("data", None),
    )
    assert [line.primitive for line in found.lines if line.inserted] == ["pvary"]


def test_a_body_that_jax_refuses_still_shows_its_lines():
    found = check(lambda a, b: a @ b, (X, W), (P("data", "model"), P("model")), P("data"))
    assert not found.accepted
    assert [line.primitive for line in found.lines] == ["", "pvary", "dot_general"]


def carried(x):
    start = jnp.zeros(2)
    return lax.scan(lambda c, _: (c + x[0, :2], None), start, None, length=3)[0]


@pytest.mark.parametrize(
    ("body", "fix"),
    [
        (carried, "jax.lax.pcast(start, 'data', to='varying')"),
        (
            lambda x: lax.cond(x.sum() > 0, lambda: x, lambda: jnp.zeros((2, 16))),
            "in false_fun, return jax.lax.pcast(..., 'data', to='varying')",
        ),
        (lambda x: lax.psum(x, "dta"), 'lax.psum(x, "data")'),
    ],
)
def test_a_body_that_jax_refuses_is_explained_with_its_cure(body, fix):
    found = check(body, (X,), P("data"), P("data"))
    assert fix in found.explained.fixes[0]
    assert f"Fix: {found.explained.fixes[0]}" in " ".join(str(found).split())


def test_what_the_check_itself_explains_is_not_explained_twice():
    assert check(lambda x: x.sum(), (X,), P("data"), P()).explained is None
    assert check(lambda x: x, (X,), P("rows"), P()).explained is None


def test_what_fails_before_the_body_leaves_the_body_unreached():
    found = check(lambda x: x, (f32(1, 8),), P("data"), P("data"))
    reached = {step.name: step.passed for step in found.steps}
    assert reached["the mesh axes divide the arguments' dimensions"] is False
    assert reached["the body traces on the shapes of one device"] is None


def test_without_check_vma_jax_takes_what_it_cannot_prove():
    found = check(lambda x: x, (X,), P("data"), P(), check_vma=False)
    assert found.accepted
    assert found.missing == ()


# Each device of `model` holds another partial sum of x @ w, and nothing in JAX's types shows it.
def test_without_check_vma_it_is_not_said_that_results_are_the_same():
    specs = (P("data", "model"), P("model", None))
    found = check(lambda x, w: x @ w, (X, W), specs, P("data"), check_vma=False)
    step = next(step for step in found.steps if step.name.startswith("results are the same"))
    assert (step.passed, step.message) == (None, "check_vma=False turns it off")
    assert [shard.varying for shard in found.inputs] == [("data", "model"), ("model",)]
    assert found.outputs[0].varying is None
    assert {value.varying for line in found.lines for value in line.binds} == {None}
    lines = [" ".join(line.split()) for line in str(found).splitlines()]
    assert f"{step.name} not checked check_vma=False turns it off" in lines
    assert "out result P('data') 8 x 8 2 x 8 not tracked" in lines


def test_a_program_with_such_a_shard_map_does_not_say_it_either():
    mesh = make_grid("data=4").mesh

    def program(x):
        specs = {"in_specs": P("data"), "out_specs": P()}
        return jax.shard_map(lambda q: q * 2, mesh=mesh, check_vma=False, **specs)(x) + 1

    with jax.set_mesh(mesh):
        typed = typed_program(jax.make_jaxpr(program)(X))
    inside = {v.varying for line in typed.lines if "shard_map" in line.within for v in line.binds}
    outside = {v.varying for line in typed.lines if not line.within for v in line.binds}
    assert (inside, outside) == ({None}, {()})


def test_in_specs_for_another_number_of_arguments_are_told():
    found = check(lambda x, w: x, (X, W), (P("data"),), P("data"))
    assert found.steps[0].message == "in_specs is for 1 arguments, but there are 2"


def test_an_accepted_shard_map_shows_what_it_lowers_to():
    found = check(
        lambda a, b: lax.psum(a @ b, "model"),
        (X, W),
        (P("data", "model"), P("model")),
        P("data"),
        compiled=True,
    )
    assert "sdy.manual_computation" in found.region
    assert [(c.kind, c.axes) for c in found.report.collectives] == [("all-reduce", ("model",))]


def test_axes_of_size_one_leave_no_region():
    found = check(lambda x: x * 2, (X,), P("data"), P("data"), mesh="data=1", compiled=True)
    assert found.region.startswith("no region")


def one_call(name):
    """Call a collective over `data` on a block of 4x16, with what else it needs."""
    function = getattr(lax, name)
    ring = [(i, (i + 1) % 4) for i in range(4)]
    more = {
        "all_to_all": (0, 0),
        "ppermute": (ring,),
        "pshuffle": ([1, 2, 3, 0],),
        "pswapaxes": (0,),
        "pbroadcast": (0,),
    }
    axis = ("data",) if name == "pbroadcast" else "data"
    if name in ("axis_index", "axis_size"):
        return lambda x: jnp.asarray(function("data"))
    if name == "pcast":
        return lambda x: function(jnp.ones(3), "data", to="varying")
    if name == "ragged_all_to_all":
        return lambda x: function(
            x, x, *[jnp.arange(4) * 0 + lax.axis_index("data")] * 4, axis_name="data"
        )
    if name == "psum_scatter_start":
        return lambda x: function(x, "data").done()
    return lambda x: function(x, axis, *more.get(name, ()))


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if not n.startswith(("psend", "precv"))])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_a_collective_does_to_the_varying_set(name):
    effect = FUNCTIONS[name].effect
    if not hasattr(lax, name):
        pytest.skip(f"needs jax 0.12: lax.{name} came with it")
    seen = []

    def body(x):
        result = one_call(name)(x)
        seen.append("data" in jax.typeof(result).mat.varying)
        return x

    grid = make_grid("data=4")
    mapped = jax.shard_map(body, mesh=grid.mesh, in_specs=P("data"), out_specs=P("data"))
    try:
        jax.jit(mapped).trace(f32(16, 16))
    except NotImplementedError:
        pytest.skip(f"needs an accelerator: lax.{name} is not for the CPU")
    assert seen[-1] == (effect in ("keeps", "adds"))


def test_every_named_axis_function_of_jax_is_known():
    known = set(FUNCTIONS)
    for name in dir(lax):
        function = getattr(lax, name)
        if name.startswith("_") or name.endswith("_p") or not inspect.isfunction(function):
            continue
        if "axis_name" in inspect.signature(function).parameters:
            assert name in known


@pytest.mark.parametrize(
    ("body", "collective"),
    [
        (lambda a: a.mean(), "pmean"),
        (lambda a: jnp.mean(a, 0), "pmean"),
        (lambda a: a.sum(0), "psum"),
        (lambda a: a.sum() / 3.0, "psum"),
        (lambda a: a.max(), "pmax"),
        (lambda a: a.var(0), None),
        (lambda a: a.prod(0), None),
    ],
)
def test_a_mean_of_blocks_is_averaged_and_a_sum_is_added(body, collective):
    x = jax.ShapeDtypeStruct((64, 64), jnp.float32)
    check = sn.check_shard_map(body, x, mesh="data=8", in_specs=P("data"), out_specs=P())
    assert [one.collective for one in check.missing] == [collective]
