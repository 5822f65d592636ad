"""The search for plans: many are estimated, the best are compiled, only those are kept."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from shardnb.bugs import Inconclusive, contained
from shardnb.compiler import Program
from shardnb.cost import on_hardware, priced
from shardnb.progress import Progress
from shardnb.report.cost import Cost, Work
from shardnb.report.model import Mesh, Report, Spec
from shardnb.report.plans import Plan
from shardnb.report.spec import spec_text
from shardnb.rewrite.program_edits import InputEdit
from shardnb.search.plans.estimate import Estimator
from shardnb.search.plans.front import Point, crowding, front, gain
from shardnb.search.plans.space import Space, State
from shardnb.search.trial import Outcome, aborts_noted, compile_trial, outcome_of
from shardnb.views.words import over

# Going on from the newest finds what takes several steps of one kind, going on from the others what
# is elsewhere on the front (test_the_megatron_layout_is_found_beside_data_parallelism).
_NEWEST = 0.5


@dataclass(frozen=True)
class EstimatedState:
    """A state of a field, with what it is reckoned to hold and to cost."""

    field: int
    state: State
    point: Point


@dataclass
class Field:
    """One mesh: its program, compiled once, and the placements to choose from on it."""

    program: Program
    mesh: Mesh
    space: Space
    names: tuple[str, ...]
    hardware: str | None = None

    def __post_init__(self) -> None:
        """Get Shardy ready."""
        self.estimator = Estimator(self.program)
        self.seen: dict[State, Point] = {}
        self._ahead: dict[State, list[Any]] = {}

    def look(self, state: State) -> None:
        """Estimate a state that was not seen; one that Shardy refuses is left out."""
        if state not in self.seen:
            with suppress(Inconclusive):
                estimate = self.estimator.of(dict(self._specs(state)))
                work, sent = Work(estimate.flops, 0.0), estimate.collectives
                cost = self.cost(Report("", self.mesh, collectives=sent, work=work))
                self.seen[state] = float(estimate.held), value_of(estimate.wire_bytes, cost)

    def _specs(self, state: State) -> Iterator[tuple[int, Spec]]:
        for pattern, spec in zip(self.space.patterns, state, strict=True):
            for member in pattern.members:
                yield member, spec

    def cost(self, report: Report) -> Cost | None:
        """Return the seconds of a report's work and collectives, where a hardware is known."""
        return (on_hardware(report, self.hardware) if self.hardware else priced(report)).cost

    def next(self, random_of: random.Random) -> State | None:
        """Choose a state that was not seen, a step from the front; from what it beats at the end.

        Half of the time it goes on from the state that came to the front last.
        """
        left = dict(self.seen)
        while left:
            best = front(left, left.__getitem__)
            for state in self._order(best, random_of):
                if (step := self._step(state, random_of)) is not None:
                    return step
            for state in best:
                del left[state]
        return None

    def _order(self, best: list[State], random_of: random.Random) -> list[State]:
        """Return the states to go on from: the newest first, or those far from their neighbours."""
        if random_of.random() < _NEWEST:
            order = {state: number for number, state in enumerate(self.seen)}
            return sorted(best, key=lambda state: -order[state])
        gaps = crowding([self.seen[state] for state in best])
        drawn = {s: random_of.random() ** (1 / gap) for s, gap in zip(best, gaps, strict=True)}
        return sorted(best, key=lambda state: -drawn[state])

    def _step(self, state: State, random_of: random.Random) -> State | None:
        """Return a step from a state that was not taken, first those that Shardy carries on."""
        if state not in self._ahead:
            near: list[Any] = list(dict.fromkeys(self.space.moves(state)))
            far: list[Any] = [*dict.fromkeys(self.space.swaps(state)), *self.space.seeds(state)]
            random_of.shuffle(near)
            random_of.shuffle(far)
            self._ahead[state] = [*near, *far]
        steps = self._ahead[state]
        while steps:
            step = steps.pop()
            state_after = self._carried(*step) if isinstance(step[0], str) else step
            if state_after is not None and state_after not in self.seen:
                return state_after
        return None

    def _carried(self, axis: str, state: State) -> State | None:
        free = {
            member
            for pattern, spec in zip(self.space.patterns, state, strict=True)
            if pattern.free and not any(axis in axes for axes in spec)
            for member in pattern.members
        }
        with suppress(Inconclusive):
            placed = self.estimator.carried(dict(self._specs(state)), free)
            by_pattern = [placed.get(pattern.members[0]) for pattern in self.space.patterns]
            return self.space.carried(state, axis, by_pattern)
        return None

    def written(self, state: State) -> str:
        """Write a state with the axes of its mesh, such as `x=P('data'), w=P() on data=4`."""
        specs = ", ".join(f"{name}={spec_text(spec)}" for name, spec in self._placed(state).items())
        mesh = ",".join(f"{name}={size}" for name, size in self.mesh.shape.items())
        return f"{specs} on {mesh}"

    def _placed(self, state: State) -> dict[str, Spec]:
        return {self.names[number]: spec for number, spec in self._specs(state)}

    def compiled(self, state: State) -> Plan:
        """Compile a state, and give what the compiler says of it."""
        placed = self._placed(state).items()
        edit = InputEdit(tuple((name, (name,), spec) for name, spec in placed))
        lowered = edit.lowered(self.program)
        return self.plan(compile_trial(lowered, self.mesh, whole=True), state)

    def plan(self, outcome: Outcome, state: State) -> Plan:
        """Return a state that was compiled as a plan."""
        collectives, work = outcome.collectives, outcome.work
        report = Report("", self.mesh, collectives=collectives, work=work)
        return Plan(
            mesh=self.mesh,
            specs=self._by_pattern(state),
            memory=outcome.memory_bytes,
            wire_bytes=report.wire_bytes,
            collectives=dict(Counter(f"{c.kind}{over(c)}" for c in collectives)),
            untold=outcome.unknown_trips,
            flops=work.flops if work else None,
            cost=self.cost(report),
        )

    def _by_pattern(self, state: State) -> Mapping[str, Spec]:
        names = Counter(pattern.name for pattern in self.space.patterns)
        return {
            p.name if names[p.name] == 1 else f"{p.name} {list(p.shape)}": spec
            for p, spec in zip(self.space.patterns, state, strict=True)
        }


