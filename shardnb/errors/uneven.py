"""Exceptions about sizes that are not divisible by the mesh axes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from shardnb.compiler import divisibility
from shardnb.compiler.arrays import dtype_name
from shardnb.compiler.divisibility import Stated
from shardnb.errors.error_draft import Draft, value_on
from shardnb.errors.evidence import ErrorEvidence
from shardnb.jax_compat import error_wordings as wordings
from shardnb.jax_compat import frames
from shardnb.jax_compat.error_wordings import names, numbers, read_spec
from shardnb.report.types import SpecProblem

_INNER = "an array inside this line"


def uneven(evidence: ErrorEvidence, _: re.Match[str]) -> Draft | None:
    """A dimension that is not divisible by the mesh axes."""
    stated, sizes = _stated(evidence)
    problems = [p for p in divisibility.check(stated, sizes) if p.kind == "uneven"] if sizes else []
    if not problems and not wordings.FULL_SHAPE.search(evidence.message):
        return None
    return _draft(problems, stated, sizes, evidence)


def _stated(evidence: ErrorEvidence) -> tuple[list[Stated], dict[str, int]]:
    """Find the array's shape, its spec and the mesh: in the frames, else in the message."""
    names_there = frames.ARRAY_AND_SHARDING.find(evidence.frames)
    shape = wordings.FULL_SHAPE.search(evidence.message)
    if names_there is not None and isinstance(sharding := names_there["self"], NamedSharding):
        stated = _named(evidence, tuple(names_there["global_shape"]), sharding.spec)
        return [stated], dict(sharding.mesh.shape)
    spec = wordings.SPEC.search(evidence.message)
    if shape is None or spec is None:
        return [], {}
    sizes = {name: int(size) for name, size in wordings.AXIS_SIZES.findall(evidence.message)}
    return [_named(evidence, numbers(shape[1]), read_spec(spec[1]))], sizes


def _named(evidence: ErrorEvidence, shape: tuple[int, ...], spec: PartitionSpec) -> Stated:
    """Name the array by the user's expression if that has an array of this shape.

    Else by JAX's path, or by the first argument of the user's call, unless that is an array of
    another shape: then the one that is not divisible is made inside the call.
    """
    hosts = np.ndarray | jax.ShapeDtypeStruct | jax.Array
    arrays = {text: value for text, value in evidence.named.items() if isinstance(value, hosts)}
    arrays = {**evidence.arrays, **arrays}
    name = next((text for text, array in arrays.items() if tuple(array.shape) == shape), "")
    dtype = dtype_name(arrays[name].dtype) if name else "f32"
    if not name:
        path = wordings.KEY_PATH.search(evidence.message)
        expression = evidence.expression
        first = expression.parts[0] if expression and expression.parts else None
        text = expression.text_of(first) if expression and first else "the array"
        name = path[1] if path else text
        name = _INNER if name in arrays else name
    return Stated("input", name, shape, dtype, spec)


def _draft(
    problems: Sequence[SpecProblem],
    stated: list[Stated],
    sizes: dict[str, int],
    evidence: ErrorEvidence,
) -> Draft:
    return Draft(
        kind="uneven",
        sentence=problems[0].message if problems else evidence.message.partition("\n")[0],
        cause="A sharded dimension is divided into equal blocks, one per device along its axes. "
        "That holds with Auto and Explicit axes. A type does not show it: JAX checks it where the "
        "array is made.",
        values=tuple(value_on(s.name, s, s.spec, sizes) for s in stated if sizes),
        fixes=tuple(dict.fromkeys(_fixes(problems))),
        problems=tuple(problems),
    )


def _fixes(problems: Sequence[SpecProblem]) -> Iterator[str]:
    for problem in problems:
        if problem.dim is None or problem.divides is None or problem.name == _INNER:
            continue
        widths = ["(0, 0)"] * len(problem.shape)
        widths[problem.dim] = f"(0, {problem.padding})"
        yield f"jnp.pad({problem.name}, [{', '.join(widths)}])"
        if problem.fitting:
            yield f"a mesh of {', '.join(f'{name}={size}' for name, size in problem.fitting)}"
        below, above = problem.divides
        if below:
            yield f"{below} or {above} instead of {problem.shape[problem.dim]}"


def mapped(evidence: ErrorEvidence, _: re.Match[str]) -> Draft:
    """An argument of a shard_map that is not divisible as its in_specs require."""
    names_there = frames.SHARD_MAP_ARGUMENTS.find(evidence.frames)
    if names_there is not None:
        given = getattr(names_there.get("dbg"), "arg_names", None) or ()
        arguments = zip(names_there["dyn_args"], names_there["in_specs_flat"], strict=True)
        stated = [
            Stated(
                "in_spec",
                given[number] if number < len(given) else f"argument {number}",
                tuple(array.shape),
                dtype_name(array.dtype),
                spec,
            )
            for number, (array, spec) in enumerate(arguments)
        ]
        sizes = dict(names_there["mesh"].shape)
    else:
        stated = [
            Stated(
                "in_spec", name or f"args{key}", numbers(shape), dtype_name(dtype), read_spec(spec)
            )
            for key, dtype, shape, name, spec in wordings.SHARD_MAP_ARGUMENT.findall(
                evidence.message
            )
        ]
        mesh = wordings.SHARD_MAP_MESH.search(evidence.message)
        sizes = dict(zip(names(mesh[2]), numbers(mesh[1]), strict=True)) if mesh else {}
    return _draft(divisibility.check(stated, sizes), stated, sizes, evidence)
