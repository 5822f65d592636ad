"""One mesh of a search: its program, compiled once, and estimates of placements on it."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from shardnb.bugs import Inconclusive, contained
from shardnb.causes.training import Training
from shardnb.compiler import Program
from shardnb.cost import on_hardware, priced
from shardnb.report.cost import Cost, Work
from shardnb.report.model import Mesh, Report, Spec
from shardnb.report.plans import Layout, Plan
from shardnb.report.spec import spec_text
from shardnb.rewrite.composed import ComposedEdit, compose
from shardnb.rewrite.program_edits import ConstraintEdit, SpecsEdit
from shardnb.search.plans.activations import Activations, activations_of
from shardnb.search.plans.estimate import Estimate, Estimator
from shardnb.search.plans.front import Point, crowding, front
from shardnb.search.plans.returned import donatable, returned_arrays
from shardnb.search.plans.seeds import layouts
from shardnb.search.plans.space import Space, State
from shardnb.search.recipes import ProgramArrays, arrays_of, training_of
from shardnb.search.trial import Outcome, compile_trial, outcome_of
from shardnb.views.words import over

# Going on from the newest finds what takes several steps of one kind, going on from the others what
# is elsewhere on the front (test_the_megatron_layout_is_found_beside_data_parallelism).
_NEWEST = 0.5


@dataclass
class Field:
    """One mesh: its program, compiled once, and the placements to choose from on it.

    `results` has the pattern whose array each result is the new value of, by the result's number;
    such a result is sharded as the array is. `donated` are the arguments that all of these take.
    """

    program: Program
    mesh: Mesh
    space: Space
    names: tuple[str, ...]
    hardware: str | None = None
    results: Mapping[int, int] = field(init=False)
    donated: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Get Shardy ready."""
        self.estimator = Estimator(self.program)
        self.seen: dict[State, Point] = {}
        self.work: dict[State, float] = {}
        self.activations: Activations | None = None
        self.layouts: dict[State, Layout] = {}
        self._ahead: dict[State, list[Any]] = {}
        training: Training | None = None
        with contained("what the program trains"):
            training = training_of(self.program)
        self._training = training
        returned = returned_arrays(self.program, training)
        patterns = {n: at for at, p in enumerate(self.space.patterns) for n in p.members}
        self.returned = returned
        self.results = {at: patterns[number] for at, number in returned.items()}
        self.donated = donatable(self.program, returned.values())

    @cached_property
    def candidate(self) -> Program:
        """The program that candidates are variants of: it donates what it returns anew."""
        request = self.program.request
        options = {**request.jit_options}
        if self.donated:
            options["donate_argnums"] = self.donated
        return replace(self.program, request=replace(request, jit_options=options))

    @cached_property
    def start(self) -> Outcome:
        """What the program does with nothing sharded but what the user placed."""
        return outcome_of(self.program.compiled, self.mesh)

    # What Shardy's own passes make of a state

    @cached_property
    def _values_in_memory(self) -> float:
        """The share of all values' bytes that is held at once, as in the program compiled first."""
        values = self._estimate(self.space.start).values
        memory = self.start.memory
        return memory.temporaries / values if memory and values else 0.0

    def look(self, state: State) -> None:
        """Estimate a state that was not seen; one that Shardy refuses is left out."""
        if state not in self.seen:
            with suppress(Inconclusive):
                estimate = self._estimate(state)
                work = Work(estimate.flops, 0.0, least_bytes=estimate.held)
                report = Report("", self.mesh, collectives=estimate.collectives, work=work)
                held = estimate.held + self._values_in_memory * estimate.values
                self.seen[state] = held, self.cost(report).step_seconds
                self.work[state] = estimate.flops

    def _estimate(self, state: State) -> Estimate:
        reused = self.results if self.donated else ()
        return self.estimator.of(dict(self._specs(state)), self._results(state), reused)

    def _specs(self, state: State) -> Iterator[tuple[int, Spec]]:
        for pattern, spec in zip(self.space.patterns, state, strict=True):
            for member in pattern.members:
                yield member, spec

    def _results(self, state: State) -> dict[int, Spec]:
        return {at: state[pattern] for at, pattern in self.results.items()}

    def cost(self, report: Report) -> Cost:
        """Return the seconds of a report's work and collectives; raises `ValueError`."""
        cost = (on_hardware(report, self.hardware) if self.hardware else priced(report)).cost
        if cost is None:
            raise ValueError(f"no figures of {self.mesh.kind} are known: name a hardware")
        return cost

    # Where the search goes

    @cached_property
    def arrays(self) -> ProgramArrays:
        """What the arrays of the arguments are to the program."""
        return arrays_of(self.program.arguments, self._training)

    def seed(self, most: int, count: Callable[[], None]) -> None:
        """Estimate the first products of recipes, and keep which state is which."""
        if self._training is None:
            return
        numbers = {name: number for number, name in enumerate(self.names)}

        def carry(specs: Mapping[str, Spec], free: Collection[str]) -> dict[str, Spec]:
            by_number = {numbers[name]: spec for name, spec in specs.items()}
            carried = self.estimator.carried(by_number, {numbers[name] for name in free})
            # What the function closes over comes after the arguments.
            return {name: carried[number] for name, number in numbers.items() if number in carried}

        start = {self.names[number]: spec for number, spec in self._specs(self.space.start)}
        products = layouts(self.mesh.axes, self.arrays, start, carry)
        for layout, specs in itertools.islice(products, most):
            count()
            state = tuple(
                specs[self.names[pattern.members[0]]] if pattern.fixed is None else at
                for pattern, at in zip(self.space.patterns, self.space.start, strict=True)
            )
            state, names = self.space.renamed(state)
            self.look(state)
            if state in self.seen:
                placed = {names.get(axis, axis): recipe for axis, recipe in layout.items()}
                self.layouts.setdefault(state, placed)

    def find_activations(self) -> None:
        """Find where the user's text makes activations that could be constrained."""
        batch = self.arrays.batch
        if batch is not None and self.layouts:
            tokens = batch.is_tokens
            self.activations = activations_of(self.program, batch.shape, tokens=tokens)

    def activation_specs(self, state: State) -> Iterator[Spec]:
        """Yield the specs to try for the activations of a layout."""
        batch = self.arrays.batch
        if self.activations is not None and batch is not None:
            data = dict(self._specs(state))[self.names.index(batch.name)]
            yield from self.activations.specs(data, self.layouts[state], self.mesh.shape)

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

    # What the compiler makes of a state

    def written(self, state: State) -> str:
        """Write a state with the axes of its mesh, such as `x=P('data'), w=P() on data=4`."""
        placed = {self.names[number]: spec for number, spec in self._specs(state)}
        specs = ", ".join(f"{name}={spec_text(spec)}" for name, spec in placed.items())
        mesh = ",".join(f"{name}={size}" for name, size in self.mesh.shape.items())
        return f"{specs} on {mesh}"

    def edit(self, state: State) -> SpecsEdit:
        """Return the edit of the program that places its arrays, and its results alike."""
        placed = {self.names[number]: spec for number, spec in self._specs(state)}
        return SpecsEdit(self.written(state), placed, self._results(state))

    def composed(self, state: State, activations: Spec | None) -> ComposedEdit:
        """Return the edit that places all arrays, and the activations where they have a spec.

        Raises `Inconclusive` where it cannot be written.
        """
        report = Report("", self.mesh, sources=self.program.request.texts.sources)
        constraints: tuple[ConstraintEdit, ...] = ()
        if activations is not None and self.activations is not None:
            constraints = self.activations.constraints(activations, report)
        edit = compose((self.edit(state), *constraints))
        if edit is None:
            raise Inconclusive(self.written(state))
        return edit

    def compiled(self, state: State, activations: Spec | None = None) -> Plan:
        """Compile a state, and give what the compiler says of it."""
        edit = self.composed(state, activations)
        outcome = compile_trial(edit.lowered(self.candidate), self.mesh, whole=True)
        return self.plan(outcome, state, activations)

    def plan(self, outcome: Outcome, state: State, activations: Spec | None = None) -> Plan:
        """Return a state that was compiled as a plan."""
        collectives, work = outcome.collectives, outcome.work
        report = Report("", self.mesh, collectives=collectives, work=work)
        layout, otherwise = self._nearest(state)
        return Plan(
            mesh=self.mesh,
            specs=self._by_pattern(state),
            memory=outcome.memory_bytes,
            wire_bytes=report.wire_bytes,
            collectives=dict(Counter(f"{c.kind}{over(c)}" for c in collectives)),
            untold=outcome.unknown_trips,
            flops=work.flops if work else None,
            cost=self.cost(report),
            layout=layout,
            otherwise=otherwise,
            activations=activations,
        )

    def _nearest(self, state: State) -> tuple[Layout, tuple[str, ...]]:
        """Return the recipes that a state is nearest to, and the patterns that differ from them.

        Near is where the arrays that differ hold the fewest bytes.
        """
        patterns = self.space.patterns
        known: Mapping[State, Layout] = {self.space.start: {}, **self.layouts}

        def apart(other: State) -> list[int]:
            pairs = enumerate(zip(state, other, strict=True))
            return [at for at, (one, two) in pairs if one != two]

        nearest = min(known, key=lambda other: sum(patterns[at].bytes for at in apart(other)))
        names = list(self._by_pattern(state))
        return known[nearest], tuple(names[at] for at in apart(nearest))

    def _by_pattern(self, state: State) -> dict[str, Spec]:
        names = Counter(pattern.name for pattern in self.space.patterns)
        return {
            p.name if names[p.name] == 1 else f"{p.name} {list(p.shape)}": spec
            for p, spec in zip(self.space.patterns, state, strict=True)
        }
