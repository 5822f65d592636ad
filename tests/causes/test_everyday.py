"""What reports say of programs as people write them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

import shardnb as sn


def shape(*dims):
    return jax.ShapeDtypeStruct(dims, jnp.float32)


def test_a_sharding_is_said_of_what_is_computed_where_both_have_one_name():
    def pencil(x):
        y = lax.with_sharding_constraint(jnp.fft.fft(x, axis=1), P(None, "data"))
        return lax.with_sharding_constraint(jnp.fft.fft(y, axis=0), P("data"))

    report = sn.explain(pencil, shape(32, 32), mesh="data=8", in_specs=P("data"))
    assert [c.detail for c in report.collectives] == [
        "jnp.fft.fft(x, axis=1) must be P(None, 'data'), because of a sharding constraint",
        "result of transpose must be P('data'), because of a sharding constraint",
    ]


def test_each_dimension_that_is_moved_is_said_with_its_axes():
    """The momentum is sharded over the axes of the parameter, each on the other dimension."""

    def momentum_transposed(w, momentum):
        return w - 0.1 * momentum

    specs = P("data", "model"), P("model", "data")
    args = shape(32, 64), shape(32, 64)
    report = sn.explain(
        momentum_transposed, *args, mesh="data=4,model=2", in_specs=specs, out_specs=specs[0]
    )
    moved = " is sharded over model on dimension 0 and over data on dimension 1"
    assert any(moved in c.why for c in report.collectives)
