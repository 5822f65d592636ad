"""Remedies for shardings that an operation rejects, each of them compiled.

Which shardings an operation accepts is not written down here: JAX is asked.
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
from shardnb.compiler.arrays import spec_of
from shardnb.compiler.compiling import compile_candidate, optimized_text
from shardnb.compiler.dumps import captured_fd2
from shardnb.errors.evidence import Operation
from shardnb.jax_compat.tracing import traced_apart
from shardnb.mesh import Grid, make_grid, retyped
from shardnb.report.bytes_sent import most_sent
from shardnb.report.model import Collective
from shardnb.texts import hlo

_COMPILED = 5  # of results, and of moves: a compile takes 20 to 50 ms
Entries = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Remedy:
    """Operands to reshard, by number, or a sharding for the result."""

    moves: tuple[tuple[int, PartitionSpec], ...] = ()
    result: PartitionSpec | None = None

    @property
    def leaves_sum_pending(self) -> bool:
        """Whether the result is a partial sum on each device."""
        return self.result is not None and bool(self.result.unreduced)


@dataclass(frozen=True)
class CompiledRemedy:
    """A remedy that JAX accepts, with the collectives that it compiles to.

    `chosen` says that propagation with Auto axes leads to this sharding of the result.
    """

    remedy: Remedy
    collectives: tuple[Collective, ...]
    chosen: bool = False

    @property
    def wire_bytes(self) -> int:
        """The most bytes that one device sends."""
        return most_sent(self.collectives)


class OperationTrial:
    """An operation on the types that it rejected, to be tried with remedies."""

    def __init__(self, operation: Operation, grid: Grid | None = None) -> None:
        """Take an operation; `grid` has the devices, emulated ones if it is None."""
        self.operation = operation
        self.grid = grid if grid is not None else _emulated(operation.meshes[0])
        self.sizes = dict(self.grid.mesh.shape)
        self.specs = [entries_of(aval) for aval in operation.avals]
        self._is_indexed = operation.name.startswith(("gather", "scatter"))
        keys = ("out_sharding", "sharding")
        self._sharding_key = next((key for key in keys if key in operation.params), None)

    def remedies(self) -> list[CompiledRemedy]:
        """Return the remedies that JAX accepts, those that send least first."""
        results = []
        if self.states_result:
            results = self._first(
                Remedy(result=spec) for spec in _results(self, self.result_shape())
            )
        return self.compiled([*results, *self.taken_moves()])

    def taken_moves(self) -> list[Remedy]:
        """Return the moves of operands that JAX accepts, if an out_sharding is not enough."""
        if self._is_indexed or axes_summed_in_both(self.operation):
            return []
        unreduced = [bool(aval.sharding.spec.unreduced) for aval in self.operation.avals]
        summed = tuple((i, as_spec(self.specs[i])) for i, yes in enumerate(unreduced) if yes)
        first = [Remedy(summed)] if summed else []
        return self._first(itertools.chain(first, _moves(self)))

    def _first(self, remedies: Iterator[Remedy]) -> list[Remedy]:
        with captured_fd2():
            taken = filter(self.is_taken, dict.fromkeys(remedies))
            return list(itertools.islice(taken, _COMPILED))

    def compiled(self, remedies: Sequence[Remedy]) -> list[CompiledRemedy]:
        """Compile remedies, and return those that send least first."""
        auto = self._chosen_by_auto()
        compiled = [
            CompiledRemedy(
                remedy,
                collectives_of(self._trace(self._call(remedy), self.grid), self.grid),
                chosen=auto is not None and remedy.result == auto,
            )
            for remedy in remedies
        ]
        return sorted(compiled, key=lambda each: (each.wire_bytes, len(each.collectives)))

    def sent_by_auto(self) -> tuple[Collective, ...] | None:
        """Return what the operation alone compiles to with Auto axes, if it compiles."""
        with suppress(Inconclusive):
            auto = retyped(self.grid, "auto")
            return collectives_of(self._trace(self._without_result_sharding, auto), auto)
        return None

    def result_of(self, remedy: Remedy) -> Entries:
        """Return the axes of each dimension of the operation's result."""
        traced = self._trace(self._call(remedy), self.grid)
        return entries_of(jax.tree_util.tree_leaves(traced.out_info)[0])

    @property
    def states_result(self) -> bool:
        """Whether the operation takes an out_sharding."""
        known = self._sharding_key is not None or self._is_indexed
        return known or self.operation.stating(PartitionSpec()) is not None

    def _without_result_sharding(self, *operands: Any) -> Any:
        params = dict(self.operation.params)
        if self._sharding_key:
            params[self._sharding_key] = None
        return self.operation.primitive.bind(*operands, **params)

    def result_shape(self) -> tuple[int, ...]:
        """Return the shape of the result."""
        bare = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in self.operation.avals]
        with refusable(), jax.set_mesh(retyped(self.grid, "auto").mesh), traced_apart():
            result = jax.eval_shape(self._without_result_sharding, *bare)
        return tuple(jax.tree_util.tree_leaves(result)[0].shape)

    def _call(self, remedy: Remedy) -> Callable[..., Any]:
        moves, result, params = dict(remedy.moves), remedy.result, dict(self.operation.params)
        bind, key = self.operation.primitive.bind, self._sharding_key

        def call(*operands: Any) -> Any:
            moved = [
                jax.sharding.reshard(x, moves[number]) if number in moves else x
                for number, x in enumerate(operands)
            ]
            if result is None:
                return bind(*moved, **params)
            if (stating := self.operation.stating(result)) is not None:
                return stating(*moved)
            if key is None:
                auto = jax.sharding.auto_axes(lambda *xs: bind(*xs, **params), out_sharding=result)
                return auto(*moved)
            stated = NamedSharding(self.grid.mesh.abstract_mesh, result)
            return bind(*moved, **{**params, key: stated})

        return call

    def _trace(self, call: Callable[..., Any], grid: Grid) -> Any:
        args = [
            jax.ShapeDtypeStruct(
                aval.shape, aval.dtype, sharding=NamedSharding(grid.mesh, aval.sharding.spec)
            )
            for aval in self.operation.avals
        ]
        with refusable(), jax.set_mesh(grid.mesh), traced_apart():
            return jax.jit(call).trace(*args)

    def is_taken(self, remedy: Remedy) -> bool:
        """Whether JAX accepts an operation with this remedy."""
        with suppress(Inconclusive):
            self._trace(self._call(remedy), self.grid)
            return True
        return False

    def _chosen_by_auto(self) -> PartitionSpec | None:
        """Return the result's sharding that propagation leads to, for this operation alone."""
        if self._sharding_key is None and not self.operation.name.startswith("gather"):
            return None
        auto = retyped(self.grid, "auto")
        with suppress(Inconclusive), refusable(), jax.set_mesh(auto.mesh):
            traced = self._trace(self._without_result_sharding, auto)
            shardings = compile_candidate(traced.lower()).output_shardings
            leaf = jax.tree_util.tree_leaves(shardings)[0]
            spec = spec_of(leaf, len(self.result_shape()))
            return as_spec(spec) if spec is not None else None
        return None


