"""Collectives that are sent together: each member has its own line, name and cause.

Line numbers and counts are read off the functions below; what is left is called + made - gone.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.texts import hlo
from tests.bank import layers  # noqa: F401 - fills the bank
from tests.bank.case import BANK, explain
from tests.needs import needs_libtpu

ADAFACTOR = optax.adafactor(1e-3, min_dim_size_to_factor=16)


def f32(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def lines(report):
    return [report.source.line(c.line).strip() for c in report.collectives]


def called(x, y, z):
    def reduced(x, y, z):
        a = lax.psum(x.sum(0), "data")
        b = lax.pmean(y.sum(0), "data")
        c = lax.psum_scatter(z, "data", tiled=True)
        return a, b, c

    return jax.shard_map(reduced, in_specs=P("data"), out_specs=(P(), P(), P("data")))(x, y, z)


def trained(x, w, v):
    def averaged(x, w, v):
        def loss(w, v):
            return jnp.mean(jnp.tanh(x @ w) @ v)

        value, gradients = jax.value_and_grad(loss, argnums=(0, 1))(w, v)
        value = lax.pmean(value, "data")
        gradients = lax.pmean(gradients, "data")
        return value, gradients

    specs = P("data"), P(), P()
    return jax.shard_map(averaged, in_specs=specs, out_specs=P(), check_vma=False)(x, w, v)


def partly_called(x, y):
    def summed(x):
        return lax.psum(x.sum(0), "data")

    first = jax.shard_map(summed, in_specs=P("data"), out_specs=P())(x)
    second = jnp.cos(y).sum(0)
    return first, second


def test_called_members_have_their_own_lines_and_phase():
    report = sn.explain(
        trained, f32(64, 32), f32(32, 16), f32(16, 8), mesh="data=8", in_specs=(P("data"), P(), P())
    )
    assert len(report.collectives[0].combined_with) == 2
    value, *gradients = (
        (report.source.line(c.line).strip(), c.shape, c.phase) for c in report.collectives
    )
    # The user calls pmean after the derivative, so neither is of the backward pass.
    assert value == ('value = lax.pmean(value, "data")', (), None)
    assert sorted(gradients) == [
        ('gradients = lax.pmean(gradients, "data")', (16, 8), None),
        ('gradients = lax.pmean(gradients, "data")', (32, 16), None),
    ]


def test_a_called_member_is_sent_together_with_one_of_the_partitioner():
    report = sn.explain(partly_called, f32(64, 32), f32(64, 32), mesh="data=8", in_specs=P("data"))
    assert [(c.asked_by, c.consumer) for c in report.collectives] == [
        ("called", "the program's result"),
        ("inferred", "reduce_sum"),
    ]
    assert lines(report) == ['return lax.psum(x.sum(0), "data")', "second = jnp.cos(y).sum(0)"]
    (note,) = report.notes
    assert note == (
        "the program calls 1 collective and the partitioner inserted 1 collective, and 2 of them are "
        "sent together with others"
    )


@needs_libtpu
def test_what_tpu_adds_up_in_full_for_a_scatter_keeps_its_line():
    report = sn.explain(called, *[f32(64, 32)] * 3, mesh="data=8", in_specs=P("data"), on="v5e:2x4")
    assert lines(report) == [
        'a = lax.psum(x.sum(0), "data")',
        'b = lax.pmean(y.sum(0), "data")',
        'c = lax.psum_scatter(z, "data", tiled=True)',
    ]
    assert [c.producer for c in report.collectives][2] == "z"
    assert {(c.asked_by, c.reason) for c in report.collectives} == {("called", "partial-sum")}
    assert report.collectives[0].combined_with == (1, 2)


def test_two_members_are_not_the_same_collective_of_the_partitioner():
    # Sums of x, of (x - mean)^2 over rows and over all, and of all of x + b: 5 sums, 5 left.
    def moments(x, b):
        return x.mean(0), x.var(0), jnp.std(x + b)

    report = sn.explain(moments, f32(64, 32), f32(32), mesh="data=8", in_specs=(P("data"), P()))
    (note,) = report.notes
    assert note == (
        "the partitioner inserted 5 collectives, and 4 of them are sent together with others"
    )


def three_projections_of_one_line(params, x):
    q, k, v = (x @ params[name] for name in "qkv")
    weights = jax.nn.softmax(jnp.einsum("bqd,bkd->bqk", q, k))
    return jnp.mean(jnp.einsum("bqk,bkd->bqd", weights, v) ** 2)


def layers_of_one_line(params, x):
    for w in params.values():
        x = jnp.tanh(x @ w)
    return jnp.mean(x**2)


def updated_with(report, collective):
    """Read in the compiled text with which parameter what a member brings is put together."""
    graph = hlo.parse(report.texts["optimized"])
    graph = graph.computations[graph.entry]
    at = sorted((collective.id, *collective.combined_with)).index(collective.id)
    start = collective.instruction.partition(" = ")[0].lstrip("%")
    queue, updates = [(start, at if collective.combined_with else None)], set()
    for name, element in queue:
        for user in graph.body:
            operands = [operand.name for operand in user.operands]
            if name not in operands:
                continue
            if user.opcode == "get-tuple-element" and user.integer("index") == element:
                queue.append((user.name, None))
            elif user.opcode == "all-reduce":
                queue.append((user.name, operands.index(name) if len(operands) > 1 else None))
            elif user.opcode == "fusion" and element is None:
                makers = (graph.maker(operand) for operand in user.operands)
                updates |= {made.op_name for made in makers if made.opcode == "parameter"}
    return {name.replace("\\", "") for name in updates}


@pytest.mark.parametrize(
    ("loss", "specs"),
    [
        (three_projections_of_one_line, P("data", "model")),
        (three_projections_of_one_line, P("data")),
        (layers_of_one_line, P("data")),
    ],
)
def test_members_with_one_name_shape_and_line_are_told_apart(loss, specs):
    def step(params, x):
        value, gradients = jax.value_and_grad(loss)(params, x)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), value

    params = {name: f32(16, 16) for name in "qkv"}
    report = sn.explain(
        step, params, f32(8, 12, 16), mesh="data=2,model=4", in_specs=(P(), specs), out_specs=P()
    )
    gradients = [c for c in report.collectives if c.role == "gradient"]
    assert {c.combined_with != () for c in gradients} == {True}
    assert [updated_with(report, c) for c in gradients] == [{c.role_of} for c in gradients]
    expected = {(axis, f"params['{name}']") for axis in specs for name in "qkv"}
    assert sorted((*c.axes, c.role_of) for c in gradients) == sorted(expected)


def adafactor_step(params, state, x, y):
    def loss(p):
        return jnp.mean((jax.nn.gelu(x @ p["w"]) @ p["o"] - y) ** 2)

    value, gradients = jax.value_and_grad(loss)(params)
    updates, state = ADAFACTOR.update(gradients, state, params)
    return optax.apply_updates(params, updates), state, value


def test_steps_of_sums_over_two_axes_are_told_apart_by_what_they_take():
    # The optimizer sums scalars over both axes, each in two steps that XLA sends together with
    # others; the loss is the one scalar that is summed over fsdp alone.
    params = {"w": f32(32, 64), "o": f32(64, 32)}
    specs = {"w": P("fsdp", "tp"), "o": P("tp", "fsdp")}
    state, batch = jax.eval_shape(ADAFACTOR.init, params), P("fsdp")
    report = sn.explain(
        adafactor_step,
        *(params, state, f32(16, 32), f32(16, 32)),
        mesh="fsdp=4,tp=2",
        in_specs=(specs, P(), batch, batch),
        out_specs=(specs, P(), P()),
    )
    assert [one.axes for one in report.collectives if one.role == "loss"] == [("fsdp",)]


@pytest.mark.parametrize("name", BANK)
def test_what_is_left_is_what_was_called_and_made_less_what_is_gone(name):
    counts = explain(BANK[name]).counts
    called, made, left = (sum(n.values()) for n in (counts.called, counts.made, counts.left))
    assert left == called + made - counts.gone + counts.copied + counts.added
    assert min(counts.gone, counts.copied, counts.added) == 0
