"""`explain` from end to end: what it takes, and what it leaves alone."""

from __future__ import annotations

import functools
import gc

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.jax_compat import mlir
from shardnb.mesh import make_grid
from shardnb.propagation import values
from shardnb.texts import hlo

X = jax.ShapeDtypeStruct((256, 512), jnp.float32)
W = jax.ShapeDtypeStruct((512, 1024), jnp.float32)


def test_fixes_are_sought_where_they_are_wanted():
    options = {"mesh": "data=4,model=2", "in_specs": (P("model", "data"), P())}
    (plain,) = sn.explain(jnp.dot, X, W, **options).collectives
    assert plain.fixes is None
    (searched,) = sn.explain(jnp.dot, X, W, fixes=20, **options).collectives
    assert searched.fixes
    assert min(fix.collectives[1] for fix in searched.fixes) == 0


def test_strings_and_flags_stay_python_and_numbers_are_traced():
    def scaled(x, mode, factor):
        assert mode == "double"
        assert isinstance(factor, jax.core.Tracer)
        return x * factor

    report = sn.explain(scaled, X, "double", 2, mesh="data=8", in_specs=(P("data"), None, None))
    assert [value.name for value in report.inputs] == ["x", "factor"]


def test_one_spec_serves_all_arguments():
    report = sn.explain(jnp.add, X, X, mesh="data=8", in_specs=P("data"))
    assert [value.spec for value in report.inputs] == [(("data",), ())] * 2


def test_specs_are_counted():
    with pytest.raises(ValueError, match="in_specs has 1 entry for 2 arguments: x, w"):
        sn.explain(lambda x, w: x @ w, X, W, mesh="data=8", in_specs=(P("data"),))


def test_a_run_takes_its_time_down():
    report = sn.explain(lambda x: x + 1, np.ones((8, 8), np.float32), mesh="data=8", run=True)
    assert report.run.run_seconds is not None


def test_an_error_of_the_function_comes_as_it_is():
    def broken(x):
        raise RuntimeError("of the user's")

    with pytest.raises(RuntimeError, match="of the user's"):
        sn.explain(broken, X, mesh="data=8")


def test_a_name_that_does_not_exist():
    with pytest.raises(AttributeError, match="no attribute 'explian'"):
        sn.explian  # noqa: B018


def in_shard_map(x):
    def body(part):
        return jax.lax.psum(part.sum(), "data")

    return jax.shard_map(body, in_specs=P("data"), out_specs=P())(x)


def largest(x):
    return jax.lax.top_k(x @ x.T, 2)  # XLA alone knows the sharding rule of its top-k


def test_origins_are_sought_in_a_large_program_where_they_are_wanted(monkeypatch):
    monkeypatch.setattr("shardnb.propagation.values.SIZE_LIMIT", 10)

    def doubled(x):
        y = x * 2
        return y + 1

    options = {"mesh": "data=8", "in_specs": P("data")}
    assert sn.explain(doubled, X, **options).notes
    report = sn.explain(doubled, X, origins=True, **options)
    assert "data came from x" in report.why("y")


@pytest.mark.parametrize("limit", [values.SIZE_LIMIT, 0])
@pytest.mark.parametrize("fn", [in_shard_map, largest])
def test_each_text_of_a_program_is_parsed_once(fn, limit, monkeypatch):
    parsed = []

    def noted(reader):
        def read(*args, **options):
            parsed.append(next(arg for arg in args if isinstance(arg, str)))
            return reader(*args, **options)

        return read

    monkeypatch.setattr(values, "SIZE_LIMIT", limit)  # 0: no origins in a program of any size
    monkeypatch.setattr(hlo, "parse", noted(hlo.parse))
    monkeypatch.setattr(mlir.Module, "__init__", noted(mlir.Module.__init__))
    x = jax.ShapeDtypeStruct((64, 64), jnp.float32)
    sn.explain(fn, x, mesh="data=4", in_specs=P("data"))
    assert len(parsed) >= 5  # three of HLO, and Shardy's before and after propagation
    assert len(set(parsed)) == len(parsed)


def test_the_garbage_collector_is_left_as_it_was():
    gc.disable()
    try:
        sn.explain(lambda x: x + 1, X, mesh="data=8")
        assert not gc.isenabled()
    finally:
        gc.enable()
    sn.explain(lambda x: x + 1, X, mesh="data=8")
    assert gc.isenabled()


def test_what_the_user_froze_stays_frozen():
    gc.freeze()
    try:
        sn.explain(lambda x: x + 1, X, mesh="data=8")
        assert gc.get_freeze_count() > 100_000
    finally:
        gc.unfreeze()


def test_an_argument_that_lies_elsewhere_on_its_mesh_has_its_price():
    grid = make_grid("data=4")
    lies = jax.device_put(np.ones((8, 8), np.float32), NamedSharding(grid.mesh, P(None, "data")))
    report = sn.explain(jnp.tanh, lies, mesh=grid, in_specs=P("data"))
    (finding,) = [one for one in report.findings if one.kind == "moved"]
    # Each device keeps a quarter of its block of 64 bytes, and receives the rest of its new one.
    assert finding.wasted_bytes == 48
    assert "jax.device_put(x, NamedSharding(mesh, P('data')))" in finding.message


