"""The inputs and outputs of a program, with their shardings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import jax
from jax.sharding import NamedSharding, PartitionSpec

from shardnb.compiler import Program, placement
from shardnb.report import dtypes
from shardnb.report.model import UNUSED, Spec, Value

_HLO_NAMES = {
    "bool": "pred",
    "bfloat16": "bf16",
    "float": "f",
    "int": "s",
    "uint": "u",
    "complex": "c",
}


def dtype_name(dtype: Any) -> str:
    """Return the HLO name of a dtype, such as `f32` or `s8`; a PRNG key's is `key<fry>`."""
    name = str(dtype)
    if name.startswith("key<") and name not in dtypes.NAMED:
        return f"{name[:-1]}:{8 * dtype.itemsize}>"
    if name in _HLO_NAMES:
        return _HLO_NAMES[name]
    stem = name.rstrip("0123456789")
    if stem in _HLO_NAMES:
        return _HLO_NAMES[stem] + name[len(stem) :]
    # such as float8_e4m3fn
    return name.replace("float", "f").replace("_", "") if name.startswith("float") else name


def inputs(program: Program) -> tuple[Value, ...]:
    """Return the program's inputs, closed-over arrays last."""
    given = placement.named_leaves(program.arguments)
    placed = dict(placement.named_leaves(program.shardings))
    used = set(program.parameters)
    values = [
        _value(name, leaf, placed[name], "" if number in used else UNUSED)
        for number, (name, leaf) in enumerate(given)
    ]
    return (*values, *_closed_over(program))


def _closed_over(program: Program) -> Iterator[Value]:
    names = program.request.texts.names
    for number, array in enumerate(program.closed_over):
        # JAX keeps an array of NumPy's as a view of it.
        known = names.get(id(array)) or names.get(id(getattr(array, "base", None)))
        name = known or f"closed-over array {number}"
        sharding = NamedSharding(program.mesh, PartitionSpec())
        if not program.is_constant(array):
            sharding = placement.own_sharding(array, program.mesh)
        value = _value(name, array, sharding, "")
        yield Value(**{**vars(value), "closed_over": True})


def constants(program: Program) -> frozenset[str]:
    """Return the names of the closed-over arrays that `jax.jit` makes constants of each device."""
    named = zip(program.closed_over, _closed_over(program), strict=True)
    return frozenset(value.name for array, value in named if program.is_constant(array))


def outputs(program: Program) -> tuple[Value, ...]:
    """Return the program's results, with the shardings that they were compiled to."""
    shapes = jax.tree_util.tree_flatten_with_path(program.lowered.out_info)[0]
    shardings = jax.tree_util.tree_leaves(program.output_shardings)
    stated = tuple(result.constrained_spec for result in program.dumps.before_propagation.results)
    # On a mesh with several axis types the types hold a part of a sharding, which is not a request.
    partly = len(set(program.mesh.axis_types)) > 1 and program.request.out_specs is None
    if len(stated) != len(shapes) or partly:
        stated = (None,) * len(shapes)
    return tuple(
        _with_request(_value(result_name(path), info, sharding, ""), spec)
        for (path, info), sharding, spec in zip(shapes, shardings, stated, strict=True)
    )


def _with_request(value: Value, spec: Spec | None) -> Value:
    """Keep the sharding that was requested for a result if it has another."""
    differs = spec is not None and spec != value.spec and len(spec) == len(value.shape)
    return replace(value, requested=spec) if differs else value


def result_name(path: Sequence[Any]) -> str:
    """Name a result: the key of a dictionary by itself, as in a cell, else `result[0]`.

    What objects hold is under the key "", by the paths that lead to it.
    """
    keys = [getattr(key, "key", None) for key in path]
    match keys:
        case ["", str(held), *_]:
            return held + jax.tree_util.keystr(tuple(path[2:]))
        case [str(name), *_]:
            return name + jax.tree_util.keystr(tuple(path[1:]))
    return f"result{jax.tree_util.keystr(tuple(path))}"


def _value(name: str, array: Any, sharding: Any, details: str) -> Value:
    shape = tuple(array.shape)
    spec = spec_of(sharding, len(shape))
    grid, blocks = _blocks(sharding, shape) if spec is None else (None, None)
    return Value(
        name=name,
        dtype=dtype_name(placement.dtype_of(array)),
        shape=shape,
        spec=spec,
        shard_shape=tuple(sharding.shard_shape(shape)),
        unreduced=tuple(sorted(getattr(getattr(sharding, "spec", None), "unreduced", ()))),
        grid=grid,
        blocks=blocks,
        details=details,
        memory=placement.memory_kind(sharding) or "",
    )


def spec_of(sharding: Any, rank: int) -> Spec | None:
    """Return the spec of a named sharding with an entry for each dimension, else None."""
    if not isinstance(sharding, NamedSharding):
        return None
    return placement.dims_of(sharding.spec, rank)


def _blocks(sharding: Any, shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Describe a sharding that no mesh axes express by the block of each device."""
    parts = sharding.devices_indices_map(shape)
    starts = [tuple(piece.start or 0 for piece in index) for index in parts.values()]
    rows = [sorted(set(column)) for column in zip(*starts, strict=True)]
    grid = tuple(len(row) for row in rows)
    blocks = []
    for start in starts:
        block = 0
        for row, at in zip(rows, start, strict=True):
            block = block * len(row) + row.index(at)
        blocks.append(block)
    return grid, tuple(blocks)
