"""What a search gives: which plans are shown, in which order, and how each is explained later."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax

from shardnb.compiler import Request, build, placement
from shardnb.findings import report_of_program
from shardnb.report.model import Report
from shardnb.report.plans import MOST_WORK, Plan, Plans
from shardnb.rewrite.composed import ComposedEdit
from shardnb.rewrite.program_edits import ConstraintEdit, traced_with
from shardnb.search.patterns import Pattern
from shardnb.search.plans.code import PlannedCode
from shardnb.search.plans.field import Field
from shardnb.search.plans.front import front
from shardnb.search.plans.search import PlanSearch
from shardnb.search.plans.space import State
from shardnb.views.formatting import count, size
from shardnb.views.plans import name_of

Tree = Any
# Other specs have to be understood array by array. So they are shown where they are not worse than
# the recipe, and a tenth better in time or memory
# (test_a_plan_beside_a_recipe_has_to_be_better_than_the_recipe). A constraint has to be kept in the
# model: a plan counts as so much slower and larger for it.
_BETTER, _CONSTRAINED = 0.9, 1.02
# Nobody chooses between plans of which one holds 1% less.
_STEP = 0.98


def trees(args: Mapping[str, Tree], patterns: Sequence[Pattern], state: State) -> dict[str, Tree]:
    """Return a state as specs in the arguments' own structure."""
    by_number = {
        member: spec
        for pattern, spec in zip(patterns, state, strict=True)
        for member in pattern.members
    }
    return placement.specs_like(dict(args), (by_number[at] for at in range(len(by_number))))


def shown(plans: Sequence[Plan], least_work: float | None) -> tuple[Plan, ...]:
    """Return the plans that no other beats, the fastest first.

    Those that repeat work come last, and of the others those that do not fit.
    """
    sound = [plan for plan in plans if not _repeats(plan, least_work)]

    def point(plan: Plan) -> tuple[float, float]:
        extra = 1.0 if plan.activations is None else _CONSTRAINED
        return extra * plan.value, extra * plan.memory

    recipes = {(plan.mesh, _key(plan)): plan for plan in sound if plan.is_recipe}
    better = [plan for plan in sound if _is_better(plan, recipes.get((plan.mesh, _key(plan))))]
    best = front((better if recipes else sound) or plans, point)
    kept: list[Plan] = []
    for plan in best:
        if not kept or plan.memory < _STEP * kept[-1].memory:
            kept.append(plan)
    return tuple(sorted(kept, key=lambda plan: (plan.fits is False, plan.value, plan.memory)))


def _key(plan: Plan) -> tuple[tuple[str, str], ...]:
    return tuple(plan.layout.items())


def _is_better(plan: Plan, recipe: Plan | None) -> bool:
    """Whether a plan is a recipe, or has other specs and is better than the recipe near it."""
    if not plan.otherwise:
        return bool(plan.layout)
    if recipe is None:
        return False
    pairs = ((plan.value, recipe.value), (plan.memory, recipe.memory))
    return all(value <= other for value, other in pairs) and any(
        value <= _BETTER * other for value, other in pairs
    )


def _repeats(plan: Plan, least_work: float | None) -> bool:
    return (plan.flops or 0.0) > MOST_WORK * (least_work or math.inf)


@dataclass(frozen=True)
class PlannedRequest:
    """What a search was asked, so that a plan can be explained later.

    `hardware` is what the user named.
    """

    request: Request
    fields: list[Field]
    hardware: str | None

    def plans(self, search: PlanSearch) -> Plans:
        """Return the plans that no other beats, within the memory that is allowed."""
        compiled = list(search.plans.values())
        fitting = [p for p in compiled if search.limit is None or p.memory <= search.limit]
        least_work = min((plan.flops for plan in compiled if plan.flops), default=None)
        best = shown(fitting, least_work)
        recipes = [p for p in compiled if p.is_recipe and p not in best]
        return Plans(
            title=self.request.texts.title,
            plans=best,
            least=min(compiled, key=lambda p: (p.memory, p.value), default=None),
            beaten=tuple(sorted(recipes, key=lambda p: (p.value, p.memory))),
            least_work=least_work,
            recipes=search.recipes,
            limit=search.limit,
            looked=search.looked,
            compiled=len(compiled),
            notes=(*search.notes, *self._notes(search, compiled, fitting)),
            _found=self,
        )

    def _notes(
        self, search: PlanSearch, compiled: Sequence[Plan], fitting: Sequence[Plan]
    ) -> Iterator[str]:
        if number := len(self.fields[0].program.closed_over):
            arrays = f"{count(number, 'array')} that the function closes over took no part"
            yield f"{arrays}: what is an argument can be placed"
        least = min((plan.memory for plan in compiled), default=None)
        if least is not None and not fitting and search.limit is not None:
            yield (
                f"no plan that was compiled holds {size(search.limit)} or less a device: "
                f"the least holds {size(least)}"
            )

    def trees(self, plan: Plan) -> dict[str, Tree]:
        """Return a plan's specs by argument."""
        return trees(self.request.arguments, self._field(plan).space.patterns, _state(plan))

    def results(self, plan: Plan) -> Tree:
        """Return a plan's specs of the results, in their structure; None where JAX chooses."""
        field, edit = self._field(plan), self._edit(plan)
        specs = edit.request(field.candidate).out_specs
        return jax.tree_util.tree_map(lambda spec: spec, specs, is_leaf=placement.is_spec)

    def explain(self, plan: Plan) -> Report:
        """Return a plan's report."""
        field, edit = self._field(plan), self._edit(plan)
        request = replace(edit.request(field.candidate), apart=True)
        trace = partial(traced_with, edit.points, request) if edit.points else None
        program = build(request, trace)
        report = report_of_program(program)
        return report.on_hardware(self.hardware) if self.hardware else report

    def code(self, plan: Plan) -> PlannedCode:
        """Return what a plan's code is written from."""
        field, edit = self._field(plan), self._edit(plan)
        return PlannedCode(
            function=self.request.texts.title or "step",
            title=name_of(plan),
            arguments=self.request.arguments,
            specs=self.trees(plan),
            results=field.program.lowered.out_info,
            returned=field.returned,
            donated=field.candidate.request.jit_options.get("donate_argnums", ()),
            mesh=plan.mesh,
            constraints=tuple(p for p in edit.points if isinstance(p, ConstraintEdit)),
        )

    def _edit(self, plan: Plan) -> ComposedEdit:
        return self._field(plan).composed(_state(plan), plan.activations)

    def _field(self, plan: Plan) -> Field:
        return next(field for field in self.fields if field.mesh == plan.mesh)


def _state(plan: Plan) -> State:
    return tuple(plan.specs.values())
