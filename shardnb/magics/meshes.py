"""The mesh of a notebook, and which mesh a cell is compiled for."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from shardnb.cost import Given, on_hardware
from shardnb.hosts.engines import Engines
from shardnb.magics.options import OptionError
from shardnb.magics.specs import Evaluate, NeedsRun, value_of
from shardnb.mesh import Grid, make_grid, mesh_of, nearest_text, no_mesh
from shardnb.report import Mesh, Report

NO_MESH = "no mesh is set: run `%mesh data=4,model=2` first"


@dataclass
class NotebookMesh:
    """The arguments of `%mesh`: a text or a `jax.sharding.Mesh`, the axis type, the devices.

    `hardware` is what the seconds of its cells are for, None for the devices themselves. `hosts`
    are the processes that its cells run on, None for this one.
    """

    stated: str | jax.sharding.Mesh | None = None
    axes: str | None = None
    on: str | None = None
    hardware: Given | None = None
    hosts: Engines | None = None

    def grid(self, axes: str | None = None, on: str | None = None) -> Grid | None:
        """Return the notebook's mesh with its devices, or None if `%mesh` was not run."""
        if self.stated is None:
            return None
        return make_grid(self.stated, axes or self.axes, on or self.on)

    def choose(
        self, stated: str | jax.sharding.Mesh | None, axes: str | None, on: str | None, values: Any
    ) -> Grid:
        """Return the mesh of a cell.

        It is `stated`, else the mesh in the shardings of `values`, else the notebook's, else the
        one of `jax.set_mesh`. Raises `ValueError` with the right form if there is none.
        """
        if stated is not None:
            return make_grid(stated, axes, on)
        notebooks, placed = self.grid(axes, on), mesh_of(values)
        if notebooks is not None and (placed is None or _same(notebooks.mesh, placed)):
            return notebooks
        if placed is None and jax.sharding.get_mesh().empty:
            raise ValueError(f"{NO_MESH}, or add `--mesh data=4,model=2`")
        return make_grid(placed, axes, on)

    def hardware_of(self, mesh: Mesh) -> Given | None:
        """Return what the seconds are for on a mesh: known only of the notebook's own."""
        grid = self.grid() if self.hardware is not None else None
        if grid is None:
            return None
        own = grid.describe()
        return self.hardware if (own.target, own.shape) == (mesh.target, mesh.shape) else None


def hardware_value(text: str, namespace: Mapping[str, Any], mesh: Mesh) -> Given:
    """Return the hardware that a text names: a chip or cluster, a file, or a dict by its name.

    Raises `OptionError` if it is not known, if a figure is wrong, or if the mesh does not fit.
    """
    value = namespace.get(text)
    given = dict(value) if isinstance(value, Mapping) else text
    try:
        on_hardware(Report("", mesh), given)
    except ValueError as error:
        raise OptionError(f"--hardware: {error}") from error
    return given


def _same(mesh: jax.sharding.Mesh, other: jax.sharding.Mesh) -> bool:
    """Whether two meshes have the same axes over the same devices, whatever the axis types."""
    return mesh.axis_names == other.axis_names and np.array_equal(mesh.devices, other.devices)


def mesh_value(
    text: str, namespace: Mapping[str, Any], evaluate: Evaluate = value_of
) -> str | jax.sharding.Mesh:
    """Return the mesh that a text names: the text itself, or the value of the expression.

    Raises `ValueError` if the expression is not a mesh, and `NeedsRun` where `evaluate` does.
    """
    if "=" in text.partition("(")[0]:
        return text
    try:
        value = evaluate(text, namespace)
    except NeedsRun:
        raise
    except Exception as error:  # whatever the user's expression raises
        meshes = [name for name, value in namespace.items() if isinstance(value, jax.sharding.Mesh)]
        near = nearest_text(text) or next(iter(difflib.get_close_matches(text, meshes, 1)), None)
        raise ValueError(
            f"expected a mesh such as data=4,model=2 or the name of a Mesh, got {text!r}: "
            + (f"did you mean {near}?" if near else f"{type(error).__name__}: {error}")
        ) from error
    if not isinstance(value, str | jax.sharding.Mesh):
        raise ValueError(no_mesh(value))
    return value


def described(grid: Grid) -> str:
    """Write a mesh in one line.

    >>> described(make_grid("data=4,model=2:explicit"))
    'data=4 (auto), model=2 (explicit): 8 emulated cpu devices'
    """
    mesh = grid.describe()
    axes = ", ".join(f"{axis.name}={axis.size} ({axis.type})" for axis in mesh.axes)
    kind = f"emulated {mesh.platform}" if mesh.emulated else mesh.kind
    return f"{axes}: {mesh.size} {kind} device{'' if mesh.size == 1 else 's'}"
