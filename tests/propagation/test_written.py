"""Names of values in sentences: the user's variable or expression before any primitive's name."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.sources.expressions import expressions, text_of, written_as


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


def sentences(fn, *shapes, specs):
    args = [f32(*shape) if isinstance(shape, tuple) else shape for shape in shapes]
    report = sn.explain(fn, *args, mesh="data=8", in_specs=specs, origins=False)
    return [one.why.partition(": ")[2] for one in report.collectives]


def test_a_sentence_says_what_the_user_wrote():
    def layers(x, w):
        return jnp.tanh(x @ w).mean(0)

    def long(x, w):
        return jnp.tanh(jnp.maximum(x * 3.0 + 2.0, 1.0)[:, :] @ w)

    over = "over a dimension sharded over data, so each device has only a partial sum."
    (first,) = sentences(layers, (16, 32), (32, 8), specs=(P("data"), P()))
    assert first == f"the sum in jnp.tanh(x @ w).mean(0) is {over}"
    (second,) = sentences(long, (16, 32), (32, 8), specs=SUMMED)
    assert second == f"(...) @ w sums {over}"


def test_a_backward_pass_is_said_with_what_it_differentiates():
    def loss(w, x):
        return jnp.sum(jnp.tanh(x @ w))

    (said,) = sentences(jax.grad(loss), (32, 8), (16, 32), specs=(P(), P("data")))
    assert said.startswith("the backward pass of x @ w sums over a dimension sharded over data")


def test_a_product_of_a_python_loop_is_named_each_time():
    def layers(x, *weights):
        for w in weights:
            x = jnp.tanh(x) @ w
        return x

    square = (16, 16)
    specs = P(None, "data"), P("data"), P("data"), P("data")
    assert producers(layers, *[square] * 4, specs=specs)[:2] == ["jnp.tanh(x) @ w"] * 2


def rnn_over_time(h, w, xs):
    def step(hidden, x):
        return jnp.tanh(hidden @ w + x), None

    return lax.scan(step, h, xs)[0]


def test_what_a_loop_carries_has_the_name_of_the_loops_body():
    (moved,) = producers(
        rnn_over_time, (8, 16), (16, 16), (5, 8, 16), specs=(P(None, "data"), P(None, "data"), P())
    )
    assert moved == "hidden"


def rows_by_an_index(table, rows):
    return jnp.sin(table[rows])


def row_added(x, row):
    return x + row


def test_indices_are_named_as_the_look_up_has_them():
    rows = jax.ShapeDtypeStruct((16,), "int32")
    said = sentences(rows_by_an_index, (64, 4), rows, specs=P("data"))
    assert said[0].endswith("data also shards another dimension of table, so rows is gathered.")
    assert said[1].startswith("table[rows] looks up entries along a dimension sharded over data")


def test_indices_that_are_sharded_like_a_table_are_named():
    def shuffled(rows, order):
        return jnp.tanh(rows[order])

    order = jax.ShapeDtypeStruct((24,), "int32")
    (said,) = sentences(shuffled, (24, 6), order, specs=P("data"))
    assert said.endswith("but data also shards the indices order, so rows is gathered.")


def test_a_row_that_is_repeated_keeps_its_name_and_its_dimension():
    (said,) = sentences(row_added, (16, 8), (8,), specs=P("data"))
    assert said.startswith("row is sharded over data on dimension 0, but data also shards")


def test_a_layer_of_a_scan_is_a_slice_of_the_stack():
    def layers(x, stack):
        return lax.scan(lambda x, w: (jnp.tanh(x @ w), None), x, stack)[0]

    assert producers(layers, (16, 32), (3, 32, 32), specs=(P("data"), P(None, "data"))) == [
        "slice of stack"
    ]


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
        ("reduce_or", "h = jnp.any(x > 0)", "jnp.any(x > 0)"),
        ("reduce_and", "h = (x > 0).all(0)", "(x > 0).all(0)"),
        ("reduce_prod", "h = jnp.prod(x)", "jnp.prod(x)"),
        ("tanh", "h = jnp.tanh(x)", "jnp.tanh(x)"),
        ("dot_general", "h = layer(x)", ""),
        ("dot_general", "h = a @ b @ c", "a @ b @ c, a @ b"),
        ("dot_general", f"h = jnp.dot({'+'.join('abcdefghijklmnopqrst')}, w)", "jnp.dot((...), w)"),
        ("gather", "h = table[rows][::2]", "table[rows]"),
        ("gather", "h = table.at[rows].get()", ""),
        ("add", f"h = x + {'y' * 40}", ""),
        ("add", "h = x + y + z", "x + y + z, x + y"),
        ("add", "h = x + (", ""),
    ],
)
def test_an_expression_is_told_by_the_operation(operation, text, name):
    written = written_as(operation, expressions(text).get((1, 4), ()))
    assert ", ".join(map(text_of, written)) == name


def chain(a, b, c):
    return jnp.tanh(a @ b @ c)


def chain_of_methods(a, b, c):
    return a.dot(b).dot(c)


def chain_on_several_lines(a, b, c):
    return (
        a
        @ b
        @ c
    )  # fmt: skip


def chain_with_a_product_inside(a, b, c):
    return (a.T @ a) @ (b * 2) @ c


def chain_in_a_loop(a, b, c):
    for _ in range(2):
        a = jnp.sin(a @ b @ c)
    return a


BY_ROWS = P("data"), P("data"), P("data")
BY_SUMS = P(None, "data"), P("data"), P("data")


@pytest.mark.parametrize(
    ("fn", "specs", "names"),
    [
        (chain, BY_SUMS, ["a @ b", "a @ b @ c"]),
        (chain_of_methods, BY_SUMS, ["a.dot(b)", "a.dot(b).dot(c)"]),
        (chain_on_several_lines, BY_SUMS, ["a @ b", "a @ b @ c"]),
        (
            chain_with_a_product_inside,
            BY_ROWS,
            ["a.T @ a", "a.T @ a @ (b * 2)", "a.T @ a @ (b * 2) @ c"],
        ),
        (chain_in_a_loop, BY_SUMS, ["a @ b", "a @ b @ c"] * 2),
    ],
)
def test_each_product_of_a_chain_has_its_own_name(fn, specs, names):
    """Each sums over a sharded dimension, so what it makes is sent."""
    assert producers(fn, *[(64, 64)] * 3, specs=specs) == names


def test_what_a_chain_takes_is_named_by_the_product_inside():
    assert producers(chain, *[(64, 64)] * 3, specs=[P(None, "data")] * 3) == ["a", "a @ b"]


def test_a_product_that_is_left_of_a_chain_has_no_expression():
    """Nothing needs the second product of the forward pass, so which one is left is not plain."""
    grads = jax.grad(lambda a, b, c: (a @ b @ c).sum(), (1, 2))
    report = sn.explain(grads, *[f32(64, 64)] * 3, mesh="data=8", in_specs=P("data"), origins=False)
    assert "@" not in next(one.why for one in report.collectives if "of b (" in one.why)


def test_the_backward_pass_of_a_chain_is_that_of_all_of_it():
    def grads(a, b, c):
        return jax.grad(lambda b, c: (a @ b @ c).sum(), (0, 1))(b, c)

    args = [f32(64, 64)] * 3
    report = sn.explain(grads, *args, mesh="data=8", in_specs=P("data"), origins=False)
    backward = [one.why for one in report.collectives if "backward pass of" in one.why]
    assert backward
    assert all("the backward pass of a @ b @ c" in why for why in backward)
