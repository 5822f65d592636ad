"""What the annotations of a program said while it was traced; imports no torch."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import jax
from jax.sharding import NamedSharding, PartitionSpec

from shardnb.torch.spmd import SpmdMesh, SpmdSharding

Frame = tuple[str, str, int]


@dataclass(frozen=True)
class Variant:
    """How a program is traced to see what its annotations do.

    The annotation of the number `without` is left out, or that of the input of this name which was
    made before the program; that of the number `toggled` constrains the
    gradient where it does not in the user's program, and the other way round. With `gradients` the
    gradient of each annotated tensor is a result.
    """

    without: int | str | None = None
    toggled: int | None = None
    gradients: bool = False


@dataclass
class Annotation:
    """A call of `mark_sharding` or of a function like it.

    `subject` is the name of an input of the program that it annotates, "" for a value that the
    program computes. `frames` are the stack of the call, innermost first: file, function, line.
    """

    number: int
    function: str
    sharding: SpmdSharding
    shape: tuple[int, ...]
    itemsize: int
    subject: str = ""
    gradients: bool = False
    frames: tuple[Frame, ...] = ()


@dataclass
class Marks:
    """The annotations of one trace, in the order in which they were made.

    `placed` has the shardings of inputs, by the `id` of the user's tensor, and `cotangents` the
    gradients of annotated tensors by the number of the annotation.
    """

    mesh: jax.sharding.Mesh | None
    variant: Variant
    made: list[Annotation] = field(default_factory=list)
    placed: dict[int, SpmdSharding] = field(default_factory=dict)
    cleared: set[int] = field(default_factory=set)
    cotangents: dict[int | str, Any] = field(default_factory=dict)

    def add(
        self, function: str, sharding: SpmdSharding, tensor: Any, subject: str, *, gradients: bool
    ) -> Annotation:
        """Remember an annotation of a traced tensor."""
        itemsize = tensor.jax().dtype.itemsize
        made = Annotation(
            len(self.made), function, sharding, tuple(tensor.shape), itemsize, subject, gradients
        )
        made.frames = callers()
        self.made.append(made)
        return made

    def named_sharding(self, sharding: SpmdSharding) -> NamedSharding:
        """Return JAX's sharding on the mesh of the program.

        Raises ValueError where the annotation is for another mesh.
        """
        if self.mesh is None:
            raise ValueError("this program has no mesh, so that nothing in it can be annotated")
        return named_on(self.mesh, sharding)


def named_on(mesh: jax.sharding.Mesh, sharding: SpmdSharding) -> NamedSharding:
    """Return JAX's sharding on a mesh, which must be the one of the sharding."""
    check_mesh(mesh, sharding.mesh)
    axes = (tuple(mesh.axis_names[axis] for axis in entry or ()) for entry in sharding.axes)
    return NamedSharding(mesh, PartitionSpec(*(entry or None for entry in axes)))


def check_mesh(mesh: jax.sharding.Mesh, stated: SpmdMesh) -> None:
    """Raise ValueError where a `SpmdMesh` is not the mesh that a program is compiled for."""
    names = stated.axis_names or tuple(map(str, range(len(stated.mesh_shape))))
    ids = [device.id for device in mesh.devices.flat]
    order = tuple(sorted(ids).index(number) for number in ids)
    known = dict(zip(mesh.axis_names, mesh.axis_sizes, strict=True))
    given = dict(zip(names, stated.mesh_shape, strict=True))
    same_axes = stated.mesh_shape == tuple(mesh.axis_sizes) and (
        stated.axis_names is None or stated.axis_names == tuple(mesh.axis_names)
    )
    if not same_axes:
        raise ValueError(f"the program is on the mesh {known}, but this annotation is on {given}")
    if order != stated.device_ids:
        raise ValueError(
            f"the program is on the devices {list(order)} in this order, but this annotation is on "
            f"{list(stated.device_ids)}"
        )


def callers() -> tuple[Frame, ...]:
    """Return the stack around a call of this room, without this room, innermost first."""
    frames: list[Frame] = []
    frame: FrameType | None = sys._getframe(1)
    here = __file__.rpartition("marks.py")[0]
    while frame is not None:
        if not frame.f_code.co_filename.startswith(here):
            frames.append((frame.f_code.co_filename, frame.f_code.co_name, frame.f_lineno))
        frame = frame.f_back
    return tuple(frames)
