"""Softmaxes over a sharded dimension: their maximum and their sum have a role, nothing else has."""

from __future__ import annotations

import math
from collections import Counter

import jax
import jax.numpy as jnp
import optax
import pytest
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.report.strategies import strategy_of
from tests.causes.cases import f32

CLASSES = {"w": P(None, "model")}


def with_integer_labels(params, h, labels):
    logits = h @ params["w"]
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def with_one_hot_labels(params, h, labels):
    log_probabilities = jax.nn.log_softmax(h @ params["w"] / 2)
    return -jnp.mean(jnp.sum(jax.nn.one_hot(labels, 32) * log_probabilities, -1))


def with_probabilities(params, h, labels):
    probabilities = jax.nn.softmax((h @ params["w"]).astype("bfloat16").astype("float32"))
    return -jnp.mean(jnp.log(jnp.take_along_axis(probabilities, labels[:, None], -1)))


def report_of_step(loss):
    def step(params, h, labels):
        value, grads = jax.value_and_grad(loss)(params, h, labels)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value

    return sn.explain(
        step,
        {"w": f32(16, 32)},
        f32(8, 16),
        jax.ShapeDtypeStruct((8,), "int32"),
        mesh="data=2,model=4",
        in_specs=(CLASSES, P("data"), P("data")),
        out_specs=(CLASSES, P()),
        origins=False,
    )


@pytest.mark.parametrize("loss", [with_integer_labels, with_one_hot_labels, with_probabilities])
def test_a_cross_entropy_over_sharded_classes_has_a_maximum_and_a_sum(loss):
    """4 rows per device, of each the maximum and the sum of 32 classes, of which it has 8."""
    report = report_of_step(loss)
    found = [c for c in report.collectives if c.role == "softmax"]
    assert {(c.role_of, c.axes, c.shape) for c in found} == {("params['w']", ("model",), (4,))}
    assert sorted(c.consumer for c in found) == ["reduce_max", "reduce_sum"]
    assert {strategy_of(c, report) for c in found} == {"tensor parallelism"}
    roles = Counter(c.role for c in report.collectives)
    assert (roles["gradient"], roles["loss"]) == (1, 1)
    # What the label picks of each row is with one device, as are its classes.
    (picked,) = [c for c in report.collectives if c.role == "tensor-parallel-sum"]
    assert (picked.role_of, picked.axes, math.prod(picked.shape)) == ("params['w']", ("model",), 4)
    assert picked.consumer in ("gather", "reduce_sum")


def attention(q, k):
    return jax.nn.softmax(q @ k.T)


def test_a_softmax_of_two_arguments_is_of_no_parameter():
    """Keys are sharded: each device has the scores of a quarter of them."""
    report = sn.explain(
        attention,
        f32(8, 16),
        f32(32, 16),
        mesh="data=2,model=4",
        in_specs=(P("data"), P("model")),
        origins=False,
    )
    assert [(c.role, c.role_of, c.axes) for c in report.collectives] == [
        ("softmax", "", ("model",)),
        ("softmax", "", ("model",)),
    ]
    assert {strategy_of(c, report) for c in report.collectives} == {None}


@pytest.mark.parametrize(
    "reduced",
    [
        lambda x: jnp.exp(x).sum(-1),
        lambda x: jnp.exp(x - x.mean(-1, keepdims=True)).sum(-1),
        lambda x: jnp.exp(x - x.max(0)).sum(-1),
        lambda x: jnp.exp(x - (2 * x).max(-1, keepdims=True)).sum(-1),
        lambda x: jnp.exp(x - x.max(-1, keepdims=True)).max(-1),
    ],
)
def test_other_exponentials_and_maxima_are_no_softmax(reduced):
    report = sn.explain(
        reduced, f32(8, 32), mesh="data=2,model=4", in_specs=P("data", "model"), origins=False
    )
    assert report.collectives
    assert "softmax" not in {c.role for c in report.collectives}


def test_a_softmax_with_explicit_axes_has_copies_that_state_shardings():
    def negative_log_sum(h, w):
        logits = h @ w
        shifted = logits - jnp.max(logits, -1, keepdims=True)
        return jnp.log(jnp.sum(jnp.exp(shifted), -1))

    report = sn.explain(
        negative_log_sum,
        f32(8, 16),
        f32(16, 32),
        mesh="data=2,model=4",
        in_specs=(P("data", None), P(None, "model")),
        axes="explicit",
        origins=False,
    )
    assert [c.role for c in report.collectives] == ["softmax", "softmax"]
