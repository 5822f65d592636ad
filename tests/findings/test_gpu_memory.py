"""The memory of programs for GPUs that are not there, and what bounds their steps."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.mesh import make_grid
from shardnb.report import Memory
from tests.needs import needs_gpu_compiler

pytestmark = needs_gpu_compiler

ROWS = P("data")
LAYERS = jax.ShapeDtypeStruct((4, 512, 512), jnp.bfloat16)
BATCH = jax.ShapeDtypeStruct((256, 512), jnp.bfloat16)


def forward(layers, x):
    return lax.scan(lambda h, w: (jnp.tanh(h @ w), None), x, layers)[0]


def step(layers, x):
    gradient = jax.grad(lambda w: jnp.mean(forward(w, x).astype(jnp.float32) ** 2))(layers)
    return layers - gradient


def ordered(layers, x):
    return jnp.sort(x, axis=0), layers.sum(0)


@pytest.mark.parametrize(
    ("fn", "donated", "on"),
    [
        (forward, (), "h100:8"),
        (step, (0,), "h100:8"),
        (ordered, (), "h100:8"),
        (step, (), "h100:2x4"),
    ],
)
def test_the_memory_is_that_of_jaxs_own_analysis(fn, donated, on):
    specs = P(None, "data"), ROWS
    report = sn.explain(
        fn, LAYERS, BATCH, mesh="data=8", on=on, in_specs=specs, donate_argnums=donated
    )
    mesh = make_grid("data=8", on=on).mesh
    shardings = tuple(jax.NamedSharding(mesh, spec) for spec in specs)
    jitted = jax.jit(fn, in_shardings=shardings, donate_argnums=donated)
    stats = jitted.lower(LAYERS, BATCH).compile().memory_analysis()
    assert replace(report.memory, peak=None) == Memory(
        stats.argument_size_in_bytes,
        stats.output_size_in_bytes,
        stats.temp_size_in_bytes,
        stats.alias_size_in_bytes,
        stats.generated_code_size_in_bytes,
    )


@pytest.mark.parametrize(("gib", "fits"), [(64, True), (640, False)])
def test_whether_a_program_fits_is_said_of_the_gpus_memory(gib, fits):
    # An eighth of x and of the result on each GPU, which has 84,942,979,072 bytes.
    x = jax.ShapeDtypeStruct((gib * 2**18, 1024), jnp.float32)
    report = sn.explain(lambda x: x * 2, x, mesh="data=8", on="h100:8", in_specs=(ROWS,))
    each = gib * 2**30 // 8
    assert (report.memory.arguments, report.memory.outputs) == (each, each)
    assert report.cost.memory_size == 84_942_979_072
    said = " ".join(str(report).split())
    assert f"of the 79.1 GiB memory per device: it {'fits' if fits else 'does not fit'}" in said
    said = [(f.kind, f.message.partition(";")[0]) for f in report.findings]
    message = "the program does not fit: a device needs 160.00 GiB of memory and has 79.11 GiB"
    assert said == ([] if fits else [("out-of-memory", message)])


def test_least_is_compared_with_least():
    """A sum of one element reads all of x once at least: no reuse can make that less."""
    x = jax.ShapeDtypeStruct((8 * 2**20, 64), jnp.float32)
    report = sn.explain(lambda x: x * 2, x, mesh="data=8", on="h100:8", in_specs=(ROWS,))
    cost, share = report.cost, 2**20 * 64 * 4
    assert cost.memory_least_seconds == pytest.approx(2 * share / 3350e9)
    assert cost.compute_seconds == pytest.approx(2**20 * 64 / 989e12)
    assert cost.may_bound == ("memory",)
    assert "memory" in str(report)


def test_where_only_the_most_that_memory_takes_is_the_longest_both_may_bound():
    """Products in a loop: each step may keep its operands on the chip, or read them again."""
    report = sn.explain(
        lambda w, x: lax.fori_loop(0, 64, lambda _, h: jnp.tanh(h @ w), x),
        jax.ShapeDtypeStruct((256, 256), jnp.bfloat16),
        jax.ShapeDtypeStruct((1024, 256), jnp.bfloat16),
        mesh="data=8", on="h100:8", in_specs=(P(), ROWS),
    )  # fmt: skip
    cost = report.cost
    assert cost.memory_least_seconds < cost.compute_seconds < cost.memory_seconds
    assert cost.may_bound == ("compute", "memory")
