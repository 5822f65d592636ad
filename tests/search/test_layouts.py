"""Plans as layouts that people know: which are shown, their rules, constraints in the model."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from shardnb.compiler.call import read_call
from shardnb.mesh import make_grid
from shardnb.report.plans import Plan
from shardnb.rewrite.constraint_texts import with_constraints
from shardnb.search.plans.planned import PlannedRequest, shown
from shardnb.search.plans.planner import field_of
from shardnb.search.plans.rules import rules_of
from tests.search import transformer
from tests.views.conftest import mesh_of

MESH = mesh_of(data=4, model=2)
FSDP = {"data": "fsdp", "model": "fsdp"}
DP = {"data": "data-parallel", "model": "data-parallel"}


def made(memory, sent, layout=FSDP, **more):
    """Return a plan that is compared by what it sends, as it has no cost."""
    return Plan(MESH, {}, memory, sent, layout=layout, flops=more.pop("flops", 100.0), **more)


# Which are shown


def test_a_plan_that_repeats_work_is_not_shown_beside_one_that_does_not():
    repeats, sound = made(100, 0, DP, flops=121.0), made(200, 50)
    assert shown([repeats, sound], 100.0) == (sound,)
    assert shown([replace(repeats, flops=120.0), sound], 100.0) == (replace(repeats, flops=120.0),)


def test_where_all_repeat_work_they_are_shown():
    repeats = made(100, 0, DP, flops=200.0)
    assert shown([repeats], 100.0) == (repeats,)


def test_a_plan_beside_a_recipe_has_to_be_better_than_the_recipe():
    recipe = made(1000, 1000)
    slightly = made(1000, 910, otherwise=("x",))
    assert shown([recipe, slightly], 100.0) == (recipe,)
    much = replace(slightly, wire_bytes=890)
    assert shown([recipe, much], 100.0) == (much,)
    # It sends less, but holds more than the recipe: one reads two layouts and gains a trade-off.
    assert shown([recipe, replace(much, memory=1100)], 100.0) == (recipe,)


def test_a_recipe_that_is_beaten_is_not_shown():
    best, beaten = made(100, 100), made(100, 101, DP)
    assert shown([beaten, best], 100.0) == (best,)


def test_of_two_plans_that_hold_nearly_the_same_the_faster_is_shown():
    fast, smaller = made(1000, 10), made(990, 500, DP)
    assert shown([fast, smaller], 100.0) == (fast,)
    assert shown([fast, replace(smaller, memory=970)], 100.0)[0] == fast


# Rules


def test_rules_are_none_where_parameters_and_state_have_other_specs():
    assert rules_of([("h/0/w", "P()"), ("0/mu/h/0/w", "P('data')")]) == {
        r"\bmu/h/\d+/w$": "P('data')"
    }
    assert rules_of([("w", "P('data')"), ("0/w", "P()")]) is None


def test_layers_that_differ_are_named_by_their_numbers():
    leaves = [("0/w", "P('data')"), ("1/w", "P(None, 'data')")]
    assert rules_of(leaves) == {r"\b0/w$": "P('data')", r"\b1/w$": "P(None, 'data')"}


def test_names_with_characters_of_regular_expressions_are_escaped():
    assert rules_of([("a.b", "P('x')"), ("a_b", "P()")]) == {r"\ba\.b$": "P('x')"}


# Constraints in the model


@pytest.fixture(scope="module")
def field():
    labels = transformer.TOKENS
    request = read_call(transformer.step, (transformer.PARAMS, transformer.TOKENS, labels), {})
    field = field_of(request.request(make_grid("data=4,model=2")), "h100")
    field.seed(50, lambda: None)
    field.find_activations()
    return field


@pytest.fixture(scope="module")
def plans(field):
    """FSDP over data beside tensor parallelism over model, without a constraint and with it."""
    layout = {"data": "fsdp", "model": "tensor-parallel"}
    state = next(state for state, known in field.layouts.items() if known == layout)
    spec = next(field.activation_specs(state))
    return field.compiled(state), field.compiled(state, spec)


def test_the_residuals_are_the_first_activation_and_each_sum_with_one(field):
    places = [(point.function, point.name) for _, point in field.activations.places]
    assert places == [
        ("model", "x"),
        ("block", "x"),
        ("block", "x + mlp(norm(x, p['ln2']), p)"),
    ]
    assert field.activations.shape == (8, 32, transformer.WIDTH)


def test_a_constraint_on_the_residuals_is_part_of_the_plan(plans):
    bare, constrained = plans
    assert constrained.activations == (("data",), (), ())
    # Without it the compiler gathers activations, layer for layer, instead of parameters.
    assert constrained.wire_bytes < bare.wire_bytes / 2
    assert constrained.seconds < bare.seconds


def test_the_sequence_is_sharded_beside_tensor_parallelism(field):
    layout = {"data": "data-parallel", "model": "tensor-parallel"}
    state = next(state for state, known in field.layouts.items() if known == layout)
    assert list(field.activation_specs(state)) == [(("data",), ("model",), ())]


def test_the_constraints_are_a_diff_of_the_model(field, plans):
    code = PlannedRequest(field.program.request, [field], None).code(plans[1])
    added = [line for line in code.diff.splitlines() if line.startswith("+ ")]
    call = "jax.lax.with_sharding_constraint"
    assert added == [
        f"+    x = {call}(x, P('data'))",
        f"+    return {call}(x + mlp(norm(x, p[\"ln2\"]), p), P('data'))",
        f"+    x = {call}(x, P('data'))",
    ]
    assert "jax.set_mesh(mesh)" in str(code)


def test_the_constrained_model_computes_the_same(field, plans):
    edit = field.composed(tuple(plans[1].specs.values()), plans[1].activations)
    (unit,) = {part.unit for part in edit.points}
    names = {}
    exec(compile(with_constraints(unit, edit.points), "<model>", "exec"), names)  # noqa: S102
    random = np.random.default_rng(0)
    params = jax.tree.map(
        lambda s: 0.1 * random.normal(size=s.shape).astype("f"), transformer.PARAMS
    )
    tokens = random.integers(0, 256, transformer.TOKENS.shape).astype("i")
    expected = jax.jit(transformer.step)(params, tokens, tokens)
    specs = PlannedRequest(field.program.request, [field], None).trees(plans[1])
    mesh = field.program.mesh
    shardings = jax.tree.map(
        lambda spec: NamedSharding(mesh, spec),
        tuple(specs.values()),
        is_leaf=lambda leaf: isinstance(leaf, P),
    )
    with jax.set_mesh(mesh):
        result = jax.jit(names["step"], in_shardings=shardings)(params, tokens, tokens)
    for got, wanted in zip(jax.tree.leaves(result), jax.tree.leaves(expected), strict=True):
        assert jnp.allclose(got, wanted, rtol=1e-3, atol=1e-4)
