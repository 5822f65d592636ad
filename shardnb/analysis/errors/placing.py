"""Exceptions about where arrays are put: specs that do not fit, arguments that lie elsewhere."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from shardnb.analysis import divisibility
from shardnb.analysis.divisibility import Stated, moved_bytes
from shardnb.analysis.divisibility import text as spec_text
from shardnb.analysis.errors import sharding
from shardnb.analysis.errors.draft import (
    Draft,
    Explainer,
    listed,
    mesh_of,
    value_of,
    value_of_array,
    value_on,
)
from shardnb.analysis.errors.evidence import Evidence
from shardnb.analysis.values import dtype_name
from shardnb.compiler import placement
from shardnb.mesh import Grid
from shardnb.report.types import SpecProblem

_SPEC = re.compile(r"spec=(P\((?:[^()]|\([^()]*\))*\))")
_SIZES = re.compile(r"'(\w+)': (\d+)")
_FULL_SHAPE = re.compile(r"(?:full shape: |Got shape: )\(([\d, ]*)\)")
_MAPPED = re.compile(
    r"the passed args(\S+) of shape (\w+)\[([\d,]*)\](?:, where args\S+ is bound to \S+'s "
    r"parameter '(\w+)',)? corresponds to in_specs\S* of value (P\(.*?\)), which maps"
)
_ENTRY = re.compile(r"'(\w+)'|None|\(([^()]*)\)")


def _uneven(evidence: Evidence, grid: Grid | None) -> Draft | None:
    """A dimension that the mesh axes do not divide."""
    del grid
    stated, sizes = _stated(evidence)
    problems = divisibility.check(stated, sizes) if sizes else ()
    problems = tuple(one for one in problems if one.kind == "uneven")
    if not problems and not _FULL_SHAPE.search(evidence.message):
        return None
    return _divided(problems, stated, sizes, evidence)


def _stated(evidence: Evidence) -> tuple[list[Stated], dict[str, int]]:
    """Find the array's shape, its spec and the mesh: in the frames, else in the text."""
    found = evidence.local("self", "global_shape")
    shape = _FULL_SHAPE.search(evidence.message)
    if found is not None and isinstance(found["self"], NamedSharding):
        sharding = found["self"]
        return [_one(evidence, tuple(found["global_shape"]), sharding.spec)], dict(
            sharding.mesh.shape
        )
    spec = _SPEC.search(evidence.message)
    if shape is None or spec is None:
        return [], {}
    sizes = {name: int(size) for name, size in _SIZES.findall(evidence.message)}
    return [_one(evidence, _numbers(shape[1]), _read(spec[1]))], sizes


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if part.strip())


def _read(text: str) -> PartitionSpec:
    """Read a spec as JAX prints it."""
    entries: list[Any] = []
    for match in _ENTRY.finditer(text[2:-1]):
        axes = tuple(re.findall(r"'(\w+)'", match[0]))
        entries.append(axes if match[2] is not None else axes[0] if axes else None)
    return PartitionSpec(*entries)


def _one(evidence: Evidence, shape: tuple[int, ...], spec: PartitionSpec) -> Stated:
    """Name the array by the user's expression where that has one of this shape."""
    known = {**evidence.arrays, **_hosts(evidence)}
    name = next((text for text, one in known.items() if tuple(one.shape) == shape), "")
    dtype = dtype_name(known[name].dtype) if name in known else "f32"
    name = name or _called(evidence)
    return Stated("input", name, shape, dtype, spec)


def _called(evidence: Evidence) -> str:
    """Name the array by JAX's own path, else by the first argument of the user's call."""
    path = re.search(r"pytree key path (\S+?) was", evidence.message)
    expression = evidence.expression
    first = expression.parts[0] if expression and expression.parts else None
    return path[1] if path else expression.text_of(first) if expression and first else "the array"


def _hosts(evidence: Evidence) -> dict[str, Any]:
    named = evidence.expression.named if evidence.expression else {}
    arrays = np.ndarray | jax.ShapeDtypeStruct | jax.Array
    return {text: value for text, value in named.items() if isinstance(value, arrays)}


