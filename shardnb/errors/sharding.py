"""`ShardingTypeError`: shardings in types that do not fit together, and compiled remedies."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import jax

from shardnb.bugs import Inconclusive, refusable
from shardnb.compiler.placement import text as spec_text
from shardnb.errors.error_draft import Draft, listed, mesh_of, value_of
from shardnb.errors.evidence import ErrorEvidence, Operation
from shardnb.errors.reshard_candidates import (
    CompiledRemedy,
    OperationTrial,
    Remedy,
    axes_summed_in_both,
    entries_of,
)
from shardnb.jax_compat import error_wordings as wordings
from shardnb.jax_compat.error_wordings import first_sentence
from shardnb.jax_compat.tracing import mesh_context, traced_apart
from shardnb.mesh import Grid
from shardnb.report.model import Value
from shardnb.report.types import Candidate
from shardnb.rewrite.expression import Expression
from shardnb.rewrite.text_edits import Piece

_SHOWN = 6  # as many as fit on a screen with the drawn arrays
_IN_WORDS = "(inside this line)"


def explain(evidence: ErrorEvidence, _: re.Match[str] | None = None) -> Draft:
    """Explain a `ShardingTypeError`, whatever its text, and other errors of Explicit types."""
    operation = evidence.operation
    draft = _diagnosis(evidence, operation)
    draft = replace(draft, values=_values(evidence, operation))
    if operation is None or not _can_be_tried(operation):
        types = operation.avals if operation else evidence.arrays.values()
        meshes = [aval.sharding.mesh for aval in types if not aval.sharding.mesh.empty]
        mesh = mesh_of(meshes[0]) if meshes else None
        return replace(draft, mesh=mesh)
    trial = OperationTrial(operation, evidence.grid if _is_of(evidence.grid, operation) else None)
    shown = [(each, _edit(evidence, operation, each.remedy)) for each in trial.remedies()]
    return replace(
        draft,
        fixes=_best(shown),
        candidates=tuple(_candidate(each, edit[0]) for each, edit in shown[:_SHOWN]),
        checked=True,
        mesh=trial.grid.describe(),
    )


def _can_be_tried(operation: Operation) -> bool:
    """Whether the operation is outside `shard_map` and its arrays are on one mesh."""
    manual = any(aval.manual_axis_type.varying for aval in operation.avals)
    return len(operation.meshes) == 1 and not manual and not operation.meshes[0].manual_axes


def _is_of(grid: Grid | None, operation: Operation) -> bool:
    return grid is not None and all(
        mesh.shape_tuple == grid.mesh.shape_tuple and mesh.axis_types == grid.mesh.axis_types
        for mesh in operation.meshes
    )


def _values(evidence: ErrorEvidence, operation: Operation | None) -> tuple[Value, ...]:
    """Yield the arrays at the user's line, else the operands, by name if the line shows them.

    A name may hold another array by now, whose type has no mesh.
    """
    arrays = evidence.arrays
    if operation is None or (arrays and not _are_stale(arrays.values())):
        return tuple(value_of(name, aval) for name, aval in arrays.items())
    parts = [part_of(evidence, operation, number) for number in range(len(operation.avals))]
    names = [ast.unparse(p) if p is not None else f"operand {i}" for i, p in enumerate(parts)]
    return tuple(value_of(n, aval) for n, aval in zip(names, operation.avals, strict=True))


def _are_stale(avals: Iterable[Any]) -> bool:
    return any(aval.sharding.mesh.empty for aval in avals)


def _diagnosis(evidence: ErrorEvidence, operation: Operation | None) -> Draft:
    """Return the kind, the sentence and the cause."""
    if operation is None:
        sentence = first_sentence(evidence.message) or "the shardings do not fit together"
        return Draft("other", sentence, "")
    text = evidence.expression.text if evidence.expression else "this operation"
    name = operation.name
    pending = sorted({axis for aval in operation.avals for axis in aval.sharding.spec.unreduced})
    if pending:
        return Draft(
            "unreduced",
            f"{text} takes a sum that is still pending over {listed(pending)}",
            f"Each device has only a partial sum. {name} of partial sums is not {name} of the sum, "
            "so complete the sum first, by a reshard to a spec without unreduced.",
        )
    of_name = _of_product if name == "dot_general" else _of_moved_elements
    if diagnosis := of_name(text, operation):
        return diagnosis
    if len(operation.meshes) > 1:
        return Draft(
            "mesh",
            f"the operands of {text} are on different meshes",
            "A program runs on one mesh. Move an array of another mesh with jax.device_put first.",
        )
    if wordings.DUPLICATE_SPEC_ERROR not in evidence.classes:
        return _of_other(text, operation, evidence.message)
    return _of_axis_twice(text, operation)


def _of_moved_elements(text: str, operation: Operation) -> Draft | None:
    """Explain why an operation that moves elements between blocks needs an out_sharding."""
    name = operation.name
    if name == "gather" or name.startswith("scatter"):
        return Draft(
            "gather" if name == "gather" else "scatter",
            f"{text} {'reads' if name == 'gather' else 'writes'} rows that may be on any device",
            "Which device has a row is known only when the program runs, so the result's sharding "
            "does not follow from the operands'. Give it as out_sharding.",
        )
    if name == "reshape":
        shape, new = list(operation.avals[0].shape), list(operation.params["new_sizes"])
        return Draft(
            "reshape",
            f"{text} reshapes {shape} to {new}, which would divide each device's block",
            "A sharded dimension is split or merged so that a device's block does not stay one "
            "block. Give the sharding of the result as out_sharding.",
        )
    return None


def _of_product(text: str, operation: Operation) -> Draft:
    """Explain a matrix product: its contracting dimensions, its batch, or else its result."""
    _, batch = operation.params["dimension_numbers"]
    left, right = (entries_of(aval) for aval in operation.avals[:2])
    if axes := axes_summed_in_both(operation):
        return Draft(
            "ambiguous-contraction",
            f"{text} sums over a dimension that is sharded over {listed(axes)} in both operands",
            "Each device has only a partial sum. With Explicit axes the result's sharding is "
            "part of its type, and there are several: replicated over the axis, sharded over it "
            "on another dimension, or left as a pending sum. JAX does not choose between them.",
        )
    if any(left[i] != right[j] for i, j in zip(*batch, strict=True)):
        return Draft(
            "batch",
            f"the operands of {text} are sharded differently on a batch dimension",
            "Each device computes one block of a batch dimension, so both operands need the "
            "same sharding there.",
        )
    return _of_axis_twice(text, operation)


def _of_axis_twice(text: str, operation: Operation) -> Draft:
    used = [axis for aval in operation.avals for axes in entries_of(aval) for axis in axes]
    axes = [axis for axis in dict.fromkeys(used) if used.count(axis) > 1] or used
    return Draft(
        "axis-twice",
        f"the result of {text} would be sharded over {listed(axes[:1])} on two dimensions",
        "An axis can shard only one dimension of an array, so one operand has to give it up "
        "before.",
    )


def _of_other(text: str, operation: Operation, message: str) -> Draft:
    name = operation.name
    if wordings.NOT_DIVISIBLE.search(message):
        return Draft(
            "uneven",
            f"the result of {text} has a dimension that is not divisible by its axis",
            "The dimension is sharded, and the result's blocks would differ in size. Explicit "
            "types have no uneven blocks.",
        )
    if wordings.NOT_IMPLEMENTED.search(message):
        return Draft(
            "no-rule",
            f"JAX has no sharding rule for {text}",
            f"The result of {name} can be left to propagation: jax.sharding.auto_axes with an "
            "out_sharding.",
        )
    if len({entries_of(aval) for aval in operation.avals if aval.shape}) > 1:
        return Draft(
            "conflict",
            f"the operands of {text} are sharded differently",
            f"{name} needs operands of one sharding, and Explicit axes move nothing by themselves. "
            "Reshard one of the operands first.",
        )
    return Draft(
        "whole-axis",
        f"{text} needs the full dimension on each device, but it is sharded",
        f"{name} looks at all elements along a dimension, and Explicit axes gather nothing by "
        "themselves. Reshard the array first.",
    )


def _candidate(compiled: CompiledRemedy, edit: str) -> Candidate:
    result, moves = compiled.remedy.result, compiled.remedy.moves
    specs = [result] if result is not None else [spec for _, spec in moves]
    return Candidate(
        edit=edit,
        spec=", ".join(map(spec_text, specs)),
        collectives=tuple((c.kind, c.axes or ()) for c in compiled.collectives),
        wire_bytes=compiled.wire_bytes,
        note="the sum stays pending" if compiled.remedy.leaves_sum_pending else "",
        chosen=compiled.chosen,
    )


def _best(shown: Sequence[tuple[CompiledRemedy, tuple[str, str]]]) -> tuple[str, ...]:
    """Yield the fixes, the one that Auto axes choose first, a pending sum last.

    A pending sum sends nothing, so it would win by its bytes, but it only postpones the sum.
    """

    def rank(item: tuple[CompiledRemedy, tuple[str, str]]) -> tuple[bool, bool]:
        return not item[0].chosen, item[0].remedy.leaves_sum_pending

    written = [item for item in shown if not item[1][1].endswith(_IN_WORDS)]
    return tuple(line for _, (_, line) in sorted(written or shown, key=rank)[:_SHOWN])


def _edit(evidence: ErrorEvidence, operation: Operation, remedy: Remedy) -> tuple[str, str]:
    """Write a remedy as an expression and into the user's line; in words if it is not an edit."""
    expression = evidence.expression
    pieces = pieces_for(evidence, operation, remedy)
    if expression is not None and pieces is not None:
        alone = expression.alone(pieces)
        if _traces(alone, evidence, operation) is not False:
            line = expression.edited(pieces)
            return alone.text if alone else line, line
    if remedy.result is not None:
        words = f"out_sharding={spec_text(remedy.result)} for {operation.name} {_IN_WORDS}"
        return words, words
    moves = (f"jax.sharding.reshard(operand {i}, {spec_text(spec)})" for i, spec in remedy.moves)
    words = f"{', '.join(moves)} before {operation.name} {_IN_WORDS}"
    return words, words


