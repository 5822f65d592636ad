"""One golden report for all versions of JAX that are supported: `.ci/run` has two of them."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

from shardnb.testing import assert_golden

FOLDER = Path(__file__).parent / "shardnb_golden"
MESH = "data=4,model=2"
WIDE, INNER, LAYERS = 64, 128, 3


def loss(params, tokens):
    x = params["embed"][tokens]

    def layer(x, weights):
        up, down = weights
        return x + jax.nn.gelu(x @ up) @ down, None

    x, _ = lax.scan(layer, x, (params["up"], params["down"]))
    logits = jax.nn.log_softmax(x @ params["embed"].T)
    return -jnp.mean(jnp.take_along_axis(logits, tokens[..., None], axis=-1))


def train_step(params, momentum, tokens):
    value, gradients = jax.value_and_grad(loss)(params, tokens)
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, gradients)
    params = jax.tree.map(lambda p, m: p - 0.1 * m, params, momentum)
    return params, momentum, value


def arguments():
    shapes = {"embed": (256, WIDE), "up": (LAYERS, WIDE, INNER), "down": (LAYERS, INNER, WIDE)}
    params = {name: jax.ShapeDtypeStruct(shape, jnp.float32) for name, shape in shapes.items()}
    return params, params, jax.ShapeDtypeStruct((16, 32), jnp.int32)


LAYOUTS = {
    "data_parallel": {"embed": P(), "up": P(), "down": P()},
    "tensor_parallel": {
        "embed": P("model"),
        "up": P(None, None, "model"),
        "down": P(None, "model"),
    },
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_training_step_sends_what_it_sent(name):
    specs = LAYOUTS[name]
    report = assert_golden(
        train_step,
        arguments(),
        path=FOLDER / f"{name}.json",
        mesh=MESH,
        in_specs=(specs, specs, P("data")),
        out_specs=(specs, specs, P()),
        origins=False,
    )
    assert all(collective.reason != "unknown" for collective in report.collectives)