def collectives_of(traced: Any, grid: Grid) -> tuple[Collective, ...]:
    """Compile a traced function, and return its collectives; `Inconclusive` if rejected."""
    with refusable(), jax.set_mesh(grid.mesh), traced_apart():
        text = optimized_text(traced.lower())
    return find_collectives(hlo.parse(text), grid.describe(), lambda _: ())


def _emulated(mesh: Any) -> Grid:
    """Return a mesh of emulated devices with the names, sizes and types of a JAX mesh's axes."""
    kinds = [kind.name.lower() for kind in mesh.axis_types]
    axes = zip(mesh.axis_names, mesh.axis_sizes, kinds, strict=True)
    return make_grid(",".join(f"{name}={size}:{kind}" for name, size, kind in axes))


def axes_summed_in_both(operation: Operation) -> tuple[str, ...]:
    """Return the axes that shard a contracting dimension in both operands of a product."""
    if operation.name != "dot_general":
        return ()
    (left, right), _ = operation.params["dimension_numbers"]
    of_left, of_right = (entries_of(aval) for aval in operation.avals[:2])
    pairs = [(of_left[i], of_right[j]) for i, j in zip(left, right, strict=True)]
    return tuple(dict.fromkeys(axis for axes, others in pairs if others for axis in axes))


def entries_of(aval: Any) -> Entries:
    """Return the axes of each dimension of a type."""
    return spec_of(aval.sharding, len(aval.shape)) or ()


def as_spec(entries: Sequence[tuple[str, ...]], **pending: Any) -> PartitionSpec:
    """Write entries as a spec of as many, as an array's type has it."""
    parts = [entry[0] if len(entry) == 1 else entry or None for entry in entries]
    return PartitionSpec(*parts, **pending)


