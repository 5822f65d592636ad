"""The Python functions about types of axes."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from shardnb.axis_types import check_shard_map, to_explicit

X = jax.ShapeDtypeStruct((256, 512), jnp.float32)
W = jax.ShapeDtypeStruct((512, 1024), jnp.float32)
SPECS = (P("data", "model"), P("model", None))
MESH = "data=4,model=2"


def matmul(x, w):
    return jnp.tanh(x @ w)


def test_the_first_seeds_program_becomes_explicit():
    plan = to_explicit(matmul, X, W, mesh=MESH, in_specs=SPECS)
    (one,) = plan.annotations
    assert one.after == "return jnp.tanh(jnp.matmul(x, w, out_sharding=P('data', None)))"
    assert plan.diff.sentence == "identical except the permission to choose the output"


def test_what_is_no_array_stays_as_it_is():
    def scaled(x, w, name):
        return {"scaled": 2 * x, "plain": x}[name] @ w

    plan = to_explicit(scaled, X, W, "scaled", mesh=MESH, in_specs=(*SPECS, None))
    assert plan.same_collectives


def test_the_first_seeds_shard_map_lacks_a_psum():
    found = check_shard_map(
        lambda p, q: p @ q, X, W, mesh=MESH, in_specs=SPECS, out_specs=P("data", None)
    )
    assert (found.accepted, found.error) == (False, "ValueError")
    assert found.missing[0].fix == "jax.lax.psum(p @ q, 'model')"
    assert "could not infer replication" in found.message


def test_a_shard_map_over_some_axes_only():
    found = check_shard_map(
        lambda x: lax.psum(x, "data"),
        X,
        mesh=MESH,
        in_specs=P("data"),
        out_specs=P(),
        axis_names={"data"},
    )
    assert found.accepted
    assert found.inputs[0].local_shape == (64, 512)
