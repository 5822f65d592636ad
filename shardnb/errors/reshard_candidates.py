"""Ways out of a placement that an operation refuses, each tried and compiled.

Which placements an operation takes is not written down here: JAX is asked.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import jax
from jax.sharding import NamedSharding, PartitionSpec

from shardnb.bugs import Inconclusive, refusable
from shardnb.collectives.find import find_collectives
from shardnb.compiler import placement
from shardnb.compiler.dumps import captured_fd2
from shardnb.errors.evidence import Operation
from shardnb.jax_compat.compilation_cache import without_compilation_cache
from shardnb.jax_compat.tracing import traced_apart
from shardnb.mesh import Grid, make_grid, retyped
from shardnb.report.model import Collective
from shardnb.texts import hlo

_TRIED = 5
Entries = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Way:
    """Operands that are moved, by number, or a stated placement of the result."""

    moves: tuple[tuple[int, PartitionSpec], ...] = ()
    result: PartitionSpec | None = None


@dataclass(frozen=True)
class Measured:
    """A way that JAX takes, with the collectives that it compiles to."""

    way: Way
    collectives: tuple[Collective, ...]
    chosen: bool = False

    @property
    def wire_bytes(self) -> int:
        """Bytes that one device sends."""
        return sum(one.wire_bytes for one in self.collectives)


class Trial:
    """An operation on the types that it was refused on, to be tried in other ways."""

    def __init__(self, operation: Operation, grid: Grid | None = None) -> None:
        """Take an operation; `grid` gives the devices, emulated ones where it is None."""
        self.operation = operation
        self.grid = grid if grid is not None else _emulated(operation)
        self.sizes = dict(self.grid.mesh.shape)
        self.specs = [entries_of(aval) for aval in operation.avals]

    def ways(self) -> list[Measured]:
        """Give the ways that JAX takes, those that send least first."""
        return self.measured([*self._first(self._stated()), *self.taken_moves()])

    def taken_moves(self) -> list[Way]:
        """Give the moves of operands that JAX takes."""
        return self._first(self._moved())

    def _first(self, ways: Iterator[Way]) -> list[Way]:
        with captured_fd2():
            return list(itertools.islice(filter(self.is_taken, dict.fromkeys(ways)), _TRIED))

    def measured(self, ways: Sequence[Way]) -> list[Measured]:
        """Compile ways, and give those that send least first."""
        with captured_fd2(), without_compilation_cache():
            auto = self._chosen_by_auto()
            measured = [self._measured(way, auto) for way in ways]
        measured.sort(key=lambda one: (one.wire_bytes, len(one.collectives)))
        return measured

    def sent_by_auto(self) -> tuple[Collective, ...] | None:
        """Give what the operation alone compiles to with Auto axes, where it compiles."""
        params, bind = self._unstated(), self.operation.primitive.bind
        auto = retyped(self.grid, "auto")
        with suppress(Inconclusive), captured_fd2(), without_compilation_cache():
            return self._sent(lambda *xs: bind(*xs, **params), auto)
        return None

    def _unstated(self) -> dict[str, Any]:
        """Give the operation's parameters without a placement of its result."""
        params = dict(self.operation.params)
        if self._sharding_parameter:
            params[self._sharding_parameter] = None
        return params

    def result_of(self, way: Way) -> Entries:
        """Give the axes of each dimension of what the operation results in."""
        traced = self._trace(self._call(way), self.grid)
        return entries_of(jax.tree_util.tree_leaves(traced.out_info)[0])

    def _measured(self, way: Way, auto: PartitionSpec | None) -> Measured:
        return Measured(way, self._compiled(way), auto is not None and way.result == auto)

    def _stated(self) -> Iterator[Way]:
        """Give placements of the result, where the operation takes one."""
        if self.states_result:
            for spec in _results(self.operation, self.specs, self.shape(), self.sizes):
                yield Way(result=spec)

    def _moved(self) -> Iterator[Way]:
        """Give placements of the operands, where the result's would not do."""
        if not self._is_indexed and not is_ambiguous(self.operation):
            yield from self._finished()
            yield from _moves(self.operation, self.specs, self.sizes)

    @property
    def states_result(self) -> bool:
        """Whether the placement of the result can be stated."""
        known = self._sharding_parameter is not None or self._is_indexed
        return known or self.operation.stating(PartitionSpec()) is not None

    @property
    def _is_indexed(self) -> bool:
        return self.operation.name.startswith(("gather", "scatter"))

    def _finished(self) -> Iterator[Way]:
        """Give the operands with their pending sums done, and otherwise as they lie."""
        pending = [bool(spec_of(aval).unreduced) for aval in self.operation.avals]
        moves = tuple((i, as_spec(self.specs[i])) for i, sums in enumerate(pending) if sums)
        if moves:
            yield Way(moves)

    @property
    def _sharding_parameter(self) -> str | None:
        keys = ("out_sharding", "sharding")
        return next((key for key in keys if key in self.operation.params), None)

    def shape(self) -> tuple[int, ...]:
        """Give the shape of the result."""
        bare = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in self.operation.avals]
        params, bind = self._unstated(), self.operation.primitive.bind
        with refusable(), jax.set_mesh(retyped(self.grid, "auto").mesh), traced_apart():
            result = jax.eval_shape(lambda *xs: bind(*xs, **params), *bare)
        return tuple(jax.tree_util.tree_leaves(result)[0].shape)

    def _call(self, way: Way) -> Callable[..., Any]:
        moves, params = dict(way.moves), dict(self.operation.params)
        bind, key = self.operation.primitive.bind, self._sharding_parameter

        def call(*operands: Any) -> Any:
            moved = [
                jax.sharding.reshard(x, moves[number]) if number in moves else x
                for number, x in enumerate(operands)
            ]
            if way.result is None:
                return bind(*moved, **params)
            if (stating := self.operation.stating(way.result)) is not None:
                return stating(*moved)
            if key is None:
                free = jax.sharding.auto_axes(
                    lambda *xs: bind(*xs, **params), out_sharding=way.result
                )
                return free(*moved)
            stated = NamedSharding(self.grid.mesh.abstract_mesh, way.result)
            return bind(*moved, **{**params, key: stated})

        return call

    def _trace(self, call: Callable[..., Any], grid: Grid) -> Any:
        args = [
            jax.ShapeDtypeStruct(aval.shape, aval.dtype, sharding=NamedSharding(grid.mesh, spec))
            for aval, spec in zip(
                self.operation.avals, map(spec_of, self.operation.avals), strict=True
            )
        ]
        with refusable(), jax.set_mesh(grid.mesh), traced_apart():
            return jax.jit(call).trace(*args)

    def is_taken(self, way: Way) -> bool:
        """Whether JAX takes an operation in this way."""
        with suppress(Inconclusive):
            self._trace(self._call(way), self.grid)
            return True
        return False

    def _compiled(self, way: Way) -> tuple[Collective, ...]:
        return self._sent(self._call(way), self.grid)

    def _sent(self, call: Callable[..., Any], grid: Grid) -> tuple[Collective, ...]:
        traced = self._trace(call, grid)
        with refusable(), jax.set_mesh(grid.mesh), traced_apart():
            text = traced.lower().compile().as_text()
        return find_collectives(hlo.parse(text), grid.describe(), lambda _: ())

    def _chosen_by_auto(self) -> PartitionSpec | None:
        """Give the result's placement that propagation leads to, for this operation alone."""
        if self._sharding_parameter is None and not self.operation.name.startswith("gather"):
            return None
        params, bind = self._unstated(), self.operation.primitive.bind
        auto = retyped(self.grid, "auto")
        shardings = None
        with suppress(Inconclusive), refusable(), jax.set_mesh(auto.mesh):
            traced = self._trace(lambda *xs: bind(*xs, **params), auto)
            shardings = traced.lower().compile().output_shardings
        if shardings is None:
            return None
        leaf = jax.tree_util.tree_leaves(shardings)[0]
        if not isinstance(leaf, NamedSharding):
            return None
        entries = list(placement.entries(leaf.spec))
        return as_spec([*entries, *[()] * (len(self.shape()) - len(entries))])