def fits(shape: Sequence[int], entries: Sequence[tuple[str, ...]], sizes: dict[str, int]) -> bool:
    """Whether each axis is used at most once and divides its dimension."""
    used = [axis for axes in entries for axis in axes]
    return len(set(used)) == len(used) and all(
        size % math.prod(sizes[axis] for axis in axes) == 0
        for size, axes in zip(shape, entries, strict=True)
    )


def _results(trial: OperationTrial, shape: tuple[int, ...]) -> Iterator[PartitionSpec]:
    """Yield shardings of the result, first those that keep most dimensions as in an operand."""
    if trial.operation.name == "dot_general":
        yield from _product_results(trial, shape)
        return
    groups = list(dict.fromkeys(axes for spec in trial.specs for axes in spec if axes))
    before = {
        (size, axes)
        for aval, spec in zip(trial.operation.avals, trial.specs, strict=True)
        for size, axes in zip(aval.shape, spec, strict=True)
    }
    found = set()
    for places in itertools.product(range(-1, len(shape)), repeat=len(groups)):
        entries: list[tuple[str, ...]] = [()] * len(shape)
        for axes, place in zip(groups, places, strict=True):
            if place >= 0:
                entries[place] += axes
        if fits(shape, entries, trial.sizes):
            split = [pair for pair in zip(shape, entries, strict=True) if pair[1]]
            kept = len(split) + sum(pair in before for pair in split)
            found.add((-kept, tuple(entries)))
    # Two more than are compiled, for those that JAX rejects; replicated is always accepted.
    yield from (as_spec(entries) for _, entries in sorted(found)[: _COMPILED + 2])
    yield as_spec([()] * len(shape))


def _product_results(trial: OperationTrial, shape: tuple[int, ...]) -> Iterator[PartitionSpec]:
    """Yield shardings from the operands' free dimensions, with the axes summed over anywhere."""
    summed_dims, batch_dims = trial.operation.params["dimension_numbers"]
    (summed_left, summed_right), (left_batch, right_batch) = summed_dims, batch_dims
    left, right = trial.specs[:2]
    natural = [
        *(left[i] for i in left_batch),
        *(left[i] for i in range(len(left)) if i not in summed_left and i not in left_batch),
        *(right[i] for i in range(len(right)) if i not in summed_right and i not in right_batch),
    ]
    pairs = zip(summed_left, summed_right, strict=True)
    summed = tuple(dict.fromkeys(axis for i, j in pairs for axis in left[i] if axis in right[j]))
    for entries in _without_repeats(natural):
        yield as_spec(entries)
        if summed:
            yield as_spec(entries, unreduced=set(summed))
        for dim in range(len(shape)):
            split = [*entries]
            split[dim] += summed
            if summed and fits(shape, split, trial.sizes):
                yield as_spec(split)
    yield as_spec([()] * len(shape))


def _without_repeats(entries: list[tuple[str, ...]]) -> Iterator[list[tuple[str, ...]]]:
    """Yield a spec, or each way to keep an axis that it uses twice on one dimension only."""
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


def _moves(trial: OperationTrial) -> Iterator[Remedy]:
    """Yield moves of one operand, then those that bring all operands to the sharding of one."""
    shapes, specs = [tuple(aval.shape) for aval in trial.operation.avals], trial.specs
    for number, (shape, spec) in enumerate(zip(shapes, specs, strict=True)):
        alike = [other for other in specs if len(other) == len(shape) and other != spec]
        others = [other for other in alike if fits(shape, other, trial.sizes)]
        for entries in [*others, *_lighter(shape, spec, trial.sizes)]:
            yield Remedy(((number, as_spec(entries)),))
    for wanted in dict.fromkeys((*specs, *(((),) * len(shape) for shape in shapes))):
        moves = tuple(
            (number, as_spec(wanted))
            for number, (shape, spec) in enumerate(zip(shapes, specs, strict=True))
            if spec != wanted and len(shape) == len(wanted)
        )
        if len(moves) > 1:
            yield Remedy(moves)


def _lighter(
    shape: tuple[int, ...], spec: Entries, sizes: dict[str, int]
) -> Iterator[list[tuple[str, ...]]]:
    """Yield a spec with the axes of one dimension moved or removed, then without any axes."""
    for dim in [dim for dim, axes in enumerate(spec) if axes]:
        without = [() if i == dim else axes for i, axes in enumerate(spec)]
        for place in range(len(shape)):
            moved = [*without]
            moved[place] += spec[dim]
            if place != dim and not without[place] and fits(shape, moved, sizes):
                yield moved
        yield without
    yield [()] * len(shape)
