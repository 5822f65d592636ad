"""`sn.guard`: a program that communicates as it must not is stopped before it runs."""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import pytest
from jax._src import compiler
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.guards import Rule, _active
from shardnb.mesh import make_grid

MESH = "data=4,model=2"


def placed(shape, *spec):
    return jax.device_put(jnp.ones(shape), NamedSharding(make_grid(MESH).mesh, P(*spec)))


@pytest.fixture
def gathered():
    """The operands of a product for which the compiler gathers the first.

    On each device are 128 x 128 floats of x; it sends them to the other 3 along data: 192 KiB.
    """
    return placed((256, 512), "model", "data"), placed((512, 1024))


@pytest.fixture
def product():
    """A function that JAX has not compiled before."""

    def product(x, w):
        return jnp.tanh(x @ w)

    return product


def test_a_program_is_stopped_before_it_runs_with_line_and_cause(gathered, product):
    ran = []

    @sn.guard("inferred")
    @jax.jit
    def step(x, w):
        jax.debug.callback(lambda: ran.append(1))
        return product(x, w)

    with pytest.raises(sn.GuardError) as caught:
        step(*gathered)
    assert ran == []
    text = str(caught.value)
    assert "jit_step: 1 collective that must not be there (inferred):" in text
    assert "all-gather[data] at line" in text
    assert "return jnp.tanh(x @ w)" in text
    assert "192 KiB per run" in text
    assert "x is sharded over data on its contracting dimension, but w is replicated" in text
    (collective,) = caught.value.report.collectives
    assert (collective.kind, collective.axes) == ("all-gather", ("data",))
    with pytest.raises(sn.GuardError):  # it was not compiled, so it is checked again
        step(*gathered)


def test_what_is_allowed_runs(gathered, product):
    step = sn.guard("inferred", allow=["all-gather[data]"], max_wire_bytes=192 * 1024)(
        jax.jit(product)
    )
    assert step(*gathered).shape == (256, 1024)
    with pytest.raises(sn.GuardError):
        sn.guard("inferred", allow=["all-gather[model]"])(jax.jit(lambda x, w: x @ w))(*gathered)


def test_gradients_are_typical():
    def loss(w, x):
        return jnp.mean(jnp.square(x @ w))

    def train(w, x):
        value, gradient = jax.value_and_grad(loss)(w, x)
        return w - 0.1 * gradient, value

    arrays = placed((8, 4)), placed((16, 8), "data")
    with pytest.raises(sn.GuardError, match="typical of data parallelism: allow_typical=True"):
        sn.guard("inferred")(jax.jit(train))(*arrays)
    sn.guard("inferred", allow_typical=True)(jax.jit(train))(*arrays)


def test_a_block_is_guarded_and_programs_are_chosen_by_name(gathered, product):
    step = jax.jit(product)
    with sn.guard("all-gather", only="train*"):
        step(*gathered)
    other = jax.jit(lambda x, w: product(x, w) + 1)
    with pytest.raises(sn.GuardError), sn.guard("all-gather"):
        other(*gathered)
    assert _active() == []
    other(*gathered)


def test_bytes_and_memory_are_limited(gathered, product):
    with pytest.raises(sn.GuardError, match="each device sends 192 KiB per run, more than 191 KiB"):
        sn.guard(max_wire_bytes=191 * 1024)(jax.jit(product))(*gathered)
    # On each device are 2 MiB of w.
    with pytest.raises(
        sn.GuardError, match=r"more than 2\.0 MiB .*the most at the peak: w \(argument\), 2\.0 MiB"
    ):
        sn.guard(max_memory=2**21)(jax.jit(product))(*gathered)


def test_guards_of_calls_within_calls_are_told_apart(gathered, product):
    inner = sn.guard("all-to-all")(jax.jit(product))
    outer = sn.guard("all-gather", only="product")(lambda x, w: inner(x, w).sum())
    with pytest.raises(sn.GuardError, match=r"\(all-gather\)"):
        outer(*gathered)
    with sn.guard("all-reduce"):
        assert len(_active()) == 1
        inner(*gathered)
    outer(*gathered)  # compiled by now
    assert _active() == []