def _emulated(operation: Operation) -> Grid:
    mesh = next(a.sharding.mesh for a in operation.avals if not a.sharding.mesh.empty)
    kinds = [kind.name.lower() for kind in mesh.axis_types]
    axes = zip(mesh.axis_names, mesh.axis_sizes, kinds, strict=True)
    return make_grid(",".join(f"{name}={size}:{kind}" for name, size, kind in axes))


def is_ambiguous(operation: Operation) -> bool:
    """Whether it is a product whose operands are both split along what it sums."""
    if operation.name != "dot_general":
        return False
    (left, right), _ = operation.params["dimension_numbers"]
    one, other = (entries_of(aval) for aval in operation.avals[:2])
    return any(one[i] and other[j] for i, j in zip(left, right, strict=True))


def entries_of(aval: Any) -> Entries:
    """Give the axes of each dimension of a type."""
    entries = tuple(placement.entries(aval.sharding.spec))
    return entries + ((),) * (len(aval.shape) - len(entries))


def spec_of(aval: Any) -> PartitionSpec:
    """Give the spec in a type."""
    spec: PartitionSpec = aval.sharding.spec
    return spec


def as_spec(entries: Sequence[tuple[str, ...]], **pending: Any) -> PartitionSpec:
    """Write entries as a spec, as a user would."""
    parts = [entry[0] if len(entry) == 1 else entry or None for entry in entries]
    return PartitionSpec(*parts, **pending)


def fits(shape: Sequence[int], entries: Sequence[tuple[str, ...]], sizes: dict[str, int]) -> bool:
    """Whether no axis is used twice and each dimension is divided."""
    used = [axis for axes in entries for axis in axes]
    return len(set(used)) == len(used) and all(
        size % math.prod(sizes[axis] for axis in axes) == 0
        for size, axes in zip(shape, entries, strict=True)
    )


