"""What PyTorch/XLA makes of a mesh and a partition spec.

The rules are those of `torch_xla.distributed.spmd` 2.9: the tile assignment that its Python passes
down, the sharding string that XLA then prints, and the shard that each device holds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from shardnb.terms.torch import SpmdKind

if TYPE_CHECKING:
    import jax
    from jax.sharding import NamedSharding

Entry = int | str | tuple[int | str, ...] | None
"""What shards one dimension: a mesh axis by its index or name, several, or none."""

MAX_RANK = 5
"""PyTorch/XLA's bindings take tile and group arrays of one to five dimensions."""


@dataclass(frozen=True)
class TensorShard:
    """What one device holds of a tensor.

    `index` slices the tensor, clipped to its size where the shard is padded. `replica_id` counts
    the devices that hold the same shard.
    """

    device: int
    index: tuple[slice, ...]
    replica_id: int


class SpmdMesh:
    """A mesh as `torch_xla.distributed.spmd.Mesh` takes it, without torch.

    `device_ids` are all devices, once each, in any order; `mesh_shape` gives the size of each mesh
    axis, row-major over the ids; `axis_names` names the axes. Raises ValueError for what
    PyTorch/XLA refuses with an AssertionError, and for ids below zero, which it lets through.

    >>> mesh = SpmdMesh(range(8), (4, 2), ("data", "model"))
    >>> mesh.sharding(("data", None)).hlo
    '{devices=[4,1,2]0,1,2,3,4,5,6,7 last_tile_dim_replicate}'
    """

    def __init__(
        self,
        device_ids: Iterable[int],
        mesh_shape: Sequence[int],
        axis_names: Sequence[str] | None = None,
    ) -> None:
        """Check the ids, the shape and the names against each other."""
        ids = device_ids if isinstance(device_ids, np.ndarray) else np.array(list(device_ids))
        self.device_ids = tuple(int(device) for device in ids.ravel())
        self.mesh_shape = tuple(int(size) for size in mesh_shape)
        self.axis_names = None if axis_names is None else tuple(axis_names)
        _check_mesh(self.device_ids, self.mesh_shape, self.axis_names)

    def __repr__(self) -> str:
        """Show the mesh as it is written."""
        names = "" if self.axis_names is None else f", {self.axis_names}"
        return f"SpmdMesh({self.device_ids}, {self.mesh_shape}{names})"

    def __eq__(self, other: object) -> bool:
        """Meshes are equal when the same devices stand in the same places."""
        return isinstance(other, SpmdMesh) and repr(self) == repr(other)

    def __hash__(self) -> int:
        """Agree with equality."""
        return hash(repr(self))

    @property
    def size(self) -> int:
        """Number of devices."""
        return len(self.device_ids)

    @cached_property
    def logical_mesh(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The device ids as an array of the mesh's shape."""
        return np.array(self.device_ids, dtype=np.int64).reshape(self.mesh_shape)

    def sharding(self, spec: Iterable[Entry], *, data_loader: bool = False) -> SpmdSharding:
        """Return the sharding of a tensor that has as many dimensions as `spec` has entries.

        Each entry is the index or name of a mesh axis, a tuple of these (the first is the major
        one), or None for a dimension that is not sharded. `data_loader=True` follows
        `ShardingSpec`, which calls a spec TILED where `mark_sharding` sees an axis left over.

        Raises TypeError or ValueError where PyTorch/XLA refuses the spec.

        >>> mesh = SpmdMesh(range(8), (2, 4))
        >>> mesh.sharding((None, 1)).kind
        'PARTIAL'
        >>> mesh.sharding((0, 2))
        Traceback (most recent call last):
            ...
        ValueError: the spec (0, 2) uses axis 2, but the mesh (2, 4) has the axes 0 to 1
        """
        return SpmdSharding(self, _axes_of_spec(self, spec), data_loader)


def _check_mesh(
    ids: tuple[int, ...], shape: tuple[int, ...], names: tuple[str, ...] | None
) -> None:
    if not ids:
        message = "a mesh needs at least one device, got no device ids"
    elif any(size < 1 for size in shape):
        message = f"each mesh axis needs a size of at least 1, got the mesh shape {shape}"
    elif names is not None and len(names) != len(shape):
        message = f"expected {len(shape)} axis names for the mesh shape {shape}, got {names}"
    elif names is not None and len(set(names)) != len(names):
        message = f"each axis needs a name of its own, got {names}"
    elif len(ids) != math.prod(shape):
        message = f"the mesh shape {shape} holds {math.prod(shape)} devices, got {len(ids)} ids"
    elif sorted(ids) != list(range(len(ids))):
        # torch_xla refuses repeated ids and those from the number of devices on, but not negative
        # ones, although they name no device.
        message = f"expected each id from 0 to {len(ids) - 1} once, in any order, got {ids}"
    else:
        return
    raise ValueError(message)


def _axes_of_spec(mesh: SpmdMesh, spec: Iterable[Entry]) -> tuple[tuple[int, ...] | None, ...]:
    """Return the indices of the mesh axes of each dimension, None where the entry is None."""
    if isinstance(spec, str | bytes | list):
        hint = "; did you mean a tuple?" if isinstance(spec, list) else ""
        message = (
            f"expected a tuple such as (0, None), got the {type(spec).__name__} {spec!r}{hint}"
        )
        raise TypeError(message)
    entries = tuple(spec)
    axes = tuple(_axes_of_entry(mesh, entries, entry) for entry in entries)
    used = [axis for entry in axes for axis in entry or ()]
    rank = len(mesh.mesh_shape)
    for axis in used:
        if not 0 <= axis < rank:
            message = (
                f"the spec {entries} uses axis {axis}, but the mesh {mesh.mesh_shape} has the axes "
                f"0 to {rank - 1}"
            )
            raise ValueError(message)
        if used.count(axis) > 1:
            shown = axis if mesh.axis_names is None else repr(mesh.axis_names[axis])
            message = f"the spec {entries} uses the mesh axis {shown} more than once"
            raise ValueError(message)
    if used and () in axes:
        message = f"the spec {entries} has an empty tuple; write None for a dimension not sharded"
        raise TypeError(message)
    return axes


def _axes_of_entry(mesh: SpmdMesh, spec: tuple[Entry, ...], entry: Entry) -> tuple[int, ...] | None:
    if entry is None:
        return None
    if type(entry) is tuple:
        return tuple(_axis_index(mesh, spec, axis) for axis in entry)
    return (_axis_index(mesh, spec, entry),)


def _axis_index(mesh: SpmdMesh, spec: tuple[Entry, ...], axis: object) -> int:
    # Exactly int: True is an int to Python, and torch_xla refuses it, as it does NumPy's.
    if type(axis) is int:
        return axis
    if type(axis) is not str:
        message = (
            f"expected a mesh axis by its index or name in the spec {spec}, got the "
            f"{type(axis).__name__} {axis!r}"
        )
        raise (TypeError if isinstance(axis, list) or axis is None else ValueError)(message)
    if mesh.axis_names is None:
        message = f"the spec {spec} names the axis {axis!r}, but the mesh has no axis names"
        raise ValueError(message)
    if axis not in mesh.axis_names:
        names = ", ".join(mesh.axis_names)
        message = f"the spec {spec} uses axis {axis!r}, which is not an axis of the mesh: {names}"
        raise ValueError(message)
    return mesh.axis_names.index(axis)


@dataclass(frozen=True)
class SpmdSharding:
    """A tensor's sharding over a mesh; `SpmdMesh.sharding` makes one.

    `axes` are the indices of the mesh axes that shard each dimension, None where none does.
    """

    mesh: SpmdMesh
    axes: tuple[tuple[int, ...] | None, ...]
    data_loader: bool = False

    def __post_init__(self) -> None:
        """Refuse what has more dimensions than PyTorch/XLA's bindings take."""
        groups = self.rank if self.requested_kind == "PARTIAL" else 0
        if max(groups, self.tile_assignment.ndim) > MAX_RANK:
            message = (
                f"PyTorch/XLA shards tensors and meshes of at most {MAX_RANK} dimensions, got a "
                f"spec of {self.rank} over a mesh of {len(self.mesh.mesh_shape)}"
            )
            raise ValueError(message)

    @property
    def rank(self) -> int:
        """Number of dimensions of the tensor."""
        return len(self.axes)

    @property
    def unused(self) -> tuple[int, ...]:
        """The mesh axes that shard no dimension, ascending."""
        used = {axis for entry in self.axes for axis in entry or ()}
        return tuple(axis for axis in range(len(self.mesh.mesh_shape)) if axis not in used)

    @cached_property
    def tile_assignment(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The device ids, with a dimension for each sharded dimension, then each unused axis."""
        sharded = [entry for entry in self.axes if entry is not None]
        order = [axis for entry in sharded for axis in entry] + list(self.unused)
        sizes = [self._size(entry) for entry in sharded]
        sizes += [self.mesh.mesh_shape[axis] for axis in self.unused]
        return self.mesh.logical_mesh.transpose(order).reshape(sizes)

    @property
    def requested_kind(self) -> SpmdKind:
        """The sharding type that PyTorch/XLA's Python asks XLA for; `kind` is what becomes of it.

        >>> sharding = SpmdMesh(range(8), (8, 1)).sharding((0, None))
        >>> sharding.requested_kind, sharding.kind
        ('PARTIAL', 'TILED')
        """
        if not self.axes:
            return "REPLICATED"
        if not self.data_loader and self.tile_assignment.ndim > self.rank:
            return "PARTIAL"
        if self.mesh.size == 1:
            return "MAXIMAL"
        if all(entry is None for entry in self.axes):
            return "REPLICATED"
        return "PARTIAL" if None in self.axes else "TILED"

    @property
    def kind(self) -> SpmdKind:
        """The sharding type that XLA gives back: REPLICATED, TILED or PARTIAL."""
        if self.requested_kind in ("REPLICATED", "MAXIMAL"):
            return "REPLICATED"
        if self.requested_kind == "TILED":
            return "TILED"
        groups, _ = self.group_assignment
        if len(groups) == 1:
            return "REPLICATED"
        return "TILED" if len(groups[0]) == 1 else "PARTIAL"

    @property
    def group_assignment(self) -> tuple[tuple[tuple[int, ...], ...], tuple[Any, ...]]:
        """The devices that hold the same shard, and the groups' numbers as the tensor is divided.

        Both are empty but for a `requested_kind` of PARTIAL.

        >>> SpmdMesh(range(8), (4, 2)).sharding((None, 1)).group_assignment
        (((0, 2, 4, 6), (1, 3, 5, 7)), ((0, 1),))
        """
        if self.requested_kind != "PARTIAL":
            return (), ()
        numbers = np.arange(math.prod(self.tiles)).reshape(self.tiles)
        rows = self.tile_assignment.reshape(numbers.size, -1)
        groups = tuple(tuple(int(device) for device in row) for row in rows)
        return groups, cast("tuple[Any, ...]", _tuples(numbers.tolist()))

    @property
    def tiles(self) -> tuple[int, ...]:
        """The number of blocks along each dimension of the tensor."""
        return tuple(self._size(entry or ()) for entry in self.axes)

    def _size(self, axes: tuple[int, ...]) -> int:
        return math.prod(self.mesh.mesh_shape[axis] for axis in axes)

    @property
    def hlo(self) -> str:
        """The sharding as PyTorch/XLA prints it: by device ids.

        >>> SpmdMesh(range(8), (2, 4)).sharding((None, 1)).hlo
        '{devices=[1,4,2]0,4,1,5,2,6,3,7 last_tile_dim_replicate}'
        """
        match self.kind:
            case "PARTIAL":
                groups, _ = self.group_assignment
                ids = [device for group in groups for device in sorted(group)]
                dims = (*self.tiles, len(groups[0]))
                last = " last_tile_dim_replicate"
            case "TILED":
                is_tiled = self.requested_kind == "TILED"
                dims = self.tile_assignment.shape if is_tiled else self.tiles
                ids, last = self.tile_assignment.ravel().tolist(), ""
            case _:
                return "{replicated}"
        return f"{{devices=[{_commas(dims)}]{_commas(ids)}{last}}}"

    @property
    def hlo_iota(self) -> str:
        """The sharding as JAX and newer XLA print it: by positions in the mesh, as an iota.

        Device ids take no part in it.

        >>> SpmdMesh(range(8), (2, 4)).sharding((None, 1)).hlo_iota
        '{devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}'
        """
        tiles, copies = self.tiles, self._size(self.unused)
        if math.prod(tiles) == 1:
            return "{replicated}"
        order = [axis for entry in self.axes for axis in entry or ()] + list(self.unused)
        dims = tiles if copies == 1 else (*tiles, copies)
        last = "" if copies == 1 else " last_tile_dim_replicate"
        return f"{{devices=[{_commas(dims)}]<={_iota(self.mesh.mesh_shape, order)}{last}}}"

    def shards(self, shape: Sequence[int]) -> tuple[TensorShard, ...]:
        """Return what each device holds of a tensor of `shape`, in the order of the device ids.

        A dimension that does not divide is padded: the last shards hold less, or nothing.

        >>> for shard in SpmdMesh([1, 0], (2,)).sharding((0,)).shards((5,)):
        ...     print(shard.device, shard.index)
        0 (slice(3, 5, None),)
        1 (slice(0, 3, None),)
        """
        self.check_rank(tuple(shape))
        if self.kind == "REPLICATED":
            everything = tuple(slice(0, size) for size in shape)
            return tuple(
                TensorShard(device, everything, device) for device in range(self.mesh.size)
            )
        holders = self._holders()
        shards = []
        for block, devices in zip(product(*map(range, self.tiles)), holders, strict=True):
            index = tuple(
                _clipped(number, -(-size // count), size)
                for number, count, size in zip(block, self.tiles, shape, strict=True)
            )
            shards += [TensorShard(device, index, copy) for copy, device in enumerate(devices)]
        return tuple(sorted(shards, key=lambda shard: shard.device))

    def check_rank(self, shape: tuple[int, ...]) -> None:
        """Raise ValueError for a tensor that has another number of dimensions than the spec."""
        if len(shape) != self.rank:
            message = (
                f"the spec has {self.rank} entries, but the tensor has {len(shape)} dimensions: "
                f"{shape}; PyTorch/XLA wants one entry for each"
            )
            raise ValueError(message)

    def _holders(self) -> list[list[int]]:
        """The devices that hold each block, row-major over the blocks, in replica order."""
        rows = self.tile_assignment.reshape(math.prod(self.tiles), -1).tolist()
        return [sorted(row) for row in rows]

    def named_sharding(self, devices: Sequence[jax.Device] | None = None) -> NamedSharding:
        """Return the same sharding as JAX's; an axis without a name is called by its index.

        `devices` are listed by their id in the mesh; emulated CPU devices where none are given.

        >>> SpmdMesh(range(8), (2, 4)).sharding((None, 1)).named_sharding().spec[1]
        '1'
        """
        import jax
        from jax.sharding import NamedSharding, PartitionSpec

        from shardnb.mesh import devices_for

        if devices is None:
            devices = np.asarray(devices_for("cpu", (self.mesh.size,))).ravel().tolist()
        if len(devices) != self.mesh.size:
            message = f"expected {self.mesh.size} devices for the mesh, got {len(devices)}"
            raise ValueError(message)
        names = self.mesh.axis_names or tuple(map(str, range(len(self.mesh.mesh_shape))))
        grid = np.array(devices, dtype=object)[self.mesh.logical_mesh]
        spec = PartitionSpec(*(tuple(names[axis] for axis in entry or ()) for entry in self.axes))
        return NamedSharding(jax.sharding.Mesh(grid, names), spec)


def from_named_sharding(sharding: NamedSharding, rank: int) -> SpmdSharding:
    """Return JAX's sharding of an array of `rank` dimensions as PyTorch/XLA's.

    Devices are numbered by the order of their ids. Raises ValueError where PyTorch/XLA has nothing
    alike: unconstrained dimensions, unreduced axes, a spec longer than the rank.

    >>> mesh = SpmdMesh([3, 1, 2, 0], (2, 2), ("x", "y"))
    >>> from_named_sharding(mesh.sharding((("x", "y"), None)).named_sharding(), 2).mesh == mesh
    True
    """
    devices = sharding.mesh.devices
    order = sorted(device.id for device in devices.flat)
    ids = [order.index(device.id) for device in devices.flat]
    mesh = SpmdMesh(ids, devices.shape, sharding.mesh.axis_names)
    spec = sharding.spec
    if len(spec) > rank or getattr(spec, "unreduced", None):
        message = f"expected a spec of at most {rank} entries without unreduced axes, got {spec}"
        raise ValueError(message)
    return mesh.sharding((*spec, *(None,) * (rank - len(spec))))


def _clipped(number: int, length: int, size: int) -> slice:
    """Return the block's slice, cut at the end of the dimension."""
    return slice(min(number * length, size), min((number + 1) * length, size))


def _tuples(value: object) -> object:
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value


def _commas(values: Iterable[object]) -> str:
    return ",".join(map(str, values))


def _iota(shape: tuple[int, ...], order: list[int]) -> str:
    """Write an iota reshaped to `shape` and transposed by `order`, as XLA shortens it.

    Axes of size 1 leave no trace, and axes that stay neighbours are one.
    """
    kept = [axis for axis in order if shape[axis] > 1]
    rank = {axis: number for number, axis in enumerate(sorted(kept))}
    runs: list[list[int]] = []
    for axis in kept:
        if runs and rank[axis] == rank[runs[-1][-1]] + 1:
            runs[-1].append(axis)
        else:
            runs.append([axis])
    ascending = sorted(runs)
    merged = _commas(math.prod(shape[axis] for axis in run) for run in ascending)
    transposed = _commas(ascending.index(run) for run in runs)
    return f"[{merged}]" if len(runs) == 1 else f"[{merged}]T({transposed})"
