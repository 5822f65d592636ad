"""Programs that the user has traced, lowered or compiled are explained as they are."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.mesh import make_grid

MESH = make_grid("data=4,model=2").mesh


def shape(dims, *spec):
    return jax.ShapeDtypeStruct(dims, jnp.float32, sharding=NamedSharding(MESH, P(*spec)))


def layer(params, unused, x):
    return {"h": jnp.tanh(x @ params["w"])}


ARGS = ({"w": shape((512, 64))}, shape((8,)), shape((128, 512), "model", "data"))
JITTED = jax.jit(layer, donate_argnums=2)


@pytest.mark.parametrize("explain", [sn.explain, sn.explain_hlo])
@pytest.mark.parametrize("stage", ["trace", "lower", "compile"])
def test_a_stage_is_explained(explain, stage):
    """128 x 64 of partial sums of 4 bytes, half of the rows on each: 16 KiB in rings of 4."""
    given = {
        "trace": lambda: JITTED.trace(*ARGS),
        "lower": lambda: JITTED.lower(*ARGS),
        "compile": lambda: JITTED.lower(*ARGS).compile(),
    }[stage]()
    report = explain(given)
    (sent,) = report.collectives
    assert (sent.kind, sent.axes, sent.shape, sent.wire_bytes) == (
        "all-reduce",
        ("data",),
        (64, 64),
        2 * 64 * 64 * 4 * 3 // 4,
    )
    compiled = JITTED.lower(*ARGS).compile().memory_analysis()
    assert report.title == "layer"
    assert report.memory.arguments == compiled.argument_size_in_bytes
    assert [(v.name, v.spec, v.details) for v in report.inputs] == [
        ("params['w']", ((), ()), ""),
        ("argument 1", ((),), "not used by the program"),
        ("x", (("model",), ("data",)), ""),
    ]
    assert [(v.name, v.spec) for v in report.outputs] == [("h", (("model",), ()))]
    # A compiled program has left no evidence of who asked.
    cause = (None, None) if stage == "compile" else ("inferred", "partial-sum")
    assert (sent.asked_by, sent.reason) == cause
    assert [finding.kind for finding in report.findings] == ["donation"]


def test_the_stages_of_libraries():
    eqx = pytest.importorskip("equinox")
    nnx = pytest.importorskip("flax.nnx")
    x = jax.device_put(np.ones((8, 4), np.float32), NamedSharding(MESH, P("data")))
    for jit in (eqx.filter_jit, nnx.jit):
        (sent,) = sn.explain(jit(lambda x: x.sum(0)).lower(x)).collectives
        assert (sent.kind, sent.axes) == ("all-reduce", ("data",))


def test_a_program_on_one_device():
    report = sn.explain(jax.jit(lambda x: x * 2).lower(np.ones(4, np.float32)))
    assert (report.mesh.size, report.collectives) == (1, ())


def test_a_mesh_that_the_program_was_not_compiled_for():
    with pytest.raises(ValueError, match="compiled for 1 devices, but the mesh has 8"):
        sn.explain(jax.jit(lambda x: x * 2).lower(np.ones(4, np.float32)), mesh="data=8")


def test_nothing_is_given_with_a_stage_but_a_mesh():
    lowered = JITTED.lower(*ARGS)
    with pytest.raises(ValueError, match="a program that is already lowered is explained as it is"):
        sn.explain(lowered, ARGS[0])
    with pytest.raises(ValueError, match="already lowered"):
        sn.explain(lowered, in_specs=P("data"))