def _results(
    operation: Operation, specs: Sequence[Entries], shape: tuple[int, ...], sizes: dict[str, int]
) -> Iterator[PartitionSpec]:
    if operation.name == "dot_general":
        yield from _product_results(operation, specs, shape, sizes)
        return
    groups = list(dict.fromkeys(axes for spec in specs for axes in spec if axes))
    found = []
    for places in itertools.product(range(-1, len(shape)), repeat=len(groups)):
        entries: list[tuple[str, ...]] = [()] * len(shape)
        for axes, place in zip(groups, places, strict=True):
            if place >= 0:
                entries[place] += axes
        if fits(shape, entries, sizes):
            found.append((-_kept(operation, specs, shape, entries), tuple(entries)))
    yield from (as_spec(entries) for _, entries in sorted(set(found))[: _TRIED + 2])
    yield as_spec([()] * len(shape))


def _kept(
    operation: Operation,
    specs: Sequence[Entries],
    shape: tuple[int, ...],
    entries: Sequence[tuple[str, ...]],
) -> int:
    """Count the dimensions that stay split as an operand's dimension of the same size was."""
    before = {
        (size, axes)
        for aval, spec in zip(operation.avals, specs, strict=True)
        for size, axes in zip(aval.shape, spec, strict=True)
    }
    return sum(
        bool(axes) + ((size, axes) in before)
        for size, axes in zip(shape, entries, strict=True)
        if axes
    )


def _product_results(
    operation: Operation, specs: Sequence[Entries], shape: tuple[int, ...], sizes: dict[str, int]
) -> Iterator[PartitionSpec]:
    (left, right), (left_batch, right_batch) = operation.params["dimension_numbers"]
    one, other = specs[:2]
    rest = [one[i] for i in range(len(one)) if i not in left and i not in left_batch]
    rest += [other[i] for i in range(len(other)) if i not in right and i not in right_batch]
    natural = [*(one[i] for i in left_batch), *rest]
    summed = tuple(
        dict.fromkeys(a for i, j in zip(left, right, strict=True) for a in one[i] if a in other[j])
    )
    for entries in _without_repeats(natural):
        yield as_spec(entries)
        if summed:
            yield as_spec(entries, unreduced=set(summed))
        for dim in range(len(shape)):
            split = [*entries]
            split[dim] += summed
            if summed and fits(shape, split, sizes):
                yield as_spec(split)
    yield as_spec([()] * len(shape))


def _without_repeats(entries: list[tuple[str, ...]]) -> Iterator[list[tuple[str, ...]]]:
    """Give a spec as it is, or each way to leave an axis that it uses twice at one place only."""
    used = [axis for axes in entries for axis in axes]
    twice = next((axis for axis in used if used.count(axis) > 1), None)
    if twice is None:
        yield entries
        return
    for keep in [i for i, axes in enumerate(entries) if twice in axes]:
        kept = [
            axes if i == keep else tuple(axis for axis in axes if axis != twice)
            for i, axes in enumerate(entries)
        ]
        yield from _without_repeats(kept)


def _moves(operation: Operation, specs: Sequence[Entries], sizes: dict[str, int]) -> Iterator[Way]:
    """Give moves of one operand, then those that bring all operands to the placement of one."""
    shapes = [tuple(aval.shape) for aval in operation.avals]
    yield from _single(shapes, specs, sizes)
    yield from _all_alike(shapes, specs)


def _single(
    shapes: Sequence[tuple[int, ...]], specs: Sequence[Entries], sizes: dict[str, int]
) -> Iterator[Way]:
    for number, (shape, spec) in enumerate(zip(shapes, specs, strict=True)):
        alike = [s for s in specs if len(s) == len(shape) and s != spec]
        others = [other for other in alike if fits(shape, other, sizes)]
        yield from (Way(((number, as_spec(other)),)) for other in others)
        for entries in _lighter(shape, spec, sizes):
            yield Way(((number, as_spec(entries)),))


def _lighter(
    shape: tuple[int, ...], spec: Entries, sizes: dict[str, int]
) -> Iterator[list[tuple[str, ...]]]:
    """Give a spec with the axes of one dimension elsewhere or gone, then with none at all."""
    split = [dim for dim, axes in enumerate(spec) if axes]
    for dim in split:
        without = [() if i == dim else axes for i, axes in enumerate(spec)]
        for place in range(len(shape)):
            moved = [*without]
            moved[place] += spec[dim]
            if place != dim and not without[place] and fits(shape, moved, sizes):
                yield moved
        yield without
    yield [()] * len(shape)


def _all_alike(shapes: Sequence[tuple[int, ...]], specs: Sequence[Entries]) -> Iterator[Way]:
    for wanted in dict.fromkeys((*specs, *(((),) * len(shape) for shape in shapes))):
        moves = tuple(
            (number, as_spec(wanted))
            for number, (shape, spec) in enumerate(zip(shapes, specs, strict=True))
            if spec != wanted and len(shape) == len(wanted)
        )
        if len(moves) > 1:
            yield Way(moves)
