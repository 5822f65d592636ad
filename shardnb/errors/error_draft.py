"""The explanation of an exception, before it becomes a report."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
from jax.sharding import NamedSharding

from shardnb.compiler import placement
from shardnb.compiler.arrays import dtype_name
from shardnb.report.model import Axis, Location, Mesh, Value
from shardnb.report.types import Candidate, SpecProblem
from shardnb.terms.errors import ErrorKind


@dataclass(frozen=True)
class Draft:
    """The parts of an `ErrorReport` that depend on its kind.

    `checked` says whether every fix was compiled. `mesh` is set if it is not the grid's, `location`
    and `expression` if they are not those that raised.
    """

    kind: ErrorKind
    sentence: str
    cause: str = ""
    values: tuple[Value, ...] = ()
    fixes: tuple[str, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    checked: bool = False
    mesh: Mesh | None = None
    other_mesh: Mesh | None = None
    problems: tuple[SpecProblem, ...] = ()
    location: Location | None = None
    expression: str = ""


def value_on(name: str, array: Any, spec: Any, sizes: Mapping[str, int]) -> Value:
    """Return an array, or a type, with its sharding on a mesh of these axis sizes."""
    shape = tuple(array.shape)
    entries = placement.dims_of(spec, len(shape))[: len(shape)]
    parts = [math.prod(sizes.get(axis, 1) for axis in axes) for axes in entries]
    local = tuple(-(-size // part) for size, part in zip(shape, parts, strict=True))
    unreduced = tuple(sorted(spec.unreduced))
    return Value(name, dtype_name(array.dtype), shape, entries, local, unreduced=unreduced)


def value_of(name: str, aval: Any) -> Value:
    """Return a type as a value that can be drawn."""
    return value_on(name, aval, aval.sharding.spec, aval.sharding.mesh.shape)


def value_of_array(name: str, array: Any) -> Value:
    """Return an array with its own sharding as a value that can be drawn."""
    if isinstance(array.sharding, NamedSharding):
        return value_of(name, array)
    shape = tuple(array.shape)
    local = tuple(array.sharding.shard_shape(shape))
    return Value(name, dtype_name(array.dtype), shape, ((),) * len(shape), local)


def mesh_of(mesh: Any) -> Mesh | None:
    """Return a JAX mesh, with or without devices, as a report holds it."""
    if mesh is None or mesh.empty:
        return None
    kinds = [kind.name.lower() for kind in mesh.axis_types]
    axes = zip(mesh.axis_names, mesh.axis_sizes, kinds, strict=True)
    concrete = isinstance(mesh, jax.sharding.Mesh)
    ids = [device.id for device in mesh.devices.flat] if concrete else range(mesh.size)
    return Mesh(tuple(Axis(name, size, kind) for name, size, kind in axes), tuple(ids))


def listed(words: Any) -> str:
    """Write names in quotes: 'data' and 'model'."""
    quoted = [repr(word) for word in words]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} and {quoted[-1]}"
