"""The placements that an array can have, and the steps from one to the next."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from shardnb.report.model import Spec
from shardnb.search.patterns import Pattern

State = tuple[Spec, ...]
"""A placement for each pattern."""


@dataclass(frozen=True)
class Space:
    """All placements of some patterns on the axes of a mesh."""

    patterns: tuple[Pattern, ...]
    axes: tuple[tuple[str, int], ...]
    symmetric: bool = True

    @cached_property
    def sizes(self) -> dict[str, int]:
        """The axes' sizes by name."""
        return dict(self.axes)

    @property
    def start(self) -> State:
        """Every free array replicated."""
        return tuple(p.fixed or ((),) * len(p.shape) for p in self.patterns)

    def allowed(self, pattern: Pattern, spec: Spec) -> bool:
        """Whether a spec divides an array."""
        parts = (math.prod(self.sizes[axis] for axis in axes) for axes in spec)
        return all(size % n == 0 for size, n in zip(pattern.shape, parts, strict=True))

    def moves(self, state: State) -> Iterator[State]:
        """Yield the states with one axis put elsewhere, on one pattern or on its like."""
        for number, pattern in enumerate(self.patterns):
            if not pattern.free:
                continue
            for _, spec in self._specs(pattern, state[number]):
                yield self.canonical(_with(state, (number,), spec))
                alike = self._alike(pattern, state, state[number])
                if len(alike) > 1:
                    yield self.canonical(_with(state, alike, spec))

    def swaps(self, state: State) -> Iterator[State]:
        """Yield the states where an axis leaves, or goes where another is, or both trade."""
        for axis, other in itertools.product(self._split, self._split):
            yield self.canonical(tuple(self._followed(state, axis, other)))
            if axis < other:
                yield self.canonical(tuple(self._exchanged(state, axis, other)))

    def seeds(self, state: State) -> Iterator[tuple[str, State]]:
        """Yield an axis, and the state with that axis put on another dimension of one pattern."""
        for number, pattern in enumerate(self.patterns):
            if pattern.free:
                for axis, spec in self._specs(pattern, state[number]):
                    if any(axis in axes for axes in spec):
                        yield axis, _with(state, (number,), spec)

    def carried(self, state: State, axis: str, carried: Sequence[Spec | None]) -> State:
        """Take over from the inputs' specs, by pattern, where an axis went on its own."""
        specs = list(state)
        for number, (pattern, placed) in enumerate(zip(self.patterns, carried, strict=True)):
            spec = specs[number]
            if not pattern.free or placed is None or any(axis in axes for axes in spec):
                continue
            place = next((dim for dim, axes in enumerate(placed) if axis in axes), None)
            moved = spec if place is None else self._added(spec, place, axis)
            if self.allowed(pattern, moved):
                specs[number] = moved
        return self.canonical(tuple(specs))

    def _specs(self, pattern: Pattern, spec: Spec) -> Iterator[tuple[str, Spec]]:
        """Yield a spec with one axis taken away or put on another dimension, and the axis."""
        for axis in self._split:
            without = _without(spec, axis)
            for dim in range(-1, len(spec)):
                moved = without if dim < 0 else self._added(without, dim, axis)
                if moved != spec and self.allowed(pattern, moved):
                    yield axis, moved

    @property
    def _split(self) -> tuple[str, ...]:
        """The axes that split anything."""
        return tuple(axis for axis, size in self.axes if size > 1)

    def _exchanged(self, state: State, axis: str, other: str) -> Iterator[Spec]:
        """Let two axes change places, where the sizes allow it."""
        for pattern, spec in zip(self.patterns, state, strict=True):
            moved = self._renamed(spec, {axis: other, other: axis})
            yield moved if pattern.free and self.allowed(pattern, moved) else spec

    def _followed(self, state: State, axis: str, other: str) -> Iterator[Spec]:
        """Put an axis wherever another is, and nowhere else; nowhere at all for the same axis."""
        for pattern, spec in zip(self.patterns, state, strict=True):
            if not pattern.free:
                yield spec
                continue
            without = _without(spec, axis)
            place = next((d for d, axes in enumerate(without) if other in axes), None)
            moved = without if place is None else self._added(without, place, axis)
            yield moved if self.allowed(pattern, moved) else spec

    def _added(self, spec: Spec, dim: int, axis: str) -> Spec:
        axes = tuple(sorted((*spec[dim], axis), key=list(self.sizes).index))
        return (*spec[:dim], axes, *spec[dim + 1 :])

    def _alike(self, pattern: Pattern, state: State, spec: Spec) -> tuple[int, ...]:
        """Number the patterns of one tail and shape: a parameter and its optimizer's moments."""
        return tuple(
            number
            for number, other in enumerate(self.patterns)
            if other.free
            and (other.tail, other.shape) == (pattern.tail, pattern.shape)
            and state[number] == spec
        )

    def starts(self) -> Iterator[State]:
        """Give states to begin at: nothing sharded, and everything sharded over each axis alone."""
        yield self.canonical(self.start)
        for axis in self._split:
            specs = list(self.start)
            for number, pattern in enumerate(self.patterns):
                longest = sorted(range(len(pattern.shape)), key=lambda dim: -pattern.shape[dim])
                sharded = (self._added(self.start[number], dim, axis) for dim in longest)
                if pattern.free:
                    fitting = (spec for spec in sharded if self.allowed(pattern, spec))
                    specs[number] = next(fitting, specs[number])
            yield self.canonical(tuple(specs))

    def canonical(self, state: State) -> State:
        """Return the one of the states that differ in the names of like axes only."""
        return self.renamed(state)[0]

    def renamed(self, state: State) -> tuple[State, Mapping[str, str]]:
        """Return the canonical state, and the names that the axes have in it."""
        states = [
            (tuple(self._renamed(spec, names) for spec in state), names)
            for names in (self._renamings if self.symmetric else ())
        ]
        return min(states, key=lambda pair: pair[0], default=(state, {}))

    def _renamed(self, spec: Spec, names: Mapping[str, str]) -> Spec:
        order = list(self.sizes)
        return tuple(
            tuple(sorted((names.get(axis, axis) for axis in axes), key=order.index))
            for axes in spec
        )

    @cached_property
    def _renamings(self) -> tuple[dict[str, str], ...]:
        """Ways to swap the names of axes of the same size that leave what the user placed."""
        sizes = sorted(set(self.sizes.values()))
        groups = [[name for name, of_axis in self.axes if of_axis == size] for size in sizes]
        orders = itertools.product(*(itertools.permutations(group) for group in groups))
        old = list(itertools.chain(*groups))
        ways = (dict(zip(old, itertools.chain(*order), strict=True)) for order in orders)
        placed = [pattern.fixed for pattern in self.patterns if pattern.fixed is not None]
        return tuple(names for names in ways if all(self._renamed(p, names) == p for p in placed))


def _without(spec: Spec, axis: str) -> Spec:
    return tuple(tuple(other for other in axes if other != axis) for axes in spec)


def _with(state: State, numbers: Sequence[int], spec: Spec) -> State:
    return tuple(spec if number in numbers else old for number, old in enumerate(state))


def factorisations(count: int, axes: int = 3) -> list[tuple[int, ...]]:
    """Return the shapes of a mesh of `count` devices with up to `axes` axes, longest axis first.

    >>> factorisations(8)
    [(8,), (4, 2), (2, 2, 2)]
    """
    found: set[tuple[int, ...]] = {(count,)}
    for size in range(2, math.isqrt(count) + 1):
        if count % size == 0 and axes > 1:
            found |= {
                tuple(sorted((*rest, size), reverse=True))
                for rest in factorisations(count // size, axes - 1)
            }
    return sorted(found, key=lambda shape: (len(shape), [-size for size in shape]))
