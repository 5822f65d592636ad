"""Ordinary models for TPU, whose causes were read off the program right after partitioning.

Each program is named in a comment of the code that reads it.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.causes.sentence import Facts, sentence
from shardnb.causes.verdict import Verdict
from shardnb.report.model import Collective
from tests.needs import needs_libtpu

DATA = P("data")


def f32(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def explained(fn, *args, mesh="data=8", on="v5e:2x4", **options):
    return sn.explain(fn, *args, mesh=mesh, on=on, origins=False, **options).collectives


def biases_gathered_after_adam(params, mean, square, x, y):
    def loss(p):
        return jnp.mean((jax.nn.relu(x @ p["w"] + p["b"]) @ p["v"] - y) ** 2)

    grads = jax.grad(loss)(params)
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, grads)
    square = jax.tree.map(lambda s, g: 0.99 * s + 0.01 * g**2, square, grads)
    new = jax.tree.map(lambda p, m, s: p - m / (jnp.sqrt(s) + 1e-8), params, mean, square)
    return new, mean, square


@needs_libtpu
def test_gathers_of_results_that_are_sent_as_one_sum_are_told_apart_by_the_results():
    params = {"w": f32(64, 256), "b": f32(256), "v": f32(256, 8)}
    specs = {"w": P(None, "model"), "b": P(), "v": P("model")}
    found = explained(
        biases_gathered_after_adam,
        *(params, params, params, f32(64, 64), f32(64, 8)),
        mesh="data=2,model=4",
        in_specs=(specs, specs, specs, DATA, DATA),
        out_specs=(specs, specs, specs),
    )
    # The new bias and both its moments are sharded over model at the end, as the columns of w
    # are, and go out replicated: three gathers of 256 elements, which TPU sends as one sum.
    gathers = [c for c in found if c.made_as == "all-gather"]
    assert {(c.role, c.role_of) for c in gathers} == {
        ("parameter-update", "params['b']"),
        ("optimizer-state", "mean['b']"),
        ("optimizer-state", "square['b']"),
    }
    assert len(gathers) == 3
    assert all("it must be P(), because of out_specs" in c.why for c in gathers)


def test_of_what_is_one_of_several_results_the_sentence_says_that_the_user_wrote_its_sharding():
    moved = Collective(0, "all-gather", ("data",), ((0, 1),), "f32", (8,), 16)
    why = sentence(moved, Verdict("output-spec", "requested"), Facts(producer="h"))
    assert why.endswith("h is sharded over data, but you wrote another sharding for it.")


def words_looked_up_by_each_row(table, tokens):
    def read(row):
        return lax.scan(_step, jnp.zeros(64), jnp.take(table, row, axis=0))[0]

    return jax.vmap(read)(tokens)


def _step(carry, x):
    return jnp.tanh(carry + x), None


@needs_libtpu
def test_a_look_up_in_a_sharded_table_under_vmap_is_completed():
    tokens = jax.ShapeDtypeStruct((16, 32), jnp.int32)
    found = explained(
        words_looked_up_by_each_row,
        *(f32(1024, 64), tokens),
        mesh="data=2,vocab=4",
        in_specs=(P("vocab"), DATA),
    )
    # all-reduce(transpose(select(gather))), under the name of the gather.
    assert [(c.kind, c.reason, c.producer, c.consumer) for c in found] == [
        ("all-reduce", "partial-sum", "jnp.take(table, row, axis=0)", "gather")
    ]


def experts_chosen_and_weighed(x, router):
    chances = jax.nn.softmax(x @ router)
    expert = jnp.argmax(chances, -1)
    weight = jnp.max(chances, -1)
    return expert, weight


@needs_libtpu
def test_where_the_largest_element_is_has_the_name_argmax():
    found = explained(
        experts_chosen_and_weighed,
        *(f32(64, 128), f32(128, 32)),
        in_specs=(P(), P(None, "data")),
    )
    # Two gathers of each device's largest element and its place; XLA takes the maximum from there.
    reduced = [c for c in found if c.consumer == "argmax"]
    assert {(c.dtype, c.producer) for c in reduced} == {
        ("f32", "result of reduce_max"),
        ("s32", "jnp.argmax(chances, -1)"),
    }
    assert all("argmax" in c.why for c in reduced)


def layers_gathered_by_hand(ws, x):
    def loss(ws, x):
        def layer(h, w):
            return jnp.tanh(h @ lax.all_gather(w, "data", axis=0, tiled=True)), None

        return lax.pmean(jnp.mean(lax.scan(layer, x, ws)[0] ** 2), "data")

    specs = (P(None, "data"), DATA)
    step = jax.shard_map(loss, in_specs=specs, out_specs=P())
    return ws - 0.1 * jax.grad(step)(ws, x)


@needs_libtpu
def test_nothing_of_the_users_takes_what_a_scan_stacks():
    found = explained(
        layers_gathered_by_hand,
        *(f32(4, 128, 128), f32(64, 128)),
        in_specs=(P(None, "data"), DATA),
        out_specs=P(None, "data"),
    )
    (scattered,) = [c for c in found if c.kind == "reduce-scatter"]
    assert (scattered.role, scattered.role_of) == ("gradient-scatter", "ws")
    assert scattered.consumer is None
    assert " before " not in scattered.why
