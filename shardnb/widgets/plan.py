"""A plan: the axes of a mesh, and a spec for each array of the arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax

from shardnb.compiler import placement
from shardnb.mesh import MeshSpec, parse_mesh
from shardnb.report import Axis
from shardnb.report.model import Spec

Tree = Any
Data = Mapping[str, Any]


@dataclass(frozen=True)
class MeshPlan:
    """The axes of a mesh, and a spec for each array by its name, such as `params['w']`."""

    axes: tuple[Axis, ...]
    specs: tuple[tuple[str, Spec], ...]

    @classmethod
    def of(cls, data: Data) -> MeshPlan:
        """Read a plan from the data that a front end sends; raises `ValueError`."""
        mesh = ",".join(f"{axis['name']}={axis['size']}:{axis['type']}" for axis in data["axes"])
        specs = (
            (str(name), tuple(tuple(map(str, axes)) for axes in spec))
            for name, spec in data["specs"].items()
        )
        return cls(parse_mesh(mesh).axes, tuple(specs))

    @property
    def data(self) -> dict[str, Any]:
        """Return the plan as the front end reads it."""
        axes = [{"name": a.name, "size": a.size, "type": a.type} for a in self.axes]
        return {"axes": axes, "specs": {name: list(map(list, s)) for name, s in self.specs}}

    @property
    def mesh(self) -> str:
        """Return the mesh in its own grammar: `data=4,model=2`."""
        return str(MeshSpec(self.axes))

    @property
    def is_auto(self) -> bool:
        """Whether all axes are Auto."""
        return all(axis.type == "auto" for axis in self.axes)


def plan_of(axes: tuple[Axis, ...], args: dict[str, Tree], placed: dict[str, Tree]) -> MeshPlan:
    """Return the plan with some specs or shardings, in the structure of the arguments."""
    specs: list[tuple[str, Spec]] = []
    for name, tree in args.items():
        leaves = placement.named_leaves({name: tree})
        given = jax.tree_util.tree_leaves(placed[name], is_leaf=placement.is_spec)
        for (path, leaf), spec in zip(leaves, given, strict=True):
            dims = placement.dims_of(getattr(spec, "spec", spec), len(leaf.shape))
            specs.append((path, dims))
    return MeshPlan(axes, tuple(specs))


def in_specs(plan: MeshPlan, args: dict[str, Tree]) -> dict[str, Tree]:
    """Return a plan's specs in the structure of the arguments."""
    known = dict(plan.specs)
    return placement.specs_like(args, (known[path] for path, _ in placement.named_leaves(args)))
