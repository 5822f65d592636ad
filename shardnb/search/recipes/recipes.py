"""Recipes: where one mesh axis goes for data parallelism, FSDP, tensor parallelism and others.

A recipe says where one axis goes; the other axes stay where they are, so that recipes over
different axes add up. It is a starting point: what it costs, the compiled program shows. Where the
program carries an axis on, Shardy says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from shardnb.report import Axis
from shardnb.report.model import Spec
from shardnb.report.spec import axes_in
from shardnb.search.patterns import SMALL
from shardnb.search.recipes.arrays import Array, ProgramArrays
from shardnb.search.recipes.edits import Edited, Specs
from shardnb.terms.recipes import LeftBecause, Recipe

Carry = Callable[[Specs, Collection[str]], Specs]
"""Has Shardy propagate specs, where it may shard some arrays further; gives the inputs' specs."""

_BATCH = ("data", "dp", "batch")
_MODEL = ("model", "tp", "tensor", "mp")
_USUAL: Mapping[Recipe, tuple[str, ...]] = {
    "data-parallel": _BATCH,
    "zero-1": _BATCH,
    "fsdp": ("fsdp", *_BATCH),
    "tensor-parallel": _MODEL,
    "sequence-parallel": ("seq", "sequence", "sp", "context", "cp", *_MODEL),
    "expert-parallel": ("expert", "experts", "ep", *_MODEL),
}
# Why data, and what is not data, is left without the axis.
_LEFT: Mapping[Recipe, tuple[LeftBecause, LeftBecause]] = {
    "data-parallel": ("not-batch", "copies"),
    "zero-1": ("not-batch", "copies"),
    "fsdp": ("not-batch", "small"),
    "tensor-parallel": ("not-parameter", "not-multiplied"),
    "sequence-parallel": ("not-sequence", "copies"),
    "expert-parallel": ("not-batch", "not-experts"),
}
_OF_BATCH: tuple[Recipe, ...] = ("data-parallel", "zero-1", "fsdp")


def axis_for(recipe: Recipe, axes: Sequence[Axis]) -> str:
    """Return the axis that a recipe is about: by its usual names, else the first or the last.

    >>> [axis_for(r, (Axis("x", 4), Axis("y", 2))) for r in ("fsdp", "tensor-parallel")]
    ['x', 'y']
    """
    names = [axis.name for axis in axes if axis.size > 1] or [axis.name for axis in axes]
    usual = next((name for name in _USUAL[recipe] if name in names), None)
    return usual or names[0 if recipe in _OF_BATCH else -1]


def applied(
    recipe: Recipe,
    axis: str,
    specs: Specs,
    arrays: ProgramArrays,
    axes: Sequence[Axis],
    carry: Carry,
    *,
    beside: Collection[str] = (),
) -> Edited:
    """Return the specs with an axis where a recipe puts it, and why it left arrays without it.

    Where there is a choice, it goes to the dimension that the axes `beside` shard.
    """
    sizes = {each.name: each.size for each in axes}
    without = {name: _without(spec, axis) for name, spec in specs.items()}
    making = _Making(axis, sizes, arrays, carry, without, frozenset(beside))
    making.make(recipe)
    placed = tuple(a.name for a in arrays.arrays if axis in axes_in(making.specs[a.name]))
    left = {a.name: making.why_left(a, recipe) for a in arrays.arrays if a.name not in placed}
    return Edited(making.specs, placed, left)


