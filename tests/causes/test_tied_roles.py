"""Gradients of parameters that are used more than once: each part is that parameter's gradient."""

from __future__ import annotations

from collections import Counter

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec as P

import shardnb as sn
from tests.causes.cases import f32
from tests.needs import needs_libtpu

TARGETS = [None, pytest.param("v5e:2x4", marks=needs_libtpu)]
TOKENS = jax.ShapeDtypeStruct((32, 16), "int32")
TIED = {"table": f32(512, 64), "w": f32(64, 64)}


def tied_loss(params, tokens, labels):
    h = jax.nn.relu(params["table"][tokens] @ params["w"])
    logits = jax.nn.log_softmax(h @ params["table"].T)
    return -jnp.mean(jnp.take_along_axis(logits, labels[..., None], -1))


def cast_loss(params, tokens, labels):
    params = jax.tree.map(lambda leaf: leaf.astype("bfloat16"), params)
    return tied_loss(params, tokens, labels).astype("float32")


def trained(loss):
    def step(params, *batch):
        grads = jax.grad(loss)(params, *batch)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)

    return step


def roles(fn, params, *batch, spec, target):
    specs = dict.fromkeys(params, spec)
    report = sn.explain(
        fn,
        params,
        *batch,
        mesh="data=8",
        in_specs=(specs, *(P("data") for _ in batch)),
        out_specs=specs,
        on=target,
        origins=False,
    )
    return Counter((one.role, one.role_of) for one in report.collectives)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("loss", [tied_loss, cast_loss])
@pytest.mark.parametrize("how", [trained, jax.grad])
def test_a_tied_embedding_has_two_gradients(how, loss, target):
    """On TPU the rows of the look-up are added to the gradient of the product."""
    assert roles(how(loss), TIED, TOKENS, TOKENS, spec=P(), target=target) == {
        ("gradient", "params['table']"): 2,
        ("gradient", "params['w']"): 1,
    }


def test_a_tied_embedding_of_fsdp_scatters_both_gradients():
    assert roles(trained(tied_loss), TIED, TOKENS, TOKENS, spec=P("data"), target=None) == {
        ("parameter-gather", "params['table']"): 2,
        ("parameter-gather", "params['w']"): 1,
        ("gradient-scatter", "params['table']"): 2,
        ("gradient-scatter", "params['w']"): 1,
    }


@needs_libtpu
def test_on_tpu_a_gradient_that_is_added_to_another_is_moved():
    """TPU scatters the gradient of the product, and gathers it to add the rows of the look-up."""
    found = roles(trained(tied_loss), TIED, TOKENS, TOKENS, spec=P("data"), target="v5e:2x4")
    assert found["gradient-scatter", "params['table']"] == 2
    assert found["gradient-reshard", "params['table']"] == 1


def siamese(params, x, y):
    h, other = (jax.nn.relu(one @ params["w"]) @ params["v"] for one in (x, y))
    return jnp.mean((h - other) ** 2)


def added_by_the_user(params, x, y):
    first, second = jax.grad(siamese)(params, x, y), jax.grad(siamese)(params, y, x)
    return jax.tree.map(lambda p, g, h: p - 0.1 * (g + h), params, first, second)


@pytest.mark.parametrize(("fn", "uses"), [(trained(siamese), 2), (added_by_the_user, 4)])
@pytest.mark.parametrize("target", TARGETS)
def test_each_use_of_a_parameter_has_its_gradient(fn, uses, target):
    """TPU adds the gradients of all uses before it sends them."""
    uses = uses if target is None else 1
    params = {"w": f32(64, 64), "v": f32(64, 64)}
    batch = f32(64, 64), f32(64, 64)
    assert roles(fn, params, *batch, spec=P(), target=target) == {
        ("gradient", "params['w']"): uses,
        ("gradient", "params['v']"): uses,
    }


def masked_patches(params, x):
    count = x.shape[0]
    masks = jnp.repeat(jnp.repeat(params["mask"][None, None], 8, 1), count, 0)
    h = jnp.concatenate([(x @ params["embed"])[:, :8], masks], 1)
    return jnp.mean((jax.nn.relu(h) @ params["w"] - x) ** 2)


PATCHES = {"mask": f32(64), "embed": f32(192, 64), "w": f32(64, 192)}


def test_a_repeated_parameter_has_its_gradient_from_two_sums():
    """The sum over the batch is sent, and each device adds up the 8 repeated rows of it."""
    assert roles(trained(masked_patches), PATCHES, f32(32, 16, 192), spec=P(), target=None) == {
        ("gradient", f"params['{name}']"): 1 for name in PATCHES
    }


def test_what_is_repeated_and_then_gathered_is_not_a_parameters_gather():
    """FSDP gathers 8 rows of the mask, which are 8 times its bytes."""
    found = roles(trained(masked_patches), PATCHES, f32(32, 16, 192), spec=P("data"), target=None)
    assert found["parameter-gather", "params['mask']"] == 0
    assert found["parameter-gather", "params['w']"] == 1
    assert found[None, ""] == 1
    assert found["gradient-scatter", "params['mask']"] == 1