def _divided(
    problems: Iterable[SpecProblem],
    stated: list[Stated],
    sizes: dict[str, int],
    evidence: Evidence,
) -> Draft:
    problems = tuple(problems)
    first = problems[0] if problems else None
    sentence = first.message if first else evidence.message.partition("\n")[0]
    return Draft(
        kind="uneven",
        sentence=sentence,
        cause="A split cuts a dimension into equal blocks, one for each device along its axes. "
        "The same holds under Auto and Explicit, and no type can say it: it is checked where the "
        "array is made.",
        values=tuple(value_on(s.name, s, s.spec, _Sizes(sizes)) for s in stated if sizes),
        fixes=tuple(dict.fromkeys(_ways(problems))),
        problems=problems,
    )


class _Sizes:
    """The sizes of a mesh, where the mesh itself is not at hand."""

    def __init__(self, shape: dict[str, int]) -> None:
        self.shape = shape


def _ways(problems: tuple[SpecProblem, ...]) -> Iterable[str]:
    for one in problems:
        if one.dim is None or one.divides is None:
            continue
        widths = [
            f"(0, {one.padding})" if i == one.dim else "(0, 0)" for i in range(len(one.shape))
        ]
        yield f"jnp.pad({one.name}, [{', '.join(widths)}])"
        if one.fitting:
            yield f"a mesh of {', '.join(f'{name}={size}' for name, size in one.fitting)}"
        if one.divides[0]:
            yield f"{one.divides[0]} or {one.divides[1]} instead of {one.shape[one.dim]}"


def _mapped(evidence: Evidence, grid: Grid | None) -> Draft | None:
    """An argument of a shard_map that its in_specs do not divide."""
    del grid
    if "not evenly divisible" not in evidence.message:
        return None
    found = evidence.local("in_specs_flat", "dyn_args", "mesh")
    if found is not None:
        names = getattr(found.get("dbg"), "arg_names", None) or ()
        stated = [
            Stated("in_spec", _name(names, i), tuple(a.shape), dtype_name(a.dtype), spec)
            for i, (a, spec) in enumerate(
                zip(found["dyn_args"], found["in_specs_flat"], strict=True)
            )
        ]
        sizes = dict(found["mesh"].shape)
    else:
        stated = [
            Stated("in_spec", m[4] or f"args{m[1]}", _numbers(m[3]), dtype_name(m[2]), _read(m[5]))
            for m in _MAPPED.finditer(evidence.message)
        ]
        sizes = _mesh_in(evidence.message)
    return _divided(divisibility.check(stated, sizes), stated, sizes, evidence)


def _name(names: Any, number: int) -> str:
    return names[number] if number < len(names) else f"argument {number}"


def _mesh_in(message: str) -> dict[str, int]:
    found = re.search(r"mesh given has shape \(([\d, ]+)\) with .*? names \(([^)]*)\)", message)
    if found is None:
        return {}
    return dict(zip(re.findall(r"'(\w+)'", found[2]), _numbers(found[1]), strict=True))


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
    specs = _SPEC.findall(evidence.message)
    if (
        "does not match the sharding on the respective arg" not in evidence.message
        or len(specs) < 2
    ):
        return None
    wanted, own = (_read(spec) for spec in specs[:2])
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
    lists = [_numbers(text) for text in re.findall(r"device ids \[([\d, ]+)\]", evidence.message)]
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
    sizes = _numbers(next(filter(None, shape.groups()))) if shape else ()
    axes = ",".join(f"axis{i}={size}" for i, size in enumerate(sizes)) or "data=4,model=2"
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
    spec = _SPEC.search(evidence.message) or re.search(r"is (P\(.*?\)) which has", evidence.message)
    rank = int(match[2])
    shorter = spec_text(PartitionSpec(*_read(spec[1]).partitions[:rank])) if spec else "P()"
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
    Explainer("IndivisibleError", _uneven),
    Explainer("AssertionError", _constraint),
    Explainer("DuplicateSpecError", _twice),
    Explainer("ValueError", _mapped),
    Explainer("ValueError", _committed),
    Explainer("ValueError", _devices),
    Explainer("ValueError", _too_large),
    Explainer("RuntimeError", _too_large),
    Explainer("ValueError", _unknown_axis),
    Explainer("ValueError", _too_long),
    Explainer("ValueError", _arguments),
    Explainer("ValueError", _broadcast),
    Explainer("NotImplementedError", _broadcast),
    Explainer("ValueError", _uneven),
)
