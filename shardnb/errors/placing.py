"""Exceptions about shardings: specs that do not fit, arguments that are sharded otherwise."""

from __future__ import annotations

import difflib
import itertools
import re
from dataclasses import replace
from typing import Any

import jax
from jax.sharding import NamedSharding, PartitionSpec

from shardnb.compiler import placement
from shardnb.compiler.arrays import dtype_name
from shardnb.compiler.divisibility import moved_bytes
from shardnb.compiler.placement import text as spec_text
from shardnb.errors import sharding
from shardnb.errors.error_draft import (
    Draft,
    listed,
    mesh_of,
    value_of,
    value_of_array,
    value_on,
)
from shardnb.errors.evidence import ErrorEvidence
from shardnb.jax_compat import error_wordings as wordings
from shardnb.jax_compat import frames
from shardnb.jax_compat.error_wordings import names, numbers, read_spec
from shardnb.report.model import Axis, Mesh


def constraint(evidence: ErrorEvidence, _: re.Match[str]) -> Draft:
    """`with_sharding_constraint` under Explicit axes with another spec than the type has."""
    expression = evidence.expression
    text = expression.text if expression else "with_sharding_constraint"
    fixes = ("jax.sharding.reshard instead of with_sharding_constraint",)
    if expression is not None and "with_sharding_constraint" in text:
        fixes = (re.sub(r"[\w.]*with_sharding_constraint", "jax.sharding.reshard", text, count=1),)
    meshes = [a.sharding.mesh for a in evidence.arrays.values()]
    return Draft(
        kind="constraint",
        sentence=f"{text} requires another sharding than the array's type has",
        cause="With Explicit axes the sharding is part of the type; a constraint asserts it but "
        "moves nothing. Use reshard to move data.",
        values=tuple(value_of(name, aval) for name, aval in evidence.arrays.items()),
        fixes=fixes,
        mesh=mesh_of(meshes[0]) if meshes else None,
    )


def committed(evidence: ErrorEvidence, _: re.Match[str]) -> Draft | None:
    """An argument whose sharding is not the one in in_shardings."""
    specs = wordings.SPEC.findall(evidence.message)
    if len(specs) < 2:
        return None
    wanted, current = (read_spec(spec) for spec in specs[:2])
    entries = list(placement.entries(current))
    named = [
        (name, array, array.sharding)
        for name, array in evidence.placed.items()
        if isinstance(array.sharding, NamedSharding)
        and list(placement.entries(array.sharding.spec)) == entries
    ]
    if not named:
        return Draft("committed", "an argument is sharded otherwise than in_shardings requires")
    name, array, sharding_now = named[0]
    goal = NamedSharding(sharding_now.mesh, wanted)
    sent = moved_bytes(tuple(array.shape), dtype_name(array.dtype), sharding_now, goal)
    return Draft(
        kind="committed",
        sentence=f"{name} is sharded as {spec_text(current)}, but in_shardings requires "
        f"{spec_text(wanted)}",
        cause="jit moves an argument only if it is not committed to a sharding. "
        f"This one is; moving it sends {sent} bytes in total.",
        values=(
            value_of_array(name, array),
            value_on("in_shardings", array, wanted, goal.mesh.shape),
        ),
        fixes=(f"{name} = jax.device_put({name}, NamedSharding(mesh, {spec_text(wanted)}))",),
        mesh=mesh_of(goal.mesh),
    )


def other_mesh(*_: object) -> Draft:
    """A shard_map on a mesh of its own, in a program for another one."""
    return Draft(
        kind="devices",
        sentence="shard_map has a mesh of its own, but the program is compiled for another mesh",
        cause="A program runs on one mesh, with one type for each axis.",
        fixes=(
            "jax.shard_map(f, in_specs=..., out_specs=...) without mesh: it takes the program's",
            "or mesh=YOUR_MESH in place of a text such as 'data=8'",
        ),
    )


def devices(evidence: ErrorEvidence, _: re.Match[str]) -> Draft:
    """Arguments on different devices, or on the same in another order."""
    lists = [numbers(text) for text in wordings.DEVICE_IDS.findall(evidence.message)]
    same = len(lists) == 2 and sorted(lists[0]) == sorted(lists[1])
    pairs = itertools.combinations(evidence.placed.items(), 2)
    two = next((pair for pair in pairs if _order(pair[0][1]) != _order(pair[1][1])), None)
    sentence = (
        "two arguments are on the same devices in another order"
        if same
        else "two arguments are on different devices"
    )
    cause = (
        "A program runs on one list of devices, in one order. Both arrays are committed to "
        "their devices, so JAX moves neither."
    )
    if two is None:
        return Draft("devices", sentence, cause)
    (name, array), (other_name, other) = two
    if array.shape == other.shape:
        dtype = dtype_name(other.dtype)
        sent = moved_bytes(tuple(other.shape), dtype, other.sharding, array.sharding)
        cause += f" Moving {other_name} to the devices of {name} sends {sent} bytes."
    return Draft(
        kind="devices",
        sentence=f"{sentence}: {name} and {other_name}",
        cause=cause,
        values=(value_of_array(name, array), value_of_array(other_name, other)),
        fixes=(f"{other_name} = jax.device_put({other_name}, {name}.sharding)",),
        mesh=_mesh_of_array(array),
        other_mesh=_mesh_of_array(other),
    )


