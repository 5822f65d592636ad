"""A mesh with its devices, which a program is compiled for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jax
from jax.sharding import AxisType, NamedSharding

from shardnb.jax_compat.devices import compile_only
from shardnb.mesh import gpus
from shardnb.mesh.grammar import MeshSpec, axis_type, no_mesh, parse_mesh
from shardnb.mesh.targets import compiled_for, devices_for, target_name
from shardnb.report import model
from shardnb.terms.axis_types import AXIS_TYPES

_TYPES = {name: AxisType[row.of_mesh] for name, row in AXIS_TYPES.items()}

Notebook = Callable[[str | None, str | None], "Grid | None"]
_notebooks: list[Notebook] = []


def follow(notebook: Notebook) -> None:
    """Use a notebook's mesh as the default; `notebook` returns it for `axes` and `on`."""
    _notebooks.append(notebook)


def unfollow(notebook: Notebook) -> None:
    """Stop using a notebook's mesh as the default."""
    _notebooks.remove(notebook)


@dataclass(frozen=True)
class Grid:
    """A `jax.sharding.Mesh`, and the axes over which the program is written for one device.

    JAX makes an axis manual only inside `shard_map`, so `mesh` has these axes as Auto.
    """

    mesh: jax.sharding.Mesh
    manual: frozenset[str] = frozenset()
    target: str = "cpu"

    @property
    def compile_only(self) -> bool:
        """Whether its devices can only be compiled for."""
        return compile_only(self.mesh.devices.flat[0])

    @property
    def axes(self) -> tuple[model.Axis, ...]:
        """The axes as a report holds them."""
        mesh = self.mesh
        return tuple(
            model.Axis(name, size, "manual" if name in self.manual else axis_type(kind.name))
            for name, size, kind in zip(
                mesh.axis_names, mesh.axis_sizes, mesh.axis_types, strict=True
            )
        )

    def describe(self) -> model.Mesh:
        """Return the mesh as a report holds it."""
        devices: Sequence[jax.Device] = list(self.mesh.devices.flat)
        coords = tuple(tuple(device.coords) for device in devices if hasattr(device, "coords"))
        cores = tuple(getattr(device, "core_on_chip", 0) for device in devices)
        slices = tuple(getattr(device, "slice_index", 0) or 0 for device in devices)
        hosts, domains = tuple(device.process_index for device in devices), None
        if (placed := gpus.placement(devices)) is not None:
            hosts, domains, slices = placed
        elif devices[0].platform == "gpu":
            # JAX numbers what NVLink joins as slices; a process may have one GPU of a host only.
            hosts, domains, slices = (), slices, ()
        return model.Mesh(
            axes=self.axes,
            device_ids=tuple(device.id for device in devices),
            target=self.target,
            platform=devices[0].platform,
            kind=devices[0].device_kind,
            emulated=devices[0].platform == "cpu",
            coords=coords if len(coords) == len(devices) else None,
            cores=cores if any(cores) else None,
            slices=_several(slices),
            hosts=_several(hosts),
            domains=_several(domains or ()),
        )


def _several(numbers: tuple[int, ...]) -> tuple[int, ...] | None:
    return numbers if len(set(numbers)) > 1 else None


def make_grid(
    mesh: str | jax.sharding.Mesh | Grid | None,
    axes: str | None = None,
    on: str | None = None,
    args: object = (),
) -> Grid:
    """Return the grid for the arguments `mesh`, `axes` and `on` of the public functions.

    `mesh` is a text such as `data=4,model=2`, a `jax.sharding.Mesh` (`axes` changes its axis
    types), or None: the mesh in the shardings of `args`, else the one of `%mesh`, else the one of
    `jax.set_mesh`. `on` names the devices for a text, and moves the axes of another mesh to a TPU
    topology. Raises `ValueError` that shows the right form if there is no mesh.
    """
    if isinstance(mesh, Grid):
        return mesh
    if isinstance(mesh, str):
        return _laid(parse_mesh(mesh, axes), target_name(on or "cpu"))
    found: Any = mesh if mesh is not None else mesh_of(args)
    if found is None:
        for notebook in _notebooks:
            if (grid := notebook(axes, on)) is not None:
                return grid
        found = jax.sharding.get_mesh()
    if not isinstance(found, jax.sharding.Mesh | jax.sharding.AbstractMesh):
        raise ValueError(no_mesh(found))
    if found.empty:
        raise ValueError("no mesh is given and no argument is on one: pass mesh='data=4,model=2'")
    if isinstance(found, jax.sharding.AbstractMesh):
        raise ValueError(f"{found} has no devices: pass mesh='data=4,model=2', or a Mesh")
    target = "cpu" if found.devices.flat[0].platform == "cpu" else "attached"
    grid = Grid(found, target=target)
    if on is not None and compiled_for(on):
        grid = _laid(MeshSpec(grid.axes), target_name(on))
    return retyped(grid, axes)


@lru_cache(maxsize=64)
def _laid(spec: MeshSpec, target: str) -> Grid:
    mesh = jax.sharding.Mesh(
        devices_for(target, [axis.size for axis in spec.axes]),
        tuple(axis.name for axis in spec.axes),
        axis_types=tuple(_TYPES[axis.type] for axis in spec.axes),
    )
    return Grid(mesh, spec.manual, target)


def retyped(grid: Grid, axes: str | None) -> Grid:
    """Return the grid with all axes of one type (None: unchanged)."""
    if axes is None:
        return grid
    kind = axis_type(axes)
    types = (_TYPES[kind],) * len(grid.mesh.axis_names)
    mesh = jax.sharding.Mesh(grid.mesh.devices, grid.mesh.axis_names, axis_types=types)
    manual = frozenset(mesh.axis_names) if kind == "manual" else frozenset()
    return Grid(mesh, manual, grid.target)


def mesh_of(values: object) -> jax.sharding.Mesh | None:
    """Return the first mesh in the shardings of arrays, or among shardings."""
    for leaf in jax.tree_util.tree_leaves(values):
        sharding = leaf if isinstance(leaf, NamedSharding) else getattr(leaf, "sharding", None)
        if isinstance(sharding, NamedSharding) and isinstance(sharding.mesh, jax.sharding.Mesh):
            return sharding.mesh
    return None
