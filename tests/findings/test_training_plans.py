"""Training steps as they should be: every collective has its role, and no mistake is found."""

from __future__ import annotations

from collections import Counter

import jax
import pytest
from jax.sharding import PartitionSpec as P

import shardnb as sn
from tests.bank.training import BATCH, LENGTH, MESH, PLANS, step_and_shapes

MISTAKES = {
    *("lost sharding", "state unlike parameters", "returned otherwise"),
    *("repeated gather", "activation gather", "replicated"),
}
# 19 parameters. Megatron sums over shards of the embedding, of what attention and the MLP put out,
# in the backward pass of what the head, the MLP, the queries, the keys and the values take, and of
# the head's logits what the labels pick; the maximum and the sum of the cross entropy are a
# softmax's. FSDP gathers each parameter, and the scales of both norms once more in the backward
# pass, in another shape.
EXPECTED = {
    "data parallel": {"gradient": 19, "loss": 1},
    "megatron": {"gradient": 19, "loss": 1, "tensor-parallel-sum": 9, "softmax": 2},
    "fsdp": {"gradient-scatter": 19, "loss": 1, "parameter-gather": 21},
}


def explained(name):
    step, params, moments = step_and_shapes()
    rule, batch = PLANS[name]
    specs = {path: rule(path, leaf.shape) for path, leaf in params.items()}
    state = (moments[0]._replace(count=P(), mu=specs, nu=specs), *moments[1:])
    tokens = jax.ShapeDtypeStruct((BATCH, LENGTH), "int32")
    placed = {"in_specs": (specs, state, batch, batch), "out_specs": (specs, state, P())}
    return sn.explain(step, params, moments, tokens, tokens, mesh=MESH, origins=False, **placed)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_plan_that_is_as_it_should_be(name):
    report = explained(name)
    assert Counter(one.role for one in report.collectives) == EXPECTED[name]
    gradients = [one.role_of for one in report.collectives if "gradient" in (one.role or "")]
    assert len(set(gradients)) == 19
    assert not MISTAKES & {one.kind for one in report.findings}


def test_fsdp_and_megatron_without_a_constraint_lose_the_batch_at_the_embedding():
    """The known fix is one constraint on what the embedding gives."""
    (finding,) = [one for one in explained("fsdp and megatron").findings if one.kind in MISTAKES]
    assert finding.kind == "lost sharding"
    assert "params['embed/embedding'] has data for dimension 2" in finding.message
    assert [edit.text for edit in finding.edits] == [
        "x = jax.lax.with_sharding_constraint(x, P('data'))"
    ]
