"""What a device holds is what JAX says of its own compile of the same program."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.findings.memory import memory_of
from shardnb.mesh import make_grid
from shardnb.report import Memory
from shardnb.texts.buffers import read_allocations

X = jax.ShapeDtypeStruct((256, 512), jnp.float32)


def loop(x, y):
    return lax.fori_loop(0, 4, lambda _, carry: jnp.sin(carry @ y.T) @ x, x)


def branch(x, y):
    return lax.cond(x.sum() > 0, lambda: x @ y.T, lambda: y @ x.T)


def several(x, y):
    return {"sum": (x + y).sum(), "sorted": jnp.sort(x, axis=0)}


@pytest.mark.parametrize("donated", [(), (0,), (0, 1)])
@pytest.mark.parametrize("fn", [loop, branch, several])
def test_the_memory_is_that_of_jaxs_own_analysis(fn, donated):
    mesh = "data=4,model=2"
    report = sn.explain(
        fn, X, X, mesh=mesh, in_specs=(P("data"), P(None, "model")), donate_argnums=donated
    )
    grid = make_grid(mesh).mesh
    specs = (jax.NamedSharding(grid, P("data")), jax.NamedSharding(grid, P(None, "model")))
    jitted = jax.jit(fn, in_shardings=specs, donate_argnums=donated)
    stats = jitted.lower(X, X).compile().memory_analysis()
    assert replace(report.memory, peak=None) == Memory(
        stats.argument_size_in_bytes,
        stats.output_size_in_bytes,
        stats.temp_size_in_bytes,
        stats.alias_size_in_bytes,
        stats.generated_code_size_in_bytes,
    )


def test_a_donated_input_that_a_result_reuses_is_aliased():
    found = read_allocations(
        """BufferAssignment:
allocation 0: size 1024, page 0, parameter 0, shape |f32[256]| at ShapeIndex {}, maybe-live-out:
allocation 1: size 512, page 0, parameter 1, shape |f32[128]| at ShapeIndex {}:
allocation 2: size 64, page 0, constant:
allocation 3: size 32, page 0, thread-local:
allocation 4: size 2048, page 0, preallocated-temp:
"""
    )
    assert memory_of(found) == Memory(1536, 1024, 2048, aliased=1024)
    assert memory_of(found).total == 1536 + 2048
