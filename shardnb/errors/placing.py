"""Exceptions about where arrays are put: specs that do not fit, arguments that lie elsewhere."""

from __future__ import annotations

import difflib
import re
from dataclasses import replace
from typing import Any

import jax
from jax.sharding import NamedSharding, PartitionSpec

from shardnb.compiler import placement
from shardnb.compiler.arrays import dtype_name
from shardnb.compiler.divisibility import moved_bytes
from shardnb.compiler.divisibility import text as spec_text
from shardnb.errors import sharding
from shardnb.errors.error_draft import (
    Draft,
    Explainer,
    listed,
    mesh_of,
    value_of,
    value_of_array,
    value_on,
)
from shardnb.errors.evidence import Evidence
from shardnb.errors.uneven import SPEC, numbers, read_spec
from shardnb.mesh import Grid


def _constraint(evidence: Evidence, grid: Grid | None) -> Draft | None:
    """`with_sharding_constraint` under Explicit axes with another spec than the type has."""
    if "with_sharding_constraint" not in evidence.message:
        return None
    expression = evidence.expression
    said = expression.text if expression else "with_sharding_constraint"
    values = tuple(value_of(name, aval) for name, aval in evidence.arrays.items())
    fixes = ("jax.sharding.reshard in the place of with_sharding_constraint",)
    if expression is not None and "with_sharding_constraint" in said:
        fixes = (re.sub(r"[\w.]*with_sharding_constraint", "jax.sharding.reshard", said, count=1),)
    meshes = [a.sharding.mesh for a in evidence.arrays.values()]
    return Draft(
        kind="constraint",
        sentence=f"{said} asks for another placement than the type has",
        cause="With Explicit axes the placement is in the type: a constraint only asserts it and "
        "moves nothing. reshard moves.",
        values=values,
        fixes=fixes,
        mesh=mesh_of(meshes[0]) if meshes else grid.describe() if grid else None,
    )


def _committed(evidence: Evidence, grid: Grid | None) -> Draft | None:
    """An argument whose sharding is not the one that in_shardings states."""
    del grid
    specs = SPEC.findall(evidence.message)
    if (
        "does not match the sharding on the respective arg" not in evidence.message
        or len(specs) < 2
    ):
        return None
    wanted, own = (read_spec(spec) for spec in specs[:2])
    name, array = _lying_as(evidence, own)
    if array is None:
        return Draft("committed", "an argument lies otherwise than in_shardings says")
    goal = NamedSharding(array.sharding.mesh, wanted)
    sent = moved_bytes(tuple(array.shape), dtype_name(array.dtype), array.sharding, goal)
    return Draft(
        kind="committed",
        sentence=f"{name} lies as {spec_text(own)}, and in_shardings says {spec_text(wanted)}",
        cause="jit moves an argument by itself only where the user has not said where it lies. "
        f"This one was placed on purpose; moving it sends {sent} bytes in all.",
        values=(value_of_array(name, array), value_on("in_shardings", array, wanted, goal.mesh)),
        fixes=(f"{name} = jax.device_put({name}, NamedSharding(mesh, {spec_text(wanted)}))",),
        mesh=mesh_of(array.sharding.mesh),
    )


def _lying_as(evidence: Evidence, spec: PartitionSpec) -> tuple[str, Any]:
    for name, array in evidence.placed.items():
        own = getattr(array.sharding, "spec", None)
        if own is not None and list(placement.entries(own)) == list(placement.entries(spec)):
            return name, array
    return "the argument", None


