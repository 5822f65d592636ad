"""Exceptions about sizes that the mesh axes do not divide."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from shardnb.compiler import divisibility
from shardnb.compiler.arrays import dtype_name
from shardnb.compiler.divisibility import Stated
from shardnb.errors.error_draft import Draft, Explainer, value_on
from shardnb.errors.evidence import Evidence
from shardnb.jax_compat import error_wordings as wordings
from shardnb.jax_compat import frames
from shardnb.jax_compat.error_wordings import names, numbers, read_spec
from shardnb.mesh import Grid
from shardnb.report.types import SpecProblem

_INNER = "an array inside this line"


def _uneven(evidence: Evidence, grid: Grid | None) -> Draft | None:
    """A dimension that the mesh axes do not divide."""
    del grid
    stated, sizes = _stated(evidence)
    problems = divisibility.check(stated, sizes) if sizes else ()
    problems = tuple(one for one in problems if one.kind == "uneven")
    if not problems and not wordings.FULL_SHAPE.search(evidence.message):
        return None
    return _divided(problems, stated, sizes, evidence)


def _stated(evidence: Evidence) -> tuple[list[Stated], dict[str, int]]:
    """Find the array's shape, its spec and the mesh: in the frames, else in the text."""
    found = frames.ARRAY_AND_SHARDING.find(evidence.frames)
    shape = wordings.FULL_SHAPE.search(evidence.message)
    if found is not None and isinstance(found["self"], NamedSharding):
        sharding = found["self"]
        one = _one(evidence, tuple(found["global_shape"]), sharding.spec)
        return [one], dict(sharding.mesh.shape)
    spec = wordings.SPEC.search(evidence.message)
    if shape is None or spec is None:
        return [], {}
    sizes = {name: int(size) for name, size in wordings.AXIS_SIZES.findall(evidence.message)}
    return [_one(evidence, numbers(shape[1]), read_spec(spec[1]))], sizes


def _one(evidence: Evidence, shape: tuple[int, ...], spec: PartitionSpec) -> Stated:
    """Name the array by the user's expression where that has one of this shape."""
    known = {**evidence.arrays, **_hosts(evidence)}
    name = next((text for text, one in known.items() if tuple(one.shape) == shape), "")
    dtype = dtype_name(known[name].dtype) if name in known else "f32"
    called = _called(evidence)
    name = name or (_INNER if called in known else called)
    return Stated("input", name, shape, dtype, spec)


def _called(evidence: Evidence) -> str:
    """Name the array by JAX's own path, else by the first argument of the user's call."""
    path = wordings.KEY_PATH.search(evidence.message)
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
        if one.dim is None or one.divides is None or one.name == _INNER:
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
    if not wordings.SHARD_MAP_UNEVEN.search(evidence.message):
        return None
    found = frames.SHARD_MAP_ARGUMENTS.find(evidence.frames)
    if found is not None:
        arguments = getattr(found.get("dbg"), "arg_names", None) or ()
        stated = [
            Stated("in_spec", _name(arguments, i), tuple(a.shape), dtype_name(a.dtype), spec)
            for i, (a, spec) in enumerate(
                zip(found["dyn_args"], found["in_specs_flat"], strict=True)
            )
        ]
        sizes = dict(found["mesh"].shape)
    else:
        mapped = wordings.SHARD_MAP_ARGUMENT.findall(evidence.message)
        stated = [
            Stated(
                "in_spec", name or f"args{key}", numbers(shape), dtype_name(dtype), read_spec(spec)
            )
            for key, dtype, shape, name, spec in mapped
        ]
        sizes = _mesh_in(evidence.message)
    return _divided(divisibility.check(stated, sizes), stated, sizes, evidence)


def _name(names: Any, number: int) -> str:
    return names[number] if number < len(names) else f"argument {number}"


def _mesh_in(message: str) -> dict[str, int]:
    found = wordings.SHARD_MAP_MESH.search(message)
    return dict(zip(names(found[2]), numbers(found[1]), strict=True)) if found else {}


EXPLAINERS = (
    Explainer(wordings.INDIVISIBLE_ERROR, _uneven),
    Explainer("ValueError", _mapped),
    Explainer("ValueError", _uneven),
)