def _order(array: Any) -> tuple[int, ...]:
    sharding = array.sharding
    mesh = getattr(sharding, "mesh", None)
    devices = mesh.devices.flat if mesh is not None else sharding.device_set
    return tuple(device.id for device in devices)


def _mesh_of_array(array: Any) -> Any:
    mesh = getattr(array.sharding, "mesh", None)
    if mesh is not None:
        return mesh_of(mesh)
    ids = _order(array)
    return Mesh((Axis("device", len(ids)),), ids)


def too_large(evidence: ErrorEvidence, _: re.Match[str]) -> Draft | None:
    """A mesh larger than the machine, or a number of devices set too late."""
    text = evidence.expression.text if evidence.expression else ""
    late = wordings.TOO_LATE_FOR_DEVICES.search(evidence.message)
    shape = wordings.MESH_TOO_LARGE.search(evidence.message)
    if shape is None and "devices" in text:
        shape = wordings.DEVICES_DO_NOT_RESHAPE.search(evidence.message)
    if not late and not shape:
        return None
    sentence = f"the mesh needs more devices than the machine has ({jax.device_count()})"
    if late:
        sentence = "the number of CPU devices cannot change once JAX has started"
    sizes = numbers(shape[1]) if shape else ()
    found = frames.MESH_AXIS_NAMES.find(evidence.frames) or {}
    given = [str(name) for name in found.get("axis_names") or ()]
    named = given if len(given) == len(sizes) else [f"axis{i}" for i in range(len(sizes))]
    axes = ",".join(map("{}={}".format, named, sizes)) or "data=4,model=2"
    return Draft(
        kind="devices-missing",
        sentence=sentence,
        cause="shardnb compiles for emulated devices, apart from the notebook's own: any number of "
        "them, without a restart.",
        fixes=(f"%mesh {axes}", f'sn.explain(f, x, mesh="{axes}")'),
    )


def unknown_axis(evidence: ErrorEvidence, match: re.Match[str]) -> Draft:
    """A spec that names an axis that its mesh does not have."""
    axis, axes = match["axis"], names(match["axes"])
    near = difflib.get_close_matches(axis, axes, 1)
    text = evidence.expression.text if evidence.expression else ""
    edit = re.sub(rf"(['\"]){axis}\1", rf"\g<1>{near[0]}\g<1>", text) if near else ""
    return Draft(
        kind="unknown-axis",
        sentence=f"a spec names the mesh axis {axis!r}, which the mesh does not have",
        cause=f"The axes are {listed(axes)}." if axes else "",
        fixes=(edit,) if edit and edit != text else (),
    )


def twice(evidence: ErrorEvidence, match: re.Match[str]) -> Draft:
    """A spec that uses an axis twice: one that the user wrote, or that of a result."""
    if evidence.operation is not None:
        return replace(sharding.explain(evidence), kind="axis-twice")
    return Draft(
        kind="axis-twice",
        sentence=f"a spec uses the mesh axis {match[1]!r} twice",
        cause="An axis can shard only one dimension of an array.",
    )


def too_long(evidence: ErrorEvidence, match: re.Match[str]) -> Draft:
    """A spec with more entries than the array has dimensions."""
    spec = wordings.SHARD_MAP_SPEC_TOO_LONG.search(evidence.message)
    spec, rank = spec or wordings.SPEC.search(evidence.message), int(match["rank"])
    shorter = spec_text(PartitionSpec(*read_spec(spec[1]).partitions[:rank])) if spec else "P()"
    return Draft(
        kind="rank",
        sentence=f"a spec has {match['length']} entries, and its array has {rank} dimensions",
        cause="A spec has at most one entry per dimension; without an entry one is not sharded.",
        fixes=(shorter,),
    )


def arguments(_: ErrorEvidence, match: re.Match[str]) -> Draft:
    """in_specs of a shard_map that are not the shardings in the arguments' Explicit types."""
    return Draft(
        kind="in-specs",
        sentence=f"in_specs has {match[1]}, but the argument's type is {match[3].rstrip('.')}",
        cause="With Explicit axes shard_map moves nothing: in_specs has to agree with the type.",
        fixes=(
            f"jax.sharding.reshard(..., {match[1]}) on the argument",
            f"in_specs {match[2]}, or no in_specs: shard_map then uses the shardings in the types",
        ),
    )