def test_a_warning_lets_it_run(gathered, product):
    step = sn.guard("inferred", action="warn")(jax.jit(product))
    with pytest.warns(sn.GuardWarning, match="must not be there"):
        assert step(*gathered).shape == (256, 1024)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step(*gathered)  # compiled: not looked at again


def test_a_cached_call_and_other_threads_are_not_looked_at(gathered, product):
    step = jax.jit(product)
    step(*gathered)
    assert sn.guard("inferred")(step)(*gathered).shape == (256, 1024)


def test_a_reshard_that_the_user_wrote_is_not_inferred(gathered, product):
    replicated = NamedSharding(make_grid(MESH).mesh, P())

    @sn.guard("inferred")
    @jax.jit
    def step(x):
        return jax.lax.with_sharding_constraint(x * 2, replicated)

    assert step(gathered[0]).sharding.is_fully_replicated


def test_a_program_of_the_persistent_cache_is_explained_where_its_text_does_not_suffice(
    gathered, tmp_path, monkeypatch
):
    """From the cache come no dumps: what seems to break a guard is compiled once more."""
    names = ("jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs")
    before = {name: getattr(jax.config, name) for name in names}
    replicated = NamedSharding(make_grid(MESH).mesh, P())

    def cached(x):
        return jax.lax.with_sharding_constraint(x * 3, replicated)

    try:
        jax.config.update(names[0], str(tmp_path))
        jax.config.update(names[1], 0.0)
        compiler.compilation_cache.reset_cache()
        jax.jit(cached)(gathered[0])
        assert list(tmp_path.iterdir())
        jax.clear_caches()
        sn.guard("inferred")(jax.jit(cached))(gathered[0])  # requested, as its dumps say
        jax.clear_caches()
        with pytest.raises(sn.GuardError):
            sn.guard("all-gather")(jax.jit(cached))(gathered[0])
    finally:
        for name, value in before.items():
            jax.config.update(name, value)
        compiler.compilation_cache.reset_cache()


def test_a_report_in_a_guarded_block_is_not_stopped():
    x = jax.ShapeDtypeStruct((8,), jnp.float32)
    with sn.guard("all-reduce"):
        report = sn.explain(jnp.sum, x, mesh="data=4", in_specs=(P("data"),), origins=False)
    assert [c.reason for c in report.collectives] == ["partial-sum"]


def test_a_guarded_function_keeps_what_jax_gives_it(product):
    step = sn.guard("inferred")(jax.jit(product))
    assert step.__name__ == "product"
    shape = jax.ShapeDtypeStruct((4, 4), jnp.float32)
    assert step.lower(shape, shape).compile() is not None


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"forbid": "allreduce"}, ValueError, "'allreduce' cannot be forbidden; the choices are"),
        ({"allow": ["gather"]}, ValueError, "'gather' is not a collective; the kinds are"),
        ({"action": "stop"}, ValueError, "expected the action 'raise' or 'warn', got 'stop'"),
        ({"forbid": len}, TypeError, r"as in @sn.guard\('inferred'\), got a function"),
    ],
)
def test_bad_input_is_refused(given, error, message):
    with pytest.raises(error, match=message):
        sn.guard(**given)


def test_a_guard_inside_a_traced_function_is_an_error(product):
    step = jax.jit(sn.guard("inferred")(product))
    with pytest.raises(ValueError, match=r"put @sn.guard above @jax.jit"):
        step(jnp.ones((2, 2)), jnp.ones((2, 2)))


def test_collectives_that_are_not_known_yet_break_a_rule(product):
    lowered = jax.jit(product).lower(*[jax.ShapeDtypeStruct((8, 8), jnp.float32)] * 2)
    report = sn.explain_hlo(lowered.as_text().replace("num_partitions = 1", "num_partitions = 2"))
    assert not report.partitioned
    assert Rule(("inferred",)).broken(report) == [
        "it is not partitioned yet, so its collectives are not known"
    ]