def value_of(wire_bytes: int, cost: Cost | None) -> float:
    """Return what a plan costs: seconds to compute and to communicate, else the bytes it sends."""
    if cost is None:
        return float(wire_bytes)
    return cost.communication_seconds + (cost.compute_seconds or 0.0)


@dataclass
class PlanSearch:
    """Looks at `previews` placements of each field, and compiles at most `compiles` of them all.

    The field's own program, which splits nothing, was compiled before and does not count.
    """

    fields: list[Field]
    limit: int | None
    previews: int
    compiles: int
    seed: int
    progress: Progress
    plans: dict[EstimatedState, Plan] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    looked: int = 0

    def run(self, *, stopped: bool = False) -> None:
        """Search to the end of the budget, or to an interrupt: what was found then stands.

        Where it was `stopped` before, the fields' own programs are all that was found.
        """
        try:
            for number, mesh_field in enumerate(self.fields):
                start = mesh_field.space.start
                mesh_field.look(start)
                outcome = outcome_of(mesh_field.program.compiled, mesh_field.mesh)
                self._keep(number, start, mesh_field.plan(outcome, start))
            for mesh_field in () if stopped else self.fields:
                with contained("what further placements would cost"):
                    self._preview(mesh_field)
            self._compile(0 if stopped else self.compiles)
        except KeyboardInterrupt:
            stopped = True
        if stopped:
            self.notes.append(
                f"the search was interrupted: {self.looked} placements were estimated, "
                f"{len(self.plans)} compiled"
            )

    def _preview(self, mesh_field: Field) -> None:
        random_of = random.Random(self.seed)  # noqa: S311 - a search, no secret
        for state in mesh_field.space.starts():
            mesh_field.look(state)
        total = self.previews * len(self.fields)
        for _ in range(self.previews):
            fresh = mesh_field.next(random_of)
            if fresh is None:
                return
            mesh_field.look(fresh)
            self.looked += 1
            self.progress("placements estimated", self.looked, total)

    def _compile(self, most: int) -> None:
        for done in range(most):
            candidate = self._most_promising()
            if candidate is None:
                return
            self.progress("plans compiled", done, most)
            mesh_field, plan = self.fields[candidate.field], None
            named = f"the placement {mesh_field.written(candidate.state)}"
            with contained("a plan"), aborts_noted(self.notes, named):
                plan = mesh_field.compiled(candidate.state)
            if plan is None:
                del mesh_field.seen[candidate.state]
            else:
                self._keep(candidate.field, candidate.state, plan)

    def _keep(self, number: int, state: State, plan: Plan) -> None:
        point = self.fields[number].seen.get(state, (float(plan.memory), 0.0))
        self.plans[EstimatedState(number, state, point)] = plan

    def _most_promising(self) -> EstimatedState | None:
        """Choose what would add most to the plans that are known, if its estimate came true."""
        known = [
            (candidate.point[0], value_of(plan.wire_bytes, plan.cost))
            for candidate, plan in self.plans.items()
        ]
        seen = [
            EstimatedState(number, state, point)
            for number, mesh_field in enumerate(self.fields)
            for state, point in mesh_field.seen.items()
            if self.limit is None or point[0] <= self.limit
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