def test_an_array_of_the_kernels_own_devices_is_no_finding():
    x = jax.device_put(np.ones((8, 8), np.float32), jax.devices()[0])
    assert not sn.explain(jnp.tanh, x, mesh="data=4", in_specs=P("data")).findings


def test_static_arguments_stay_python():
    def total(x, axis):
        assert type(axis) is int
        return x.sum(axis)

    options = {"mesh": "data=4", "in_specs": (P("data"), None)}
    for static in ({"static_argnums": 1}, {"static_argnames": "axis"}, {"static_argnums": (-1,)}):
        report = sn.explain(total, X, 1, **options, **static)
        assert [value.name for value in report.inputs] == ["x"]
        assert report.outputs[0].shape == (256,)


def test_an_abstract_mesh_is_named():
    mesh = jax.sharding.AbstractMesh((4,), ("data",))
    with pytest.raises(ValueError, match="has no devices"):
        sn.explain(jnp.tanh, X, mesh=mesh)


def test_branches_are_counted_as_the_most_that_runs():
    def either(which, x):
        return jax.lax.cond(which, lambda x: x.sum(0), lambda x: x.max(0), x)

    which = jax.ShapeDtypeStruct((), jnp.bool_)
    text = str(sn.explain(either, which, X, mesh="data=8", in_specs=(P(), P("data"))))
    assert "at most" in text
    assert "Of 2 collectives in conditionals, those of the branches that send most" in " ".join(
        text.split()
    )


def test_an_input_that_is_not_used_says_so_and_is_no_waste():
    large = jax.ShapeDtypeStruct((1024, 1024), jnp.float32)
    report = sn.explain(lambda x, w: x * 2, X, large, mesh="data=8", in_specs=(P("data"), P()))
    assert "not used by the program" in str(report)
    assert report.findings == ()


def test_a_text_alone_does_not_know_its_inputs():
    report = sn.explain(jnp.tanh, X, mesh="data=8", in_specs=P("data"))
    told = str(sn.explain_hlo(report.texts["optimized"]))
    assert "Inputs    not known" in told


def test_the_line_that_calls_explain_is_no_part_of_the_program():
    def product(x, w):
        return jnp.tanh(x @ w)

    specs = (P("data", "model"), P("model"))
    report = sn.explain(product, X, W, mesh="data=4,model=2", in_specs=specs)
    (frame,) = report.collectives[0].frames
    assert frame.function.endswith("product")
    assert len(report.sources) == 1


# Library models


def dense_net(layers):
    class Net(linen.Module):
        @linen.compact
        def __call__(self, x):
            for _ in range(layers):
                x = linen.relu(linen.Dense(8, use_bias=False)(x))
            return x

    return Net()


def forward_of(layers):
    """Each kernel is sharded over its rows, so each product is summed, in the module it is in."""
    net = dense_net(layers)
    shapes = {f"Dense_{i}": {"kernel": jnp.ones((8, 8))} for i in range(layers)}
    specs = {f"Dense_{i}": {"kernel": P("model")} for i in range(layers)}
    return sn.explain(
        net.apply,
        {"params": shapes},
        jnp.ones((4, 8)),
        mesh="model=2",
        in_specs=({"params": specs}, P(None, "model")),
    )


def test_a_collective_of_a_library_model_says_its_module():
    report = forward_of(2)
    sums = [c for c in report.collectives if c.kind == "all-reduce"]
    assert [c.module for c in sums] == ["Net/Dense_0", "Net/Dense_1"]
    shown = " ".join(str(report).split())
    assert "in Net/Dense_* (2 modules)" in shown


def test_like_modules_are_shown_together():
    shown = " ".join(str(forward_of(30)).split())
    assert "in Net/Dense_* (30 modules) 30 3.8 KiB" in shown


def wide(k, x, w):
    return k * (x @ w)


class Wide:
    def __call__(self, x, w):
        return x @ w


@pytest.mark.parametrize(
    ("call", "title", "code"),
    [
        (functools.partial(wide, 2.0), "wide", wide.__code__),
        (jax.tree_util.Partial(wide, 2.0), "wide", wide.__code__),
        (Wide(), "Wide", Wide.__call__.__code__),
    ],
)
def test_partials_and_callable_objects_keep_their_lines(call, title, code):
    x, w = jnp.ones((4, 8)), jnp.ones((8, 4))
    report = sn.explain(call, x, w, mesh="model=2", in_specs=(P(None, "model"), P("model")))
    assert report.title == title
    assert [c.line for c in report.collectives] == [code.co_firstlineno + 1]


def test_a_name_keeps_its_case_at_the_beginning_of_a_sentence():
    def ordered(a):
        return jnp.sort(a)

    a = jax.ShapeDtypeStruct((64,), jnp.float32)
    report = sn.explain(ordered, a, mesh="data=4", in_specs=(P("data"),))
    assert "a is gathered, because sort needs the full dimension" in " ".join(str(report).split())
    assert "A is" not in str(report)
