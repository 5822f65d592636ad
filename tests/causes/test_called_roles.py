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


def gradient_of_what_column_shards_take(x, w1, w2):
    def mlp(x, w1, w2):
        return lax.psum(jnp.tanh(x @ w1) @ w2, "tp")

    def loss(x, w1, w2):
        specs = P("data"), P(None, "tp"), P("tp")
        return jnp.mean(jax.shard_map(mlp, in_specs=specs, out_specs=P("data"))(x, w1, w2) ** 2)

    return jax.grad(loss, argnums=(0, 1, 2))(x, w1, w2)


def test_the_gradient_of_what_a_layer_takes_is_a_sum_over_the_shards_of_that_layer():
    # Each device has the product of its columns of w1 alone, so what x gets back is summed over tp
    # as the result of w2 is; the gradients of both are sums over the samples.
    report = sn.explain(
        gradient_of_what_column_shards_take,
        *(f32(8, 16), f32(16, 32), f32(32, 16)),
        mesh="data=2,tp=4",
        in_specs=(P("data"), P(None, "tp"), P("tp")),
    )
    assert sorted((one.axes, one.role, one.role_of) for one in report.collectives) == [
        (("data",), "gradient", "w1"),
        (("data",), "gradient", "w2"),
        (("tp",), "tensor-parallel-sum", "w1"),
        (("tp",), "tensor-parallel-sum", "w2"),
    ]


@jax.custom_vjp
def copied(x):
    """Megatron's f: the identity, whose backward pass adds up what the shards of a layer make."""
    return x


copied.defvjp(lambda x: (x, None), lambda _, g: (lax.psum(g, "model"),))


@jax.custom_vjp
def synchronized(w):
    """The same over the batch: what data parallelism needs of a parameter."""
    return w


synchronized.defvjp(lambda w: (w, None), lambda _, g: (lax.psum(g, "data"),))


def called_in_shard_map(loss, specs, out_spec, differentiated):
    def step(w, x, y):
        grads = jax.shard_map(
            jax.grad(loss, differentiated), in_specs=specs, out_specs=out_spec, check_vma=False
        )
        return grads(w, x, y)

    args = [f32(64, 64)] * len(specs)
    report = sn.explain(step, *args, mesh="data=4,model=2", in_specs=specs, origins=False)
    return [(one.role, one.role_of, one.axes) for one in report.collectives]


def copied_into_a_frozen_layer(w, x, y):
    return jnp.sum((copied(x) @ w - y) ** 2)


def test_a_sum_over_the_columns_of_a_layer_that_is_not_trained_is_not_data_parallelism():
    """It is the gradient of `x` as well; which strategy needs it the program does not tell."""
    specs = P(None, "model"), P("data"), P("data", "model")
    found = called_in_shard_map(copied_into_a_frozen_layer, specs, P("data"), 1)
    assert found == [("called", "", ("model",))]


def test_a_sum_over_the_batch_in_a_backward_pass_is_the_gradient():
    def loss(w, x, y):
        return jnp.mean((x @ synchronized(w) - y) ** 2)

    found = called_in_shard_map(loss, (P(), P("data"), P("data")), P(), 0)
    assert found == [("gradient", "w", ("data",))]


def test_parameters_of_one_shape_in_a_shard_map_have_their_gradients():
    """What the first layer takes, and the second one, tells whose gradient a product is."""

    def loss(w, v, x, y):
        h = lax.psum(jax.nn.relu(copied(x) @ w) @ v, "model")
        return jnp.mean((h - y) ** 2)

    def step(w, v, x, y):
        mean = jax.shard_map(
            lambda *args: lax.pmean(loss(*args), "data"),
            in_specs=(P(None, "model"), P("model"), P("data"), P("data")),
            out_specs=P(),
            check_vma=False,
        )
        return jax.grad(mean, (0, 1))(w, v, x, y)

    specs = P(None, "model"), P("model"), P("data"), P("data")
    report = sn.explain(
        step, *[f32(64, 64)] * 4, mesh="data=4,model=2", in_specs=specs, origins=False
    )
    found = {(one.role, one.role_of, one.axes) for one in report.collectives if one.role}
    assert found == {
        ("tensor-parallel-sum", "v", ("model",)),
        ("gradient", "w", ("data",)),
        ("gradient", "v", ("data",)),
    }
