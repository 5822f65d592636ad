"""Limits of JAX: mixed memories, loops over a sharded dimension, rewritten bodies, and others."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import jax

from shardnb.errors import sharding
from shardnb.errors.error_draft import Draft, value_of
from shardnb.errors.evidence import ErrorEvidence
from shardnb.errors.reshard_candidates import as_spec, entries_of, fits
from shardnb.jax_compat import error_wordings as wordings
from shardnb.jax_compat.jaxprs import equations
from shardnb.report.dtypes import size_in_bytes
from shardnb.report.model import Location
from shardnb.sources.positions import lines, of_equation
from shardnb.views.formatting import size


def memories(evidence: ErrorEvidence, match: re.Match[str]) -> Draft:
    """Operands of one operation in host and in device memory."""
    expression, operation = evidence.expression, evidence.operation
    text = expression.text if expression else match["name"]
    avals = operation.avals if operation else ()
    hosts = [n for n, aval in enumerate(avals) if aval.memory_space == jax.memory.Space.Host]
    fixes, cost = ["jax.device_put(..., jax.memory.Space.Device) on the array in host memory"], ""
    if operation is not None and expression is not None and len(hosts) == 1:
        part = sharding.part_of(evidence, operation, hosts[0])
        value = value_of("", avals[hosts[0]])
        copied = size_in_bytes(value.dtype, value.shard_shape)
        # With Auto axes the type does not say how the array is sharded.
        cost = f" That copies at most {size(copied)} to each device on every call."
        if part is not None:
            space = f"{expression.name_of(jax, 'jax')}.memory.Space.Device"
            fixes = [expression.edited(expression.wrapped(part, "device_put", space))]
    return Draft(
        kind="memory-kind",
        sentence=f"{text} has one operand in host memory and another in device memory",
        cause=f"The operands of {match['name']} must be in one memory, and JAX moves nothing "
        "between host and device unless you ask it to. Move the array in host memory to the "
        f"device first.{cost}",
        fixes=tuple(fixes),
    )


def loop(evidence: ErrorEvidence, _: re.Match[str]) -> Draft:
    """A `lax.map` or `lax.scan` over the dimension along which an Explicit type is sharded."""
    text = evidence.expression.text if evidence.expression else "the loop"
    cause = (
        "Each iteration takes one row, which only some of the devices hold, and Explicit axes move "
        "nothing by themselves. Reshard the array first, so that each device holds part of every "
        "row, or all rows."
    )
    if _loop_function(evidence) == "map":
        cause += (
            " Or let each device work on its own rows, which sends nothing: jax.vmap, or "
            "jax.lax.map inside a jax.shard_map."
        )
    draft = sharding.explain(evidence)
    words = "jax.sharding.reshard(..., P(None, ...)) on the array that the loop runs over"
    return replace(
        draft,
        kind="loop-over-sharded",
        sentence=f"{text} loops over a dimension that is sharded",
        cause=cause,
        fixes=draft.fixes or tuple(_resharded_rows(evidence)) or (words,),
    )


def _loop_function(evidence: ErrorEvidence) -> str:
    node = evidence.expression.node if evidence.expression else None
    function = node.func if isinstance(node, ast.Call) else None
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _resharded_rows(evidence: ErrorEvidence) -> Iterator[str]:
    """Write reshards of the array that a loop runs over, first the one that itself sends less."""
    expression, name = evidence.expression, _loop_function(evidence)
    if expression is None or not isinstance(node := expression.node, ast.Call):
        return
    by_name = next((keyword.value for keyword in node.keywords if keyword.arg == "xs"), None)
    number = {"map": 1, "scan": 2}.get(name, len(node.args))
    rows = node.args[number] if number < len(node.args) else by_name
    aval = evidence.arrays.get(ast.unparse(rows)) if rows is not None else None
    if rows is None or aval is None:
        return
    (axes, *rest), sizes = entries_of(aval), dict(aval.sharding.mesh.shape)
    moved = [[(), *rest[:i], (*rest[i], *axes), *rest[i + 1 :]] for i in range(len(rest))]
    fitting = [entries for entries in moved if fits(aval.shape, entries, sizes)]
    for entries in [*fitting[:1], [(), *rest]]:
        yield expression.edited(expression.with_reshard(rows, as_spec(entries)))


def rewritten_body(_: ErrorEvidence, match: re.Match[str]) -> Draft:
    """A transformation that adds operations to the body of a `shard_map`, as `checkify` does."""
    kinds = [kind.strip() for kind in match["kinds"].split(",")]
    axes = zip(wordings.names(match["axes"]), kinds, strict=False)
    manual = tuple(axis for axis, kind in axes if kind == "Manual")
    spec = f"P({(manual[0] if len(manual) == 1 else manual)!r})"
    return Draft(
        kind="rewritten-body",
        sentence=f"JAX ran {match['name']} on a value of a shard_map's body under the mesh outside",
        cause="This is a limit of JAX: a transformation around a shard_map rewrote its body. "
        "checkify around a shard_map does so while a mesh is set. Apply it in the body instead; "
        "each device then returns its own error.",
        fixes=(
            "in the body: error, result = checkify.checkify(f, errors=...)(x)",
            "return jax.tree.map(lambda leaf: leaf[None], error), result",
            f"out_specs=({spec}, ...): the first is that of the error",
        ),
    )


def annotation_left(*_: object) -> Draft:
    """A sharding annotation in what `custom_partitioning` hands to XLA after partitioning."""
    return Draft(
        kind="custom-partitioning",
        sentence="a sharding annotation is left after partitioning, where XLA cannot compile it",
        cause="This is a limit of JAX: with Explicit axes and jax.set_mesh, it writes shardings "
        "into the per-device function of a custom_partitioning function, which XLA gets only after "
        "partitioning.",
        fixes=(
            "jax.shard_map(per_device_function, in_specs=..., out_specs=...) in its place",
            "or Auto axes for the mesh axes that it is partitioned over",
        ),
    )


def aborted(evidence: ErrorEvidence, _: re.Match[str]) -> Draft:
    """XLA's own end while it compiled, in the process that does nothing else."""
    error: Any = evidence.error
    places = list(_unreduced(error.jaxpr, evidence)) if "unreduced" in error.words else []
    numbers = ", ".join(str(number) for number in dict.fromkeys(place.line for place in places))
    where = f" It leaves sums unreduced at line {numbers}." if places else ""
    return Draft(
        kind="other",
        sentence=f"XLA failed while it compiled the program for {error.placed}",
        cause=f"XLA's last words: {error.words}{where} This is a bug of XLA's, which ends the "
        "process that it runs in. Another process compiled the program, so the kernel goes on.",
        location=places[0] if places else None,
    )


def _unreduced(jaxpr: Any, evidence: ErrorEvidence) -> Iterator[Location]:
    """Yield the lines whose operations have results that are left as partial sums."""
    for equation in equations(jaxpr) if jaxpr is not None else ():
        avals = [getattr(variable.aval, "sharding", None) for variable in equation.outvars]
        if any(sharding is not None and sharding.spec.unreduced for sharding in avals):
            yield from evidence.sources.locate(lines(of_equation(equation)))[:1]