@dataclass
class _Making:
    """The specs while a recipe puts an axis into them."""

    axis: str
    sizes: Mapping[str, int]
    arrays: ProgramArrays
    carry: Carry
    specs: dict[str, Spec]
    beside: frozenset[str] = frozenset()
    indivisible: set[str] = field(default_factory=set)

    def make(self, recipe: Recipe) -> None:
        """Put the axis where a recipe has it."""
        match recipe:
            case "data-parallel":
                self.batch()
            case "zero-1":
                self.batch()
                self.state()
            case "fsdp":
                self.batch()
                self.parameters()
                self.state_as_parameters()
            case "tensor-parallel":
                self.matrices()
                self.state_as_parameters()
            case "sequence-parallel":
                self.sequence()
            case "expert-parallel":
                self.batch()
                self.experts()
                self.state_as_parameters()
            case _:
                assert_never(recipe)

    def batch(self) -> None:
        """Shard the first dimension of the first data array, and what Shardy carries that to."""
        first = self.arrays.batch
        if first is not None and self._put(first, (0,)):
            self._take_over([array.name for array in self.arrays.data])

    def sequence(self) -> None:
        """Shard the second dimension of the first data array that has sequences, as the batch.

        Tokens are integers, [batch, length]; what is computed of them has features besides.
        """
        known = (a for a in self.arrays.data if len(a.shape) == (2 if a.is_tokens else 3))
        first = next(known, None)
        if first is not None and self._put(first, (1,)):
            self._take_over([array.name for array in self.arrays.data])

    def experts(self) -> None:
        """Shard parameters by the dimension that their product takes expert by expert."""
        for name, dim in self.arrays.experts.items():
            if name in self.arrays.parameters:
                self._put(self.arrays.by_name[name], (dim,))

    def state(self) -> None:
        """Shard the optimizer state by its longest dimension that is not sharded yet."""
        for name in self.arrays.owners:
            self._shard_longest(self.arrays.by_name[name])

    def state_as_parameters(self) -> None:
        """Put the axis on the dimension of the optimizer state that it shards of the parameter."""
        for name, owner in self.arrays.owners.items():
            spec = self.specs[owner]
            dim = next((dim for dim, axes in enumerate(spec) if self.axis in axes), None)
            if dim is not None and not self._has(name):
                self._put(self.arrays.by_name[name], (dim,))

    def parameters(self) -> None:
        """Shard each parameter by its longest dimension that is not sharded yet, as FSDP does."""
        for array in self._parameters():
            self._shard_longest(array)

    def _shard_longest(self, array: Array) -> None:
        spec, dims = self.specs[array.name], range(len(array.shape))
        if not self._is_small(array):
            self._put(array, sorted(dims, key=lambda dim: self._turn(array, spec, dim)))

    def _turn(self, array: Array, spec: Spec, dim: int) -> tuple[bool, int, int]:
        return self.beside.isdisjoint(spec[dim]), len(spec[dim]), -array.shape[dim]

    def matrices(self) -> None:
        """Shard matrices by their columns, in the order in which the program multiplies by them.

        Shardy carries that on, to biases and to the rows of the next matrix, which so is not
        sharded by its columns any more.
        """
        names = [name for name in self.arrays.matrices if name in self.arrays.parameters]
        for name in names:
            if self._has(name) or name in self.indivisible:
                continue
            pattern, shape = self._kind(name)
            for other in names:
                if self._kind(other) == (pattern, shape) and not self._has(other):
                    self._put(self.arrays.by_name[other], self.arrays.matrices[other])
            self._take_over([array.name for array in self._parameters()])

    def _kind(self, name: str) -> tuple[str, tuple[int, ...]]:
        array = self.arrays.by_name[name]
        return array.pattern, array.shape

    def _parameters(self) -> Iterator[Array]:
        return (a for a in self.arrays.arrays if a.name in self.arrays.parameters)

    def _put(self, array: Array, dims: Sequence[int]) -> bool:
        """Put the axis on the first of some dimensions that it divides; says whether it did."""
        spec = self.specs[array.name]
        moved = (self._added(spec, dim) for dim in dims)
        fitting = next((spec for spec in moved if self._divides(array, spec)), None)
        if fitting is None:
            self.indivisible.add(array.name)
        else:
            self.specs[array.name] = fitting
        return fitting is not None

    def _take_over(self, names: Sequence[str]) -> None:
        """Put the axis where Shardy carries it, on those of some arrays that do not have it yet."""
        free = [name for name in names if not self._has(name)]
        # Beside other axes Shardy would have to choose between them, and recipes would not add up.
        alone = {name: _only(spec, self.axis) for name, spec in self.specs.items()}
        carried = self.carry(alone, free)
        for name in free:
            spec = carried.get(name, ())
            dim = next((dim for dim, axes in enumerate(spec) if self.axis in axes), None)
            array = self.arrays.by_name[name]
            if dim is not None and dim < len(array.shape):
                self._put(array, (dim,))

    def _has(self, name: str) -> bool:
        return self.axis in axes_in(self.specs[name])

    def _added(self, spec: Spec, dim: int) -> Spec:
        axes = tuple(sorted((*spec[dim], self.axis), key=list(self.sizes).index))
        return (*spec[:dim], axes, *spec[dim + 1 :])

    def _divides(self, array: Array, spec: Spec) -> bool:
        parts = (math.prod(self.sizes[axis] for axis in axes) for axes in spec)
        return all(size % n == 0 for size, n in zip(array.shape, parts, strict=True))

    def _is_small(self, array: Array) -> bool:
        total = sum(each.bytes for each in self._parameters())
        return len(array.shape) < 2 and array.bytes < SMALL * total

    def why_left(self, array: Array, recipe: Recipe) -> LeftBecause:
        """Say why an array is not sharded over the axis."""
        name = self.arrays.owners.get(array.name, array.name)
        is_data = self.arrays.part(array.name) == "data"
        if array.is_key:
            return "key"
        if not array.shape:
            return "scalar"
        if name in self.indivisible:
            return "not-divisible"
        if recipe == "zero-1" and array.name in self.arrays.owners:
            return "small"
        return _LEFT[recipe][0 if is_data else 1]


def _only(spec: Spec, axis: str) -> Spec:
    return tuple(tuple(each for each in axes if each == axis) for axes in spec)


def _without(spec: Spec, axis: str) -> Spec:
    return tuple(tuple(other for other in axes if other != axis) for axes in spec)
