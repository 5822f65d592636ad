"""Whole training steps: every collective judged, the combined ones by their members.

The counts were taken from the programs right after partitioning, read by hand.
"""

from __future__ import annotations

import functools
from collections import Counter

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec as P

from shardnb.causes import Causes, explain_causes
from shardnb.collectives.find import find_collectives
from shardnb.compiler import Request, build
from shardnb.mesh import make_grid
from shardnb.texts import hlo
from tests.bank.training import BATCH, LENGTH, MESH, PLANS, step_and_shapes

SUM = ("all-reduce", "inferred", "partial-sum")
GATHER = ("all-gather", "inferred", "conflict")

# 19 gradients and the loss.
EXPECTED = {
    "data parallel": {SUM: 20},
    "megatron": {SUM: 31},
    "fsdp": {SUM: 20, GATHER: 21},
    "fsdp and megatron": {
        SUM: 35,
        GATHER: 29,
        ("all-to-all", "inferred", "conflict"): 6,
        # One brings the embedding's gradient to its place: data splits the batch that the
        # scatter adds up, and the features of its result.
        ("collective-permute", "inferred", "conflict"): 2,
    },
}

if jax.__version__.startswith("0.11"):
    EXPECTED["fsdp and megatron"] = {
        SUM: 35,
        GATHER: 28,
        ("all-to-all", "inferred", "conflict"): 8,
        ("collective-permute", "inferred", "conflict"): 1,
    }


@functools.cache
def causes(plan: str) -> Causes:
    rule, batch = PLANS[plan]
    step, params, moments = step_and_shapes()
    specs = {name: rule(name, leaf.shape) for name, leaf in params.items()}
    moment_specs = jax.tree_util.tree_map_with_path(
        lambda path, _: next((specs[k.key] for k in path if getattr(k, "key", "") in specs), P()),
        moments,
    )
    tokens = jax.ShapeDtypeStruct((BATCH, LENGTH), jnp.int32)
    grid = make_grid(MESH)
    request = Request(
        step,
        {"params": params, "moments": moments, "tokens": tokens, "targets": tokens},
        grid,
        {"params": specs, "moments": moment_specs, "tokens": batch, "targets": batch},
        (specs, moment_specs, P()),
    )
    program = build(request)
    optimized, mesh = hlo.parse(program.optimized), grid.describe()
    found = find_collectives(optimized, mesh, lambda _: (), hlo.parse(program.dumps.partitioned))
    return explain_causes(found, optimized=optimized, dumps=program.dumps, mesh=mesh)


@pytest.mark.parametrize("plan", PLANS)
def test_reasons(plan):
    found = Counter((c.kind, c.asked_by, c.reason) for c in causes(plan).collectives)
    assert dict(found) == EXPECTED[plan]


def test_combined_gradients_are_told_one_by_one():
    collectives = causes("data parallel").collectives
    assert {len(c.combined_with) for c in collectives} == {19}
    assert {c.consumer for c in collectives} == {"dot_general", "reduce_sum", "scatter-add"}


def test_each_parameter_of_fsdp_is_gathered_for_its_use():
    gathered = [c for c in causes("fsdp").collectives if c.kind == "all-gather"]
    assert {c.detail for c in gathered} == {"one mesh axis shards two dimensions"}
    assert all("params[" in c.producer for c in gathered)
    assert all(not any(c.needed_spec) for c in gathered if c.consumer == "dot_general")


def test_gradients_are_backward_and_the_loss_is_forward():
    phases = Counter(c.phase for c in causes("data parallel").collectives)
    assert phases == {"backward": 19, "forward": 1}


def test_counts_say_what_was_made_and_what_is_left():
    counts = causes("fsdp").counts
    assert counts.made == {"all-gather": 21, "all-reduce": 20}
    assert counts.called == {}
    assert counts.combined == 20
    assert not counts.differ