def _devices(evidence: Evidence, grid: Grid | None) -> Draft | None:
    """Arguments on different devices, or on the same in another order."""
    del grid
    if "incompatible devices" not in evidence.message:
        return None
    lists = [numbers(text) for text in re.findall(r"device ids \[([\d, ]+)\]", evidence.message)]
    same = len(lists) == 2 and sorted(lists[0]) == sorted(lists[1])
    two = _two(evidence)
    sentence = (
        "two arguments are on the same devices in another order"
        if same
        else "two arguments are on different devices"
    )
    cause = (
        "One program runs on one list of devices, in one order. Both arrays were placed on "
        "purpose, so JAX moves neither."
    )
    if two is None:
        return Draft("devices", sentence, cause)
    (name, one), (other_name, other) = two
    sent = (
        moved_bytes(tuple(other.shape), dtype_name(other.dtype), other.sharding, one.sharding)
        if one.shape == other.shape
        else None
    )
    price = (
        f" Moving {other_name} to where {name} is sends {sent} bytes." if sent is not None else ""
    )
    return Draft(
        kind="devices",
        sentence=f"{sentence}: {name} and {other_name}",
        cause=cause + price,
        values=(value_of_array(name, one), value_of_array(other_name, other)),
        fixes=(f"{other_name} = jax.device_put({other_name}, {name}.sharding)",),
        mesh=_mesh_of_array(one),
        other_mesh=_mesh_of_array(other),
    )


def _two(evidence: Evidence) -> tuple[tuple[str, Any], tuple[str, Any]] | None:
    """Find two arrays at the user's line whose devices or their order differ."""
    arrays = list(evidence.placed.items())
    for number, (name, one) in enumerate(arrays):
        for other_name, other in arrays[number + 1 :]:
            if _order(one) != _order(other):
                return (name, one), (other_name, other)
    return None


def _order(array: Any) -> tuple[int, ...]:
    sharding = array.sharding
    mesh = getattr(sharding, "mesh", None)
    devices = mesh.devices.flat if mesh is not None else sharding.device_set
    return tuple(device.id for device in devices)


def _mesh_of_array(array: Any) -> Any:
    from shardnb.report.model import Axis, Mesh

    mesh = getattr(array.sharding, "mesh", None)
    if mesh is not None:
        return mesh_of(mesh)
    ids = _order(array)
    return Mesh((Axis("device", len(ids)),), ids)


def _too_large(evidence: Evidence, grid: Grid | None) -> Draft | None:
    """A mesh larger than the machine, or a number of devices set too late."""
    del grid
    wordings = (
        "must be >= the product of mesh_shape",
        "jax_num_cpu_devices",
        "cannot reshape array",
    )
    found = next((wording for wording in wordings if wording in evidence.message), None)
    text = evidence.expression.text if evidence.expression else ""
    if found is None or (found == "cannot reshape array" and "devices" not in text):
        return None
    late = found == "jax_num_cpu_devices"
    sentence = (
        "the number of CPU devices cannot change once JAX has started"
        if late
        else f"the mesh needs more devices than the machine has ({jax.device_count()})"
    )
    shape = re.search(r"mesh_shape \(([\d, ]+)\)|into shape \(([\d, ]+)\)", evidence.message)
    sizes = numbers(next(filter(None, shape.groups()))) if shape else ()
    found_names = evidence.local("axis_names") or {}
    given = [str(name) for name in found_names.get("axis_names") or ()]
    named = given if len(given) == len(sizes) else [f"axis{i}" for i in range(len(sizes))]
    pairs = (f"{name}={size}" for name, size in zip(named, sizes, strict=True))
    axes = ",".join(pairs) or "data=4,model=2"
    return Draft(
        kind="devices-missing",
        sentence=sentence,
        cause="shardnb compiles for emulated devices beside the notebook's own: any number of "
        "them, and no restart.",
        fixes=(f"%mesh {axes}", f'sn.explain(f, x, mesh="{axes}")'),
    )


