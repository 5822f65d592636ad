"""The layout of an array on a mesh: its blocks, who holds each, and how to draw them in a plane."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice, product

from shardnb.report import Mesh, Value
from shardnb.report.spec import blocks_of, grid_of


@dataclass(frozen=True)
class Layout:
    """The blocks of an array on a mesh.

    `grid` is the number of blocks along each dimension. `holders` gives for a block, by its
    row-major number, the positions of the mesh that hold it; a block that no device holds is
    absent.
    """

    grid: tuple[int, ...]
    holders: dict[int, tuple[int, ...]]

    @property
    def counts(self) -> tuple[int, ...]:
        """The different numbers of devices that hold a block, in order."""
        return tuple(sorted({len(devices) for devices in self.holders.values()}))


def layout_of(value: Value, mesh: Mesh) -> Layout | None:
    """Lay a value out on the mesh, or give None where the report does not know its sharding."""
    if value.spec is None and (value.grid is None or value.blocks is None):
        return None
    holders: dict[int, list[int]] = {}
    for position, block in enumerate(blocks_of(value, mesh)):
        holders.setdefault(block, []).append(position)
    grid = grid_of(value, mesh)
    return Layout(grid, {block: tuple(found) for block, found in sorted(holders.items())})


def copies(value: Value, mesh: Mesh) -> str:
    """Say how many devices hold each block alike, and along which axes; "" where it is one.

    Devices that hold partial sums of a block hold no copies of it, nor do those along which a value
    in a shard_map varies.
    """
    if value.manual and value.varying is None:
        return ""
    if value.spec is None:
        layout = layout_of(value, mesh)
        counts = layout.counts if layout else (1,)
        return "" if counts == (1,) else f"x{' or x'.join(map(str, counts))} copies"
    own = math.prod(mesh.shape[axis] for axis in _own(value))
    number = mesh.size // (math.prod(grid_of(value, mesh)) * own)
    axes = ", ".join(_free(value, mesh))
    return f"replicated over {axes} (x{number})" if number > 1 else ""


def _own(value: Value) -> tuple[str, ...]:
    """Name the axes along which each device of a block holds a value of its own."""
    return (*value.unreduced, *(value.varying or ()))


def _free(value: Value, mesh: Mesh) -> list[str]:
    """Name the axes along which the devices hold the same."""
    used = {*_own(value), *(axis for axes in value.spec or () for axis in axes)}
    parts = {axis.partition(":(")[0] for axis in used if ":(" in axis}
    free = [axis.name for axis in mesh.axes if axis.size > 1 and axis.name not in used]
    return [f"the rest of {name}" if name in parts else name for name in free]


def plane(grid: Sequence[int]) -> tuple[int | None, int | None]:
    """Choose the dimensions that run down and across a drawing: the last two that are sharded.

    >>> plane(()), plane((4,)), plane((4, 2)), plane((4, 1, 2, 1))
    ((None, None), (None, 0), (0, 1), (0, 2))
    """
    if len(grid) < 2:
        return None, 0 if grid else None
    split = [dim for dim, size in enumerate(grid) if size > 1][-2:]
    whole = [dim for dim in reversed(range(len(grid))) if dim not in split]
    down, across = sorted([*split, *whole[: 2 - len(split)]])
    return down, across


@dataclass(frozen=True)
class Sheet:
    """A part of a grid that is drawn: rows of block numbers, with None where some are left out.

    `at` is the block's index along each dimension that the sheet does not draw, by dimension.
    """

    at: dict[int, int]
    rows: tuple[tuple[int | None, ...], ...]


@dataclass(frozen=True)
class Bounds:
    """How much is drawn: about so many tiles in all, so many rows at most, twice the columns.

    A longer side shows `sampled` rows: the first ones and the last.
    """

    tiles: int = 256
    longest: int = 16
    sampled: int = 10


def sheets(grid: Sequence[int], bounds: Bounds) -> tuple[Sheet, ...]:
    """Cut a grid into sheets of two dimensions, within bounds.

    Where there are more, the first and the last along each dimension stand for the others.
    """
    down, across = plane(grid)
    others = [dim for dim in range(len(grid)) if dim not in (down, across)]
    deep = math.prod(grid[dim] for dim in others)
    shown = min(deep, max(1, bounds.tiles // 16), 8)
    height = 1 if down is None else grid[down]
    width = 1 if across is None else grid[across]
    rows, columns = _fit(height, width, replace(bounds, tiles=max(16, bounds.tiles // shown)))
    # Blocks are numbered row-major: so far apart are two neighbours along each dimension.
    steps = [math.prod(grid[dim + 1 :]) for dim in range(len(grid))]
    high, wide = (0 if dim is None else steps[dim] for dim in (down, across))
    result = []
    for index in islice(product(*(range(grid[dim]) for dim in others)), shown):
        at = dict(zip(others, index, strict=True))
        first = sum(place * steps[dim] for dim, place in at.items())
        drawn = (
            tuple(None if r is None or c is None else first + r * high + c * wide for c in columns)
            for r in rows
        )
        result.append(Sheet(at, tuple(drawn)))
    return tuple(result)


def index_of(grid: Sequence[int], block: int) -> tuple[int, ...]:
    """Return the place in a grid of a row-major number.

    >>> index_of((4, 2), 3)
    (1, 1)
    """
    index: list[int] = []
    for size in reversed(grid):
        block, place = divmod(block, size)
        index.append(place)
    return tuple(reversed(index))


def _fit(
    height: int, width: int, bounds: Bounds
) -> tuple[tuple[int | None, ...], tuple[int | None, ...]]:
    """Choose the rows and columns that are drawn."""
    widest = 2 * bounds.longest
    if height * width <= bounds.tiles and height <= bounds.longest and width <= widest:
        return _ends(height, height), _ends(width, width)
    side = max(4, math.isqrt(bounds.tiles))
    columns = min(width, widest, max(side, bounds.tiles // min(height, side)))
    rows = min(height, bounds.sampled, max(4, bounds.tiles // columns))
    return _ends(height, rows), _ends(width, columns)


def _ends(size: int, limit: int) -> tuple[int | None, ...]:
    """Return the places that are drawn: all, or the first ones, a gap, and the last.

    >>> _ends(3, 4), _ends(100, 4)
    ((0, 1, 2), (0, 1, None, 99))
    """
    if size <= limit:
        return tuple(range(size))
    return (*range(limit - 2), None, size - 1)
