"""Specs in JAX's notation, and the blocks that they divide an array into."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from shardnb.report.dtypes import size_in_bytes

if TYPE_CHECKING:
    from shardnb.report.model import Mesh, Spec, Value


def spec_text(spec: Spec | None, unreduced: tuple[str, ...] = ()) -> str:
    """Write a spec as JAX does.

    >>> spec_text((("data",), (), ("x", "y")))
    "P('data', None, ('x', 'y'))"
    """
    if spec is None:
        return "no mesh axes"
    entries = [_entry_text(entry) for entry in spec]
    while entries and entries[-1] == "None" and len(entries) > 1:
        entries.pop()
    if entries == ["None"]:
        entries = []
    if unreduced:
        entries.append(f"unreduced={{{', '.join(map(repr, unreduced))}}}")
    return f"P({', '.join(entries)})"


def axes_in(spec: Spec) -> set[str]:
    """Return the mesh axes that a spec names."""
    return {axis for entry in spec for axis in entry}


def _entry_text(axes: tuple[str, ...]) -> str:
    if not axes:
        return "None"
    return repr(axes[0]) if len(axes) == 1 else repr(axes)


def mesh_axis(axis: str) -> str:
    """Return the mesh axis that a part of an axis belongs to.

    >>> mesh_axis("data:(2)2")
    'data'
    """
    return axis.partition(":")[0]


def axis_size(axis: str, sizes: Mapping[str, int]) -> int:
    """Give the number of devices along a mesh axis, or along a part of one such as `data:(4)2`."""
    parts = _parts(axis)
    return parts[2] if parts else sizes[axis]


def type_text(value: Value) -> str:
    """Write an array's type with its sharding, as JAX's explicit types do.

    >>> from shardnb.report import Value
    >>> type_text(Value("x", "f32", (256, 512), (("data",), ()), (64, 512)))
    'f32[256@data, 512]'
    >>> type_text(Value("y", "f32", (8,), ((),), (8,), manual=("data",), varying=("data",)))
    'f32[8]{V:data}'
    """
    if value.spec is None:
        return f"{value.dtype}[{', '.join(map(str, value.shape))}] (in no mesh axes)"
    spec = value.spec
    dims = [_dim_text(size, axes) for size, axes in zip(value.shape, spec, strict=True)]
    pending = f"{{U:{','.join(value.unreduced)}}}" if value.unreduced else ""
    axes = ",".join(value.varying or ())
    varying = f"{{V:{f'({axes})' if ',' in axes else axes}}}" if axes else ""
    return f"{value.dtype}[{', '.join(dims)}]{varying}{pending}"


def _dim_text(size: int, axes: tuple[str, ...]) -> str:
    if not axes:
        return str(size)
    return f"{size}@{axes[0]}" if len(axes) == 1 else f"{size}@({','.join(axes)})"


def grid_of(value: Value, mesh: Mesh) -> tuple[int, ...]:
    """Return the number of blocks along each dimension of a value."""
    if value.spec is None:
        return value.grid or (1,) * len(value.shape)
    return tuple(math.prod(axis_size(axis, mesh.shape) for axis in axes) for axes in value.spec)


def placed_value(name: str, dtype: str, shape: tuple[int, ...], spec: Spec, mesh: Mesh) -> Value:
    """Return an array as a spec shards it over a mesh; uneven blocks are padded.

    >>> from shardnb.report import Axis, Mesh
    >>> mesh = Mesh((Axis("data", 4),), (0, 1, 2, 3))
    >>> placed_value("x", "f32", (6, 8), (("data",), ()), mesh).shard_shape
    (2, 8)
    """
    from shardnb.report.model import Value

    entries = (*spec, *((),) * (len(shape) - len(spec)))
    parts = (math.prod(axis_size(axis, mesh.shape) for axis in axes) for axes in entries)
    cut = tuple(-(-size // part) for size, part in zip(shape, parts, strict=True))
    return Value(name, dtype, shape, entries, cut)


def padding_bytes(value: Value, mesh: Mesh) -> int:
    """Return by how many bytes one device's padded block exceeds an even share of the array."""
    return max(0, value.shard_bytes - value.bytes // math.prod(grid_of(value, mesh)))


def blocks_of(value: Value, mesh: Mesh) -> tuple[int, ...]:
    """Return the block at each position of the mesh, row-major over `grid_of`."""
    if value.spec is None:
        return value.blocks or (0,) * mesh.size
    grid = grid_of(value, mesh)
    return tuple(_block(value.spec, grid, position, mesh) for position in range(mesh.size))


def _block(spec: Spec, grid: tuple[int, ...], position: int, mesh: Mesh) -> int:
    coordinate = coordinates(position, mesh)
    block = 0
    for axes, size in zip(spec, grid, strict=True):
        index = 0
        for axis in axes:
            index = index * axis_size(axis, mesh.shape) + _index(axis, coordinate, mesh)
        block = block * size + index
    return block


def received_bytes(value: Value, spec: Spec, mesh: Mesh) -> int:
    """Return the bytes that a device receives, on average, when a value is resharded to a spec.

    What a device holds already, it does not receive.

    >>> from shardnb.report import Axis, Mesh
    >>> mesh = Mesh((Axis("data", 4),), (0, 1, 2, 3))
    >>> received_bytes(placed_value("x", "f32", (8,), (("data",),), mesh), ((),), mesh)
    24
    """
    target = placed_value(value.name, value.dtype, value.shape, spec, mesh)
    old, new = grid_of(value, mesh), grid_of(target, mesh)
    pairs = Counter(zip(blocks_of(value, mesh), blocks_of(target, mesh), strict=True))
    missing = 0
    for (block, wanted), devices in pairs.items():
        held, needed = _interval(value, old, block), _interval(target, new, wanted)
        common = [
            max(0, min(a[1], b[1]) - max(a[0], b[0])) for a, b in zip(held, needed, strict=True)
        ]
        missing += devices * (math.prod(b - a for a, b in needed) - math.prod(common))
    return -(-size_in_bytes(value.dtype, (missing,)) // mesh.size)


def _interval(value: Value, grid: tuple[int, ...], block: int) -> list[tuple[int, int]]:
    """Return where a block begins and ends along each dimension."""
    found = []
    for size, length, parts in reversed(
        list(zip(value.shape, value.shard_shape, grid, strict=True))
    ):
        block, index = divmod(block, parts)
        found.append((min(size, index * length), min(size, (index + 1) * length)))
    return found[::-1]


def coordinates(position: int, mesh: Mesh) -> dict[str, int]:
    """Return the index along each axis of a position of the mesh."""
    result: dict[str, int] = {}
    for axis in reversed(mesh.axes):
        position, result[axis.name] = divmod(position, axis.size)
    return result


def _parts(axis: str) -> tuple[str, int, int] | None:
    """Read a part of an axis as Shardy writes it: `data:(4)2` is (data, 4, 2)."""
    name, colon, rest = axis.rpartition(":(")
    if not colon:
        return None
    before, _, size = rest.partition(")")
    return name, int(before), int(size)


def _index(axis: str, coordinate: dict[str, int], mesh: Mesh) -> int:
    parts = _parts(axis)
    if parts is None:
        return coordinate[axis]
    name, before, size = parts
    after = mesh.shape[name] // (before * size)
    return coordinate[name] // after % size
