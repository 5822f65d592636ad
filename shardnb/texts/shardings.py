"""Reads HLO's shardings, in both notations, into mesh axes."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

import numpy as np

from shardnb.report.invalid_input import InvalidInput, check_devices, place
from shardnb.report.model import Groups, Mesh, Spec
from shardnb.texts.axis_factors import merged, pieces_of
from shardnb.texts.replica_groups import Positions, check_axis, iota

# The notation with the names of axes, `{mesh['data'=4,'model'=2], [{'data'}, {'model':(1)2}]}`,
# where `device_ids` is there if the devices are in another order than the mesh's.
_MESH = re.compile(r"mesh\[([^\]]*)\](?:, device_ids=\(([^{}]*?)\))?")
_SIZE = re.compile(r"'([^']+)'=(\d+)")
_AXIS = re.compile(r"'([^']+)'(?::\((\d+)\)(\d+))?")
# The one with tiles, `{devices=[2,1,4]<=[4,2]T(1,0) last_tile_dims={manual, replicated}}`, or
# with a list of devices where no order of an iota gives them: `{devices=[2,1]1,0}`.
_TILES = re.compile(r"devices=\[([\d,]+)\](<=\[[\d,]+\](?:T\([\d,]+\))?|[\d,]+)")
_DIMENSIONS = re.compile(r"\[(.*)\]", re.DOTALL)
_DIM = re.compile(r"\{([^{}]*)\}")
_LAST = re.compile(r"last_tile_dims=\{([^}]*)\}")
_UNREDUCED = re.compile(r"unreduced=\{([^}]*)\}")


@dataclass(frozen=True)
class Layout:
    """The layout of an array: blocks along each dimension, and the axes that shard it.

    `spec` is None if no mesh axes describe it. `manual` values are already per device. `alone`
    says that one device only holds the array, as with what a host callback returns on TPU.
    """

    tiles: tuple[int, ...]
    spec: Spec | None
    manual: bool = False
    unreduced: tuple[str, ...] = ()
    alone: bool = False

    def shard_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the block's shape, padded if the sizes are not divisible."""
        return tuple(-(-size // tiles) for size, tiles in zip(shape, self.tiles, strict=True))

    def divides(self, shape: tuple[int, ...]) -> bool:
        """Whether every block has the same size."""
        return not any(size % tiles for size, tiles in zip(shape, self.tiles, strict=True))


def whole(rank: int) -> Layout:
    """Return the layout of a replicated array."""
    return Layout((1,) * rank, ((),) * rank)


@dataclass
class LayoutReader:
    """Reads the shardings of HLO for one mesh; caches its answers."""

    mesh: Mesh
    _known: dict[tuple[str, int], Layout] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Factor the mesh axes into primes, from which every sharding is made."""
        self._pieces = pieces_of(self.mesh.shape, self.mesh.shape)
        self._grid = [size for _, _, size in self._pieces] or [1]

    def leaves(self, text: str | None, ranks: tuple[int, ...]) -> tuple[Layout, ...]:
        """Return the layout of each leaf of a value; without a sharding it is replicated."""
        if text is None:
            return tuple(whole(rank) for rank in ranks)
        is_list = text.startswith(("{{", "{ {")) or text == "{}"
        parts = split_list(text[1:-1]) if is_list else [text] * len(ranks)
        if len(parts) != len(ranks):
            parts = [parts[0]] * len(ranks) if parts else ["{replicated}"] * len(ranks)
        return tuple(self.read(part, rank) for part, rank in zip(parts, ranks, strict=True))

    def read(self, text: str, rank: int) -> Layout:
        """Return the layout of an array with a sharding."""
        key = text, rank
        if key not in self._known:
            self._known[key] = self._read(text, rank)
        return self._known[key]

    def _read(self, text: str, rank: int) -> Layout:
        with place(f"the sharding {text[:80]!r}"):
            return self._read_checked(text, rank)

    def _read_checked(self, text: str, rank: int) -> Layout:
        if "[{" in text or re.search(r"\], \[", text):
            return self._named(text, rank)
        if match := _TILES.search(text):
            return self._tiled(text, match, rank)
        manual = bool(re.search(r"\bmanual\b", text))
        alone = "maximal" in text
        return Layout((1,) * rank, ((),) * rank, manual, self._unreduced(text), alone)

    def _unreduced(self, text: str) -> tuple[str, ...]:
        match = _UNREDUCED.search(text)
        return tuple(m[0] for m in _AXIS.findall(match[1])) if match else ()

    def _named(self, text: str, rank: int) -> Layout:
        """Read `{mesh['data'=4,'model'=2], [{'data'}, {}]}`."""
        declared = _MESH.search(text)
        if declared is None:
            return Layout((1,) * rank, None)
        sizes = {name: int(size) for name, size in _SIZE.findall(declared[1])}
        check_devices(math.prod(sizes.values()))
        stated = _DIMENSIONS.search(text, declared.end())
        dims = [_AXIS.findall(dim) for dim in _DIM.findall(stated[1] if stated else "")]
        for axis in (axis for dim in dims for axis in dim):
            check_axis(axis, sizes)
        dims += [[]] * (rank - len(dims))
        if len(dims) != rank:
            raise InvalidInput(f"expected a sharding of {rank} dimensions, got {len(dims)}")
        tiles = tuple(math.prod(_size(axis, sizes) for axis in dim) for dim in dims)
        if declared[2] is None and sizes == self.mesh.shape:
            spec: Spec | None = tuple(
                tuple(f"{name}:({before}){part}" if part else name for name, before, part in dim)
                for dim in dims
            )
        else:
            devices = math.prod(sizes.values())
            order = iota(declared[2]) if declared[2] else np.arange(devices)
            if order.size != devices:
                raise InvalidInput(f"expected the ids of {devices} devices, got {order.size}")
            spec = self._spec([_index(dim, sizes, order) for dim in dims], tiles)
        return Layout(tiles, spec, unreduced=self._unreduced(text))

    def _tiled(self, text: str, match: re.Match[str], rank: int) -> Layout:
        """Read `{devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate}`."""
        dims = [int(size) for size in match[1].split(",") if size]
        check_devices(math.prod(dims))
        order = match[2]
        devices = (
            iota(order[2:])
            if order.startswith("<=")
            else np.array([int(device) for device in order.split(",") if device])
        )
        if sorted(devices.tolist()) != list(range(math.prod(dims))) or len(dims) < rank:
            raise InvalidInput(
                f"expected a sharding of {rank} dimensions with each device once, got {text[:80]!r}"
            )
        where = np.empty(devices.size, dtype=np.int64)
        where[devices] = np.arange(devices.size)
        coordinates = np.unravel_index(where, dims)
        tiles = tuple(dims[:rank])
        last = _LAST.search(text)
        manual = bool(last and "manual" in last[1]) and math.prod(tiles) == 1
        return Layout(tiles, self._spec(list(coordinates[:rank]), tiles), manual)

    def before_permute(self, layout: Layout, pairs: Groups) -> Layout | None:
        """Return the layout of what a permute moves, from the layout of what it makes of that.

        `pairs` are its sources and targets; None where a device has no target or several.
        """
        target = {pair[0]: pair[1] for pair in pairs}
        if layout.spec is None or len(pairs) != len(target) or len(target) != self.mesh.size:
            return None
        sizes, order = self.mesh.shape, np.arange(self.mesh.size)
        targets = np.array([target[device] for device in range(self.mesh.size)])
        parts = [
            [(name, str(before), str(size)) for name, before, size in pieces_of(axes, sizes)]
            for axes in layout.spec
        ]
        indices = [_index(dim, sizes, order)[targets] for dim in parts]
        spec = self._spec(indices, layout.tiles)
        return None if spec is None else Layout(layout.tiles, spec)

    def _spec(self, indices: list[Positions], tiles: tuple[int, ...]) -> Spec | None:
        found = [self._axes(i, size) for i, size in zip(indices, tiles, strict=True)]
        return tuple(axes for axes in found if axes is not None) if None not in found else None

    def _axes(self, index: Positions, tiles: int) -> tuple[str, ...] | None:
        """Find the axes, major first, that assign each device its block along a dimension."""
        if tiles == 1:
            return ()
        if index.size != self.mesh.size or not self._pieces:
            return None
        grid = index.reshape(self._grid)
        strides = []
        for dim, piece in enumerate(self._pieces):
            step = [0] * len(self._grid)
            step[dim] = 1
            if stride := int(grid[tuple(step)] - grid.flat[0]):
                strides.append((stride, dim, piece))
        strides.sort(key=lambda entry: -entry[0])
        coordinates = np.indices(self._grid)
        total = sum(stride * coordinates[dim] for stride, dim, _ in strides)
        if not np.array_equal(total, grid):
            return None
        return merged([piece for _, _, piece in strides], self.mesh.shape)


def split_list(text: str) -> list[str]:
    """Split `{...}, /*index=1*/{...}` at the commas between the braces."""
    parts, depth, start = [], 0, 0
    for index, char in enumerate(text):
        if char in "{[(":
            if char == "{" and depth == 0:
                start = index
            depth += 1
        elif char in "}])":
            depth -= 1
            if char == "}" and depth == 0:
                parts.append(text[start : index + 1])
    return parts


def _size(axis: tuple[str, str, str], sizes: dict[str, int]) -> int:
    return int(axis[2]) if axis[2] else sizes.get(axis[0], 1)


def _index(dim: list[tuple[str, str, str]], sizes: dict[str, int], order: Positions) -> Positions:
    """Return the block of each device along a dimension that `dim` shards."""
    coordinates = dict(
        zip(sizes, np.unravel_index(np.arange(order.size), list(sizes.values())), strict=True)
    )
    block = np.zeros(order.size, dtype=np.int64)
    for axis in dim:
        whole_axis = coordinates[axis[0]]
        size = _size(axis, sizes)
        after = sizes[axis[0]] // (int(axis[1] or 1) * size)
        block = block * size + whole_axis // after % size
    placed = np.empty(order.size, dtype=np.int64)
    placed[order] = block
    return placed
