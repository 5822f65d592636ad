"""Whether specs fit arrays and a mesh, checked for all at once and before anything runs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jax.sharding import PartitionSpec

from shardnb.compiler import placement
from shardnb.report import dtypes
from shardnb.report.model import Location
from shardnb.report.types import SpecProblem
from shardnb.terms.errors import SpecProblemKind


@dataclass(frozen=True)
class Stated:
    """A spec with its array; `where` is `input`, `output`, `constraint`, ..."""

    where: str
    name: str
    shape: tuple[int, ...]
    dtype: str
    spec: Any
    location: Location | None = None
    padded: bool = False

    @property
    def entries(self) -> tuple[tuple[str, ...], ...]:
        """The axes of each entry of the spec."""
        return tuple(placement.entries(self.spec))

    @property
    def said(self) -> str:
        """The spec as a sentence names it."""
        return f"{placement.text(self.spec)} of {self.name}"


def check(stated: Sequence[Stated], sizes: Mapping[str, int]) -> tuple[SpecProblem, ...]:
    """Check specs against their arrays and the sizes of the mesh axes; returns all problems.

    >>> stated = Stated("input", "x", (257, 512), "f32", PartitionSpec("data"))
    >>> (problem,) = check([stated], {"data": 4})
    >>> problem.divides, problem.padding, problem.fitting
    ((256, 260), 3, (('data', 1),))
    """
    good = [one for one in stated if isinstance(one.spec, PartitionSpec)]
    found = [problem for one in good for problem in _problems(one, sizes)]
    if not any(problem.kind == "uneven" for problem in found):
        return tuple(found)
    fitting = largest_mesh(good, sizes)
    return tuple(
        replace(problem, fitting=tuple(fitting.items())) if problem.kind == "uneven" else problem
        for problem in found
    )


def _problems(one: Stated, sizes: Mapping[str, int]) -> Iterator[SpecProblem]:
    if len(one.spec) > len(one.shape):
        yield _too_long(one)
    yield from _unknown_axes(one, sizes)
    yield from _axes_twice(one)
    for dim, axes in enumerate(one.entries[: len(one.shape)]):
        parts = math.prod(sizes.get(axis, 1) for axis in set(axes))
        if one.shape[dim] % parts:
            yield _uneven(one, dim, axes, parts)


def _problem(one: Stated, kind: SpecProblemKind, message: str, **details: Any) -> SpecProblem:
    return SpecProblem(
        kind=kind,
        where=one.where,
        name=one.name,
        message=message,
        shape=one.shape,
        spec=placement.text(one.spec),
        location=one.location,
        **details,
    )


def _too_long(one: Stated) -> SpecProblem:
    shorter = placement.text(PartitionSpec(*one.spec.partitions[: len(one.shape)]))
    message = placement.too_long(one.said, one.spec, one.name, one.shape)
    return _problem(one, "rank", message, fix=f"at most {len(one.shape)} entries: {shorter}")


def _unknown_axes(one: Stated, sizes: Mapping[str, int]) -> Iterator[SpecProblem]:
    for axis in dict.fromkeys(axis for axes in one.entries for axis in axes):
        if axis not in sizes:
            listed = ", ".join(sizes)
            message = f"the spec {one.said} names the mesh axis {axis!r}; the mesh has {listed}"
            fix = f"the axes of the mesh are {listed}"
            yield _problem(one, "unknown-axis", message, axes=(axis,), fix=fix)


def _axes_twice(one: Stated) -> Iterator[SpecProblem]:
    used = [axis for axes in one.entries for axis in axes]
    for axis in dict.fromkeys(used):
        if used.count(axis) > 1:
            message = f"the spec {one.said} uses the mesh axis {axis!r} twice"
            fix = "an axis can shard only one dimension"
            yield _problem(one, "axis-twice", message, axes=(axis,), fix=fix)


def _uneven(one: Stated, dim: int, axes: tuple[str, ...], parts: int) -> SpecProblem:
    size = one.shape[dim]
    below, above = size // parts * parts, -(-size // parts) * parts
    added = (*one.shape[:dim], above - size, *one.shape[dim + 1 :])
    why = placement.indivisible(dim, size, parts, axes)
    message = f"the spec {one.said} does not fit: {why}"
    if one.padded:
        message += f"; XLA pads it to {above}"
    divides = f"{below} or {above}" if below else f"{above}"
    return _problem(
        one,
        "uneven",
        message,
        dim=dim,
        axes=axes,
        parts=parts,
        divides=(below, above),
        padding=above - size,
        padded_bytes=dtypes.size_in_bytes(one.dtype, added),
        fix=f"{divides} is divisible; padding to {above} adds {above - size}",
        fatal=not one.padded,
    )


def largest_mesh(stated: Sequence[Stated], sizes: Mapping[str, int]) -> dict[str, int]:
    """Return sizes of the same mesh axes, with at most as many devices, that divide every array.

    Of those with the most devices, the one nearest to `sizes`.
    """
    devices = math.prod(sizes.values())
    dims = [
        (one.shape[dim], axes)
        for one in stated
        for dim, axes in enumerate(one.entries[: len(one.shape)])
        if axes and all(axis in sizes for axis in axes)
    ]
    choices = [_sizes_for(axis, dims, sizes, devices) for axis in sizes]

    def merit(mesh: Mapping[str, int]) -> tuple[int, int]:
        return math.prod(mesh.values()), sum(mesh[axis] == size for axis, size in sizes.items())

    best = dict.fromkeys(sizes, 1)
    for chosen in itertools.product(*choices):
        mesh = dict(zip(sizes, chosen, strict=True))
        divides = all(size % math.prod(mesh[axis] for axis in axes) == 0 for size, axes in dims)
        if math.prod(chosen) <= devices and divides:
            best = max(best, mesh, key=merit)
    return best


def _sizes_for(
    axis: str,
    dims: Sequence[tuple[int, tuple[str, ...]]],
    sizes: Mapping[str, int],
    devices: int,
) -> list[int]:
    """Return the sizes that an axis may have by itself; an unused axis keeps its size."""
    split = [size for size, axes in dims if axis in axes]
    if not split:
        return [sizes[axis]]
    common = math.gcd(*split)
    return [size for size in range(1, devices + 1) if common % size == 0]


def moved_bytes(shape: tuple[int, ...], dtype: str, old: Any, new: Any) -> int:
    """Return the bytes that devices receive when an array is moved to another sharding.

    A device keeps the part of its new block that was in its old one.
    """
    before = {d: _box(index, shape) for d, index in old.devices_indices_map(shape).items()}
    elements = 0
    for device, index in new.devices_indices_map(shape).items():
        box = _box(index, shape)
        elements += _volume(box) - _volume(_common(box, before.get(device)))
    return dtypes.size_in_bytes(dtype, (elements,))


_Box = tuple[tuple[int, int], ...]


def _box(index: Any, shape: tuple[int, ...]) -> _Box:
    return tuple(part.indices(size)[:2] for part, size in zip(index, shape, strict=True))


def _common(box: _Box, other: _Box | None) -> _Box | None:
    if other is None:
        return None
    return tuple((max(a, c), min(b, d)) for (a, b), (c, d) in zip(box, other, strict=True))


def _volume(box: _Box | None) -> int:
    return 0 if box is None else math.prod(max(0, end - start) for start, end in box)
