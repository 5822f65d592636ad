"""Arrays that are committed to another sharding than the program takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
from jax.sharding import NamedSharding, PartitionSpec

from shardnb.compiler import divisibility, placement
from shardnb.compiler.arrays import dtype_name
from shardnb.compiler.divisibility import Stated
from shardnb.compiler.request import Request
from shardnb.report.types import SpecProblem


def committed(request: Request) -> Iterator[SpecProblem]:
    """Yield the arrays committed to another sharding than their spec, with the bytes to move."""
    mesh = request.mesh
    for name, leaf, spec in placement.stated(request.arguments, request.in_specs):
        own, bare = getattr(leaf, "sharding", None), bare_spec(spec, mesh)
        if spec is None and isinstance(own, NamedSharding) and own.mesh.size > 1:
            bare = placement.own_sharding(leaf, mesh).spec
        if not isinstance(leaf, jax.Array) or not isinstance(bare, PartitionSpec):
            continue
        if own is None or not getattr(leaf, "committed", True):
            continue
        one = Stated("input", name, tuple(leaf.shape), dtype_name(leaf.dtype), bare)
        if divisibility.check([one], dict(mesh.shape)):
            continue
        stated = spec if isinstance(spec, NamedSharding) else own
        wanted = NamedSharding(mesh, bare, memory_kind=placement.memory_kind(stated))
        if not own.is_equivalent_to(wanted, leaf.ndim):
            yield _elsewhere(one, own, wanted)


def left_behind(request: Request) -> Iterator[str]:
    """Say which arrays are sharded over axes that this mesh does not have, so that they are not.

    Such an array is on other devices than the program's: there it is replicated.
    """
    mesh, names, axes = request.mesh, [], ""
    for name, leaf, spec in placement.stated(request.arguments, request.in_specs):
        own = getattr(leaf, "sharding", None)
        if spec is not None or not isinstance(own, NamedSharding) or not any(own.spec):
            continue
        if own.mesh.shape != mesh.shape and not _shares_devices(own.mesh, mesh):
            names.append(name)
            axes = axes or _axes_text(own.mesh)
    if names:
        more = f" and {len(names) - 1} more are" if names[1:] else " is"
        yield (
            f"{names[0]}{more} sharded over a mesh {axes}, but the program's mesh is "
            f"{_axes_text(mesh)}, so {'they are' if names[1:] else 'it is'} replicated here; give "
            "in_specs to shard over this mesh"
        )


def _shares_devices(own: Any, mesh: jax.sharding.Mesh) -> bool:
    if isinstance(own, jax.sharding.AbstractMesh):
        return False
    return not set(own.devices.flat).isdisjoint(mesh.devices.flat)


def _axes_text(mesh: Any) -> str:
    return ",".join(f"{name}={size}" for name, size in mesh.shape.items())


def bare_spec(spec: Any, mesh: jax.sharding.Mesh) -> Any:
    """Return the spec of a sharding on this mesh, and any other sharding as it is."""
    on_this = isinstance(spec, NamedSharding) and spec.mesh.shape == mesh.shape
    return spec.spec if on_this else spec


def _elsewhere(one: Stated, own: Any, wanted: NamedSharding) -> SpecProblem:
    same_devices = own.device_set == wanted.device_set
    moved = divisibility.moved_bytes(one.shape, one.dtype, own, wanted)
    lies = placement.text(own.spec) if isinstance(own, NamedSharding) else "one device"
    what = _difference(own, wanted, same_devices=same_devices)
    message = (
        f"{one.name} is sharded as {lies} {what}, but the program takes it as "
        f"{placement.text(one.spec)}: moving it sends {moved} bytes in total"
    )
    where = f"NamedSharding(mesh, {placement.text(one.spec)})"
    return SpecProblem(
        kind="committed" if same_devices else "device",
        where=one.where,
        name=one.name,
        message=message,
        shape=one.shape,
        spec=placement.text(one.spec),
        moved_bytes=moved,
        fix=f"{one.name} = jax.device_put({one.name}, {where})",
        fatal=False,
    )


def _difference(own: Any, wanted: NamedSharding, *, same_devices: bool) -> str:
    if not same_devices:
        return f"on {len(own.device_set)} other device{'s' if len(own.device_set) > 1 else ''}"
    if not isinstance(own, NamedSharding):
        return "on the same devices"
    same = own.mesh == wanted.mesh
    return "on this mesh" if same else "on a mesh of the same devices in another order or shape"