def _unknown_axis(evidence: Evidence, grid: Grid | None) -> Draft | None:
    """A spec that names no axis of its mesh."""
    found = re.search(
        r"Resource axis: (\w+) of .*? is not found in mesh: \(([^)]*)\)", evidence.message
    )
    manual = re.search(r"_specs\S* refers to '(\w+)'", evidence.message)
    if found is None and manual is None:
        return None
    axis = found[1] if found else manual[1] if manual else ""
    listed_axes = re.findall(
        r"'(\w+)'", found[2] if found else evidence.message.partition("but:")[0]
    )
    axes = tuple(dict.fromkeys(listed_axes))
    near = difflib.get_close_matches(axis, axes, 1)
    text = evidence.expression.text if evidence.expression else ""
    edit = re.sub(rf"(['\"]){axis}\1", rf"\g<1>{near[0]}\g<1>", text) if near else ""
    return Draft(
        kind="unknown-axis",
        sentence=f"a spec names the mesh axis {axis!r}, which the mesh does not have",
        cause=f"The axes are {listed(axes)}." if axes else "",
        fixes=(edit,) if edit and edit != text else (),
        mesh=grid.describe() if grid else None,
    )


def _twice(evidence: Evidence, grid: Grid | None) -> Draft | None:
    """A spec that uses an axis twice: one that the user wrote, or one of a result."""
    found = re.search(r"has duplicate entries for `(\w+)`", evidence.message)
    if found is None:
        return None
    if evidence.operation is not None:
        return replace(sharding.explain(evidence, grid), kind="axis-twice")
    return Draft(
        kind="axis-twice",
        sentence=f"a spec uses the mesh axis {found[1]!r} twice",
        cause="An axis can split one dimension of an array only: its devices are numbered once.",
    )


def _too_long(evidence: Evidence, grid: Grid | None) -> Draft | None:
    """A spec with more entries than the array has dimensions."""
    del grid
    found = re.search(
        r"rank at least (\d+), but was applied to a value of rank (\d+)", evidence.message
    )
    mapped = re.search(r"has length (\d+), but .*? has rank (\d+)", evidence.message, re.DOTALL)
    match = found or mapped
    if match is None:
        return None
    spec = SPEC.search(evidence.message) or re.search(r"is (P\(.*?\)) which has", evidence.message)
    rank = int(match[2])
    shorter = spec_text(PartitionSpec(*read_spec(spec[1]).partitions[:rank])) if spec else "P()"
    return Draft(
        kind="rank",
        sentence=f"a spec has {match[1]} entries, and its array has {rank} dimensions",
        cause="A spec has at most one entry for each dimension; missing ones mean whole.",
        fixes=(shorter,),
    )


def _broadcast(evidence: Evidence, grid: Grid | None) -> Draft | None:
    """Explicit types that do not meet in a broadcast, or a function that wants out_sharding."""
    del grid
    wordings = (
        "Incompatible types for broadcasting",
        "via `out_sharding`",
        "over sharded axes",
        "unreduced rule for",
    )
    if not any(wording in evidence.message for wording in wordings):
        return None
    return sharding.explain(evidence, None)


def _arguments(evidence: Evidence, grid: Grid | None) -> Draft | None:
    """in_specs of a shard_map that are not the placements in the arguments' Explicit types."""
    del grid
    found = re.search(
        r"in_specs passed to shard_map: (.*?) does not match the specs of the input: "
        r"(.*?) for arg: (\S+)",
        evidence.message,
    )
    if found is None:
        return None
    return Draft(
        kind="in-specs",
        sentence=f"in_specs says {found[1]}, and the argument's type is {found[3].rstrip('.')}",
        cause="With Explicit axes shard_map moves nothing: in_specs has to say what the type says.",
        fixes=(
            f"jax.sharding.reshard(..., {found[1]}) on the argument",
            f"in_specs {found[2]}, or no in_specs: shard_map then takes those of the types",
        ),
    )


EXPLAINERS = (
    Explainer("AssertionError", _constraint),
    Explainer("DuplicateSpecError", _twice),
    Explainer("ValueError", _committed),
    Explainer("ValueError", _devices),
    Explainer("ValueError", _too_large),
    Explainer("RuntimeError", _too_large),
    Explainer("ValueError", _unknown_axis),
    Explainer("ValueError", _too_long),
    Explainer("ValueError", _arguments),
    Explainer("ValueError", _broadcast),
    Explainer("NotImplementedError", _broadcast),
)
