"""Names of values in sentences: the user's variable or expression before any primitive's name."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.sources.expressions import expression_of, expressions


def f32(*shape):
    return jax.ShapeDtypeStruct(shape, "float32")


SUMMED = P(None, "data"), P("data")


def producers(fn, *shapes, specs=SUMMED):
    args = [f32(*shape) for shape in shapes or ((16, 32), (32, 8))]
    report = sn.explain(fn, *args, mesh="data=8", in_specs=specs, origins=False)
    return [one.producer for one in report.collectives]


def variable(x, w):
    h = x @ w
    return jnp.tanh(h)


def expression(x, w):
    return jnp.tanh(x @ w + 1)


def argument_assigned_anew(x, w):
    x = x @ w
    return jnp.tanh(x)


def function(x, w):
    return jnp.einsum("ij,jk->ik", x, w)


def mean(x, w):
    return jnp.mean(x[:, :, None] * w)


def two_on_a_line(x, w):
    a = x @ w; b = jnp.sum(x, 1)  # fmt: skip  # noqa: E702
    return a + b[:, None]


def tangent(x, w):
    return jax.jvp(lambda x: x @ w, (x,), (jnp.sin(x),))[1]


@pytest.mark.parametrize(
    ("fn", "names"),
    [
        (variable, ["h"]),
        (expression, ["x @ w"]),
        (
            argument_assigned_anew,
            [f"x of line {argument_assigned_anew.__code__.co_firstlineno + 1}"],
        ),
        (function, ["jnp.einsum('ij,jk->ik', x, w)"]),
        (mean, ["result of reduce_sum"]),
        (two_on_a_line, ["a", "b"]),
        (tangent, ["result of dot_general"]),
    ],
)
def test_a_value_is_named_as_it_is_written(fn, names):
    assert sorted(producers(fn)) == names


def test_a_gradient_has_no_name_of_the_line_that_is_differentiated():
    def loss(w, x):
        h = x @ w
        return (h * h).sum()

    names = producers(jax.grad(loss), (32, 8), (16, 32), specs=(P(), P("data")))
    assert names == ["result of dot_general"]


def test_the_body_of_a_differentiated_shard_map_has_none_either():
    def ulysses(x, w):
        def inner(x, w):
            y = lax.all_to_all(x @ w, "data", 1, 0, tiled=True)
            z = lax.all_to_all(jnp.exp(y), "data", 0, 1, tiled=True)
            return lax.psum((z**2).sum(), "data")

        loss = jax.shard_map(inner, in_specs=(P("data"), P()), out_specs=P())
        return jax.grad(loss)(x, w)

    names = producers(ulysses, (32, 8, 4), (4, 4), specs=(P("data"), P()))
    assert set(names) & {"y", "z"} == set()


def test_a_call_of_several_arrays_is_not_the_name_of_one():
    def exchanged(x, w):
        def body(x, w):
            pairs = [(at, (at + 1) % 8) for at in range(8)]
            return jnp.sin(lax.ppermute(lax.ppermute((x, w), "data", pairs), "data", pairs)[0])

        return jax.shard_map(body, in_specs=P("data"), out_specs=P("data"))(x, w)

    names = producers(exchanged, (16, 8), (16, 8), specs=P("data"))
    assert not [name for name in names if name.startswith("lax.")]


@pytest.mark.parametrize(
    ("operation", "text", "name"),
    [
        ("dot_general", "h = x @ w + b", "x @ w"),
        ("add", "h = x @ w + b", "x @ w + b"),
        ("sub", "h = x @ w + b", ""),
        ("reduce_sum", "h = (x * x).sum(0)", "(x * x).sum(0)"),
        ("reduce_sum", "h = (x * x).mean(0)", ""),
        ("tanh", "h = jnp.tanh(x)", "jnp.tanh(x)"),
        ("dot_general", "h = layer(x)", ""),
        ("add", f"h = x + {'+'.join('abcdefghijklmnopqrstuvw')}", ""),
        ("add", "h = x + (", ""),
    ],
)
def test_an_expression_is_told_by_the_operation(operation, text, name):
    assert expression_of(operation, expressions(text).get((1, 4), ())) == name
