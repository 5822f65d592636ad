"""The search for plans: recipes first, then steps from them; many are estimated, few compiled."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from shardnb.bugs import contained
from shardnb.progress import Progress
from shardnb.report.model import Spec
from shardnb.report.plans import MOST_WORK, Plan
from shardnb.search.plans.field import Field
from shardnb.search.plans.front import Point, front, gain
from shardnb.search.plans.space import State
from shardnb.search.trial import aborts_noted

# Of the programs that are compiled: estimates of recipes are good, but the compiler may know
# better, so most go to these; the rest to constraints and to steps from the recipes
# (test_no_recipe_beats_a_plan_of_a_training_step, and tests/benchmarks/bench_plans.py).
_FOR_RECIPES, _FOR_CONSTRAINTS = 0.6, 0.2
# Recipes reckoned to take so many times the seconds and the memory of another are not compiled: of
# the 32 that are left out in tests/benchmarks/bench_plans.py none beats a plan.
_MUCH_WORSE = 1.6
# All products on two axes: six recipes or none for each. Of three axes, those of few recipes
# (test_of_three_axes_the_products_of_few_recipes_are_estimated).
_SEEDS = 49
# What is reckoned to hold more than this much of the memory allowed is not compiled.
_TOO_MUCH = 1.5


@dataclass(frozen=True)
class EstimatedState:
    """A state of a field, with what it is reckoned to hold and to take; `spec` is of activations.

    None leaves the activations to the compiler.
    """

    field: int
    state: State
    point: Point
    spec: Spec | None = None


@dataclass
class PlanSearch:
    """Looks at `previews` placements of each field, and compiles at most `compiles` of them all.

    The field's own program, which splits nothing, was compiled before and does not count. Text of
    the user's is traced again only where `in_text`.
    """

    fields: list[Field]
    limit: int | None
    previews: int
    compiles: int
    seed: int
    progress: Progress
    in_text: bool = True
    plans: dict[EstimatedState, Plan] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    looked: int = 0
    recipes: int = 0
    done: int = 0

    def run(self, *, stopped: bool = False) -> None:
        """Search to the end of the budget, or to an interrupt: what was found then stands.

        Where it was `stopped` before, the fields' own programs are all that was found.
        """
        try:
            for number, mesh_field in enumerate(self.fields):
                start = mesh_field.space.start
                mesh_field.look(start)
                self._keep(number, start, mesh_field.plan(mesh_field.start, start))
            if not stopped:
                self._search()
        except KeyboardInterrupt:
            stopped = True
        if stopped:
            self.notes.append(
                f"the search was interrupted: {self.looked} placements were estimated, "
                f"{len(self.plans)} compiled"
            )

    def _search(self) -> None:
        for mesh_field in self.fields:
            with contained("what recipes would cost"):
                mesh_field.seed(max(self.previews, _SEEDS), self._count)
        self.recipes = sum(len(mesh_field.layouts) for mesh_field in self.fields)
        for_recipes = round(_FOR_RECIPES * self.compiles)
        self._compile_each(self._ranked()[:for_recipes])
        if self.in_text:
            with contained("what constraints on activations would change"):
                self._constrain(round(_FOR_CONSTRAINTS * self.compiles))
        for mesh_field in self.fields:
            with contained("what further placements would cost"):
                self._preview(mesh_field)
        while self.done < self.compiles and (chosen := self._most_promising()) is not None:
            self._compile(chosen)

    # Recipes

    def _ranked(self) -> list[EstimatedState]:
        """List the recipes to compile: those that the fewest others beat come first."""
        known = list(self._candidates())
        worse = {one: max(_times(one.point, other.point) for other in known) for one in known}
        ranked = sorted(known, key=lambda one: (worse[one], one.point[::-1]))
        return [one for one in ranked if worse[one] <= _MUCH_WORSE and one not in self.plans]

    def _candidates(self) -> Iterator[EstimatedState]:
        for number, mesh_field in enumerate(self.fields):
            for state in mesh_field.layouts:
                if state in mesh_field.seen and self._may_be_best(mesh_field, state):
                    yield EstimatedState(number, state, mesh_field.seen[state])

    def _may_be_best(self, mesh_field: Field, state: State) -> bool:
        """Whether devices do not repeat each other's work by the estimates, and it fits."""
        least = min(work for each in self.fields for work in each.work.values())
        fits = self.limit is None or mesh_field.seen[state][0] <= _TOO_MUCH * self.limit
        return fits and mesh_field.work[state] <= MOST_WORK * least

    def _compile_each(self, chosen: Sequence[EstimatedState]) -> None:
        for one in chosen:
            if one not in self.plans:
                self._compile(one)

    # Constraints

    def _constrain(self, most: int) -> None:
        """Compile the best layouts with constraints on the activations."""
        for mesh_field in self.fields:
            mesh_field.find_activations()
        self._compile_each(list(itertools.islice(self._constrained(), most)))

    def _constrained(self) -> Iterator[EstimatedState]:
        """Yield layouts with each spec of the activations: the fastest of each kind in turn.

        The compiler does badly where FSDP meets tensor parallelism. So the kind comes before what
        the layout costs without a constraint.
        """
        kinds: dict[bool, list[tuple[float, EstimatedState]]] = {True: [], False: []}
        for one in self._candidates():
            mesh_field = self.fields[one.field]
            recipes = set(mesh_field.layouts[one.state].values())
            cost = self.plans[one].value if one in self.plans else one.point[1]
            for spec in mesh_field.activation_specs(one.state):
                mixed = {"fsdp", "tensor-parallel"} <= recipes
                kinds[mixed].append((cost, replace(one, spec=spec)))
        turns = (sorted(kind, key=lambda pair: pair[0]) for kind in kinds.values())
        for turn in itertools.zip_longest(*turns):
            yield from (pair[1] for pair in turn if pair is not None)

    # Steps from the recipes

    def _preview(self, mesh_field: Field) -> None:
        random_of = random.Random(self.seed)  # noqa: S311 - a search, no secret
        for state in mesh_field.space.starts():
            mesh_field.look(state)
        for _ in range(self.previews):
            fresh = mesh_field.next(random_of)
            if fresh is None:
                return
            mesh_field.look(fresh)
            self._count()

    def _count(self) -> None:
        self.looked += 1
        self.progress(
            "placements estimated", self.looked, (_SEEDS + self.previews) * len(self.fields)
        )

    def _compile(self, candidate: EstimatedState) -> None:
        self.progress("plans compiled", self.done, self.compiles)
        self.done += 1
        mesh_field, plan = self.fields[candidate.field], None
        named = f"the placement {mesh_field.written(candidate.state)}"
        with contained("a plan"), aborts_noted(self.notes, named):
            plan = mesh_field.compiled(candidate.state, candidate.spec)
        if plan is not None:
            self.plans[candidate] = plan
        elif candidate.spec is None:
            del mesh_field.seen[candidate.state]

    def _keep(self, number: int, state: State, plan: Plan) -> None:
        point = self.fields[number].seen.get(state, (float(plan.memory), 0.0))
        self.plans[EstimatedState(number, state, point)] = plan

    def _most_promising(self) -> EstimatedState | None:
        """Choose what would add most to the plans that are known, if its estimate came true."""
        known = [(one.point[0], plan.value) for one, plan in self.plans.items()]
        seen = [
            EstimatedState(number, state, point)
            for number, mesh_field in enumerate(self.fields)
            for state, point in mesh_field.seen.items()
            if self._may_be_best(mesh_field, state)
        ]
        left = [candidate for candidate in seen if candidate not in self.plans]
        best = front(left, lambda candidate: candidate.point)
        points = [*known, *(candidate.point for candidate in best)]
        # A little worse than the worst, so that each of them is better than it.
        worst = 1.01 * max(p[0] for p in points), 1.01 * max(p[1] for p in points)
        gains = [(gain(known, c.point, worst), -c.point[0], c) for c in best]
        most = max(gains, key=lambda item: item[:2], default=None)
        if most and most[0] > 1e-9:
            return most[2]
        # By the estimates nothing is gained any more. They may be too high: what they alone hold
        # for best, whatever was compiled, comes next.
        best = front(seen, lambda candidate: candidate.point)
        return next((candidate for candidate in best if candidate not in self.plans), None)


def _times(one: Point, other: Point) -> float:
    """Return how many times worse a point is than another, in the number where it is less so."""
    return min(a / b if b else math.inf if a else 1.0 for a, b in zip(one, other, strict=True))
