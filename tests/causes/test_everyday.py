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
