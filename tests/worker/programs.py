"""Programs that tests compile in the other process."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from shardnb.compiler.call import read_call
from shardnb.mesh import make_grid


def shape(*dims, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(dims, dtype)


def request_of(fn, *args, mesh="data=4,model=2", axes=None, on=None, in_specs=None, **options):
    """What `sn.explain` would compile."""
    return read_call(fn, args, options).request(make_grid(mesh, axes, on), in_specs)


def left_unreduced(a, b, c):
    """XLA ends its process at this, with jaxlib 0.12.0.1: one operand alone is sharded over X."""
    return jnp.einsum("fh,fd,f->hd", a, b, c, out_sharding=P(None, "Y", unreduced={"X"}))


ABORTS = {
    "mesh": "X=2,Y=2",
    "axes": "explicit",
    "in_specs": (P(), P("X", "Y"), P()),
}
UNREDUCED = (left_unreduced, shape(6, 10), shape(6, 14), shape(6))


def deep(x, layers=60):
    """Large enough for XLA to take some seconds: each layer is different."""
    for i in range(1, layers):
        x = jnp.sin(x @ jnp.ones((64, 64), x.dtype)[:, ::-1] * i) + jnp.cumsum(x, axis=i % 2)
    return x
