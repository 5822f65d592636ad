"""What a `shard_map` sends of gradients and new parameters: called, and known by its dataflow."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import shardnb as sn
from tests.causes.cases import f32


def mapped(body, *specs, out):
    return jax.shard_map(body, in_specs=specs, out_specs=out, check_vma=False)


def squares(w, x):
    return jnp.mean((x @ w) ** 2)


def shard_of_an_update(w, x):
    """Each device updates its two rows, and gathers those of all."""

    def body(w, x):
        grad = lax.psum_scatter(jax.grad(squares)(w, x), "data", tiled=True) / 8
        rows = lax.dynamic_slice_in_dim(w, lax.axis_index("data") * 2, 2)
        return lax.all_gather(rows - 0.1 * grad, "data", tiled=True)

    return mapped(body, P(), P("data"), out=P())(w, x)


def gathered_after_the_update(w, x):
    grad = jax.grad(squares)(w, x)

    def body(w, grad):
        return lax.all_gather(w - 0.1 * grad, "data", tiled=True)

    return mapped(body, P("data"), P("data"), out=P())(w, grad)


def gathered_gradient(w, x):
    grad = jax.grad(squares)(w, x)

    def body(grad):
        return lax.all_gather(grad, "data", tiled=True)

    return w - 0.1 * mapped(body, P("data"), out=P())(grad)


def gathered_batch(w, x):
    def body(x):
        return lax.all_gather(x, "data", tiled=True)

    return w - 0.1 * jax.grad(squares)(w, mapped(body, P("data"), out=P())(x))


@pytest.mark.parametrize(
    ("step", "of_w", "role"),
    [
        (shard_of_an_update, P(), ("parameter-update", "w")),
        (gathered_after_the_update, P("data"), ("parameter-update", "w")),
        (gathered_gradient, P("data"), ("gradient-reshard", "w")),
        (gathered_batch, P(), ("called", "")),
    ],
)
def test_a_called_gather(step, of_w, role):
    report = sn.explain(
        step,
        f32(16, 8),
        f32(32, 16),
        mesh="data=8",
        in_specs=(of_w, P("data")),
        out_specs=P(),
        origins=False,
    )
    (called,) = [c for c in report.collectives if c.kind == "all-gather" and c.asked_by == "called"]
    assert (called.role, called.role_of) == role