def pieces_for(evidence: ErrorEvidence, operation: Operation, remedy: Remedy) -> list[Piece] | None:
    """Write a remedy into the user's expression; None if that does not show the operands."""
    expression = evidence.expression
    if expression is None:
        return None
    if remedy.result is not None:
        stated = expression.with_out_sharding(remedy.result)
        stated = stated or expression.with_auto_axes(remedy.result)
        return list(stated) if stated else None
    pieces: list[Piece] = []
    for number, spec in remedy.moves:
        part = part_of(evidence, operation, number)
        if part is None:
            return None
        pieces += expression.with_reshard(part, spec)
    return pieces


def part_of(evidence: ErrorEvidence, operation: Operation, number: int) -> ast.expr | None:
    """Find the part of the user's expression that is an operand: by its type, else its position."""
    expression = evidence.expression
    if expression is None:
        return None
    parts = [part for part in expression.parts if not isinstance(part, ast.Starred)]
    aval = operation.avals[number]
    alike = [part for part in parts if _same(evidence.arrays.get(ast.unparse(part)), aval)]
    before = sum(_same(other, aval) for other in operation.avals[:number])
    if before < len(alike):
        return alike[before]
    operator = isinstance(expression.node, ast.BinOp | ast.Compare)
    by_place = operator and len(parts) == len(operation.avals)
    part = parts[number] if by_place else parts[0] if len(parts) == 1 else None
    known = evidence.arrays.get(ast.unparse(part)) if part is not None else None
    return part if known is None or known.shape == aval.shape else None


def _same(known: Any, other: Any) -> bool:
    parts = ("shape", "dtype", "sharding", "memory_space")
    return known is not None and all(getattr(known, p) == getattr(other, p) for p in parts)


def _traces(alone: Expression | None, evidence: ErrorEvidence, operation: Operation) -> bool | None:
    """Whether an edited expression traces; None if it calls something that is not JAX."""
    function = alone.as_function() if alone else None
    avals = [evidence.arrays.get(name) for name in function[0]] if function else []
    if function is None or not avals or None in avals or _are_stale(avals):
        return None
    shapes = [jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=a.sharding) for a in avals if a]
    with suppress(Inconclusive), refusable(), mesh_context(operation.meshes[0]), traced_apart():
        jax.eval_shape(function[1], *shapes)
        return True
    return False
