"""Names of what JAX computes in steps: the user's call, and on TPU those of a factorization."""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec as P

import shardnb as sn
from tests.causes.cases import f32
from tests.needs import needs_gpu_compiler, needs_libtpu

MATRIX = f32(64, 64)


def solved(a, b):
    return jnp.linalg.solve(a, b)


def pseudo_inverse(a):
    return jnp.linalg.pinv(a)


def factored(a):
    return jnp.linalg.qr(a)


def explained(fn, *args, target=None):
    return sn.explain(fn, *args, mesh="data=8", in_specs=P("data"), on=target, origins=False)


@pytest.mark.parametrize(
    ("fn", "count", "step"),
    [
        (solved, 2, "the lu in jnp.linalg.solve(a, b)"),
        (pseudo_inverse, 1, "the svd in jnp.linalg.pinv(a)"),
        (factored, 1, "the geqrf in jnp.linalg.qr(a)"),
    ],
)
def test_an_operation_of_another_name_is_a_step_of_the_users_call(fn, count, step):
    report = explained(fn, *[MATRIX] * count)
    assert f"cannot keep {step} sharded here" in report.collectives[0].why


def swish(x, g):
    return jax.nn.silu(x) * g


def test_what_a_call_computes_inside_is_not_what_is_made_of_it():
    """Both are multiplications that begin at one place; only `silu`'s own is sent."""
    report = sn.explain(
        swish, MATRIX, MATRIX, mesh="data=8", in_specs=(P("data"), P(None, "data")), origins=False
    )
    (sent,) = report.collectives
    assert sent.producer == "jax.nn.silu(x)"
    assert "before jax.nn.silu(x) * g" in sent.why


def cross_entropy(scores):
    return -jax.nn.log_softmax(scores, 0)[jnp.arange(64), jnp.arange(64)].mean()


def test_a_sum_inside_a_call_is_not_that_of_the_mean_of_its_result():
    report = explained(cross_entropy, MATRIX)
    sums = [one.why for one in report.collectives if one.role == "softmax"]
    assert len(sums) == 2
    assert not [why for why in sums if "mean()" in why]


def singular_vectors(a):
    return jnp.linalg.svd(a, full_matrices=False)[0]


def least_squares(a, b):
    return jnp.linalg.lstsq(a, b)[0]


def eigenvectors(a):
    return jnp.linalg.eigh(a)[1]


COMPILERS = re.compile(r"(?<![-\w])(custom-call|convert|copy|dot|fusion|reduce|while)(?![-\w])")
"""The compiler's own names, which no user writes and JAX has others for."""


@needs_libtpu
@pytest.mark.parametrize(
    ("fn", "count", "name"),
    [(singular_vectors, 1, "svd"), (least_squares, 2, "svd"), (eigenvectors, 1, "eigh")],
)
def test_steps_on_tpu_are_named_by_the_factorization(fn, count, name):
    report = explained(fn, *[f32(32, 32)] * count, target="v5e:2x4")
    steps = [one for one in report.collectives if one.consumer == name]
    assert len(steps) > 5
    named = [text for one in steps for text in (one.producer, one.why) if text]
    assert not [text for text in named if COMPILERS.search(text)]
    assert {one.line for one in steps} == {fn.__code__.co_firstlineno + 1}
    made = {one.producer for one in steps} - {None, "a", "b"}
    assert all("a step of" in producer or producer.startswith("result of ") for producer in made)
    assert any(producer.startswith("a step of") for producer in made)


def two_sums_in_a_row(x):
    return jnp.sum(x * x, -1).mean()


def two_means_in_a_row(x):
    return x.mean(-1).mean()


@pytest.mark.parametrize(
    ("fn", "text"),
    [
        (two_sums_in_a_row, "jnp.sum(x * x, -1).mean()"),
        (two_means_in_a_row, "x.mean(-1).mean()"),
    ],
)
@pytest.mark.parametrize(
    "target", [None, pytest.param("h100:8", marks=needs_gpu_compiler)], ids=["cpu", "gpu"]
)
def test_of_two_sums_in_a_row_neither_is_named_as_the_one_that_is_sent(fn, text, target):
    """XLA for GPU makes one sum of both, in the name of the inner one."""
    (sent,) = explained(fn, MATRIX, target=target).collectives
    assert sent.shape == ()
    assert sent.producer == "result of reduce_sum"
    assert f" sum in {text} is over a dimension sharded over data" in sent.why
