"""`sn.watch`: what a block of code compiles, with the code as it stands."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.mesh import make_grid


@pytest.fixture
def arrays():
    """Two factors that are sharded over `model` on the dimension that is summed over."""
    mesh = make_grid("data=4,model=2").mesh
    x, w = jnp.ones((16, 8)), jnp.ones((8, 4))
    specs = P("data", "model"), P("model")
    return [jax.device_put(a, NamedSharding(mesh, s)) for a, s in zip((x, w), specs, strict=True)]


def test_what_a_loop_compiles_is_reported_once_with_reasons(arrays):
    step = jax.jit(lambda x, w: jnp.tanh(x @ w))
    with sn.watch() as watched:
        assert watched.reports == ()
        for _ in range(3):
            step(*arrays)
    (report,) = watched.reports
    (collective,) = report.collectives
    assert (collective.kind, collective.axes, collective.reason, collective.asked_by) == (
        "all-reduce",
        ("model",),
        "partial-sum",
        "inferred",
    )
    assert report.source.line(collective.line).strip().startswith("step = jax.jit(")
    assert report.memory.arguments == 4 * (4 * 4 + 4 * 4)
    assert str(watched).count("Program jit__lambda") == 1


def test_a_mesh_that_fits_describes_the_devices(arrays):
    with sn.watch("data=4,model=2") as watched:
        jax.jit(lambda x, w: x @ w + 1)(*arrays)
    assert watched.reports[0].mesh.emulated
    with sn.watch("other=8") as watched:
        jax.jit(lambda x, w: x @ w + 2)(*arrays)
    assert watched.reports[0].mesh.shape == {"data": 4, "model": 2}
    assert not watched.reports[0].mesh.emulated


def test_the_reports_are_there_after_an_error(arrays):
    def ends(x, w):
        jax.jit(lambda x, w: x @ w + 3)(x, w)
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"), sn.watch() as watched:
        ends(*arrays)
    assert len(watched.reports) == 1
    with pytest.raises(RuntimeError, match="stop"), sn.watch(only="nothing"):
        ends(*arrays)


def test_a_name_that_no_program_has_is_an_error(arrays):
    with pytest.raises(sn.InvalidInput, match="named step; there are jit_"), sn.watch(only="step"):
        jax.jit(lambda x, w: x @ w + 5)(*arrays)
