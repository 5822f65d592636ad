"""`ShardingTypeError`: placements in types that do not meet, and the ways out, each compiled."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import jax

from shardnb.bugs import Inconclusive, refusable
from shardnb.compiler.divisibility import text as spec_text
from shardnb.errors.error_draft import Draft, listed, mesh_of, value_of
from shardnb.errors.evidence import Evidence, Operation
from shardnb.errors.reshard_candidates import Measured, Trial, Way, entries_of, is_ambiguous
from shardnb.jax_compat import error_wordings as wordings
from shardnb.jax_compat.error_wordings import first_sentence
from shardnb.jax_compat.tracing import mesh_context, traced_apart
from shardnb.mesh import Grid
from shardnb.report.model import Value
from shardnb.report.types import Candidate
from shardnb.rewrite.expression import Expression
from shardnb.rewrite.text_edits import Piece

_SHOWN = 6
_IN_WORDS = "(inside this line)"


def explain(evidence: Evidence, grid: Grid | None) -> Draft:
    """Explain a `ShardingTypeError`, whatever its text."""
    operation = evidence.operation
    kind, sentence, cause = _told(evidence, operation)
    values = _values(evidence, operation)
    mesh = _mesh(evidence, operation)
    if operation is None or not _can_be_tried(operation):
        return Draft(kind, sentence, cause, values, mesh=mesh)
    trial = Trial(operation, grid if _is_of(grid, operation) else None)
    measured = trial.ways()
    shown = [(one, _edit(evidence, operation, one.way)) for one in measured]
    candidates = tuple(_candidate(one, edit[0]) for one, edit in shown[:_SHOWN])
    return Draft(
        kind=kind,
        sentence=sentence,
        cause=cause,
        values=values,
        fixes=_best(shown),
        candidates=candidates,
        checked=True,
        mesh=trial.grid.describe(),
    )


def _can_be_tried(operation: Operation) -> bool:
    """Whether the operation stands outside of `shard_map` and its arrays are on one mesh."""
    meshes = {a.sharding.mesh for a in operation.avals if not a.sharding.mesh.empty}
    manual = any(a.manual_axis_type.varying for a in operation.avals)
    return len(meshes) == 1 and not manual and not next(iter(meshes)).manual_axes


def _is_of(grid: Grid | None, operation: Operation) -> bool:
    meshes = [a.sharding.mesh for a in operation.avals if not a.sharding.mesh.empty]
    return grid is not None and all(
        mesh.shape_tuple == grid.mesh.shape_tuple and mesh.axis_types == grid.mesh.axis_types
        for mesh in meshes
    )


def _mesh(evidence: Evidence, operation: Operation | None) -> Any:
    avals = operation.avals if operation else evidence.arrays.values()
    meshes = [aval.sharding.mesh for aval in avals if not aval.sharding.mesh.empty]
    return mesh_of(meshes[0]) if meshes else None


def _values(evidence: Evidence, operation: Operation | None) -> tuple[Value, ...]:
    """Give the arrays at the user's line, else the operands, by name where the line shows them.

    A name may hold another array by now: then its type has no mesh.
    """
    arrays = evidence.arrays
    if operation is None or (arrays and not _are_stale(arrays.values())):
        return tuple(value_of(name, aval) for name, aval in arrays.items())
    parts = [part_of(evidence, operation, number) for number in range(len(operation.avals))]
    names = [ast.unparse(p) if p is not None else f"operand {i}" for i, p in enumerate(parts)]
    return tuple(value_of(n, aval) for n, aval in zip(names, operation.avals, strict=True))


def _are_stale(avals: Iterable[Any]) -> bool:
    return any(aval.sharding.mesh.empty for aval in avals)


def _told(evidence: Evidence, operation: Operation | None) -> tuple[str, str, str]:
    """Give the kind, the sentence and the cause."""
    said = evidence.expression.text if evidence.expression else "this operation"
    if operation is not None:
        for tell in (_pending, _product, _indexed, _reshape, _meshes):
            told = tell(said, operation)
            if told is not None:
                return told
        twice = wordings.DUPLICATE_SPEC_ERROR in evidence.classes
        return _twice(said, operation) if twice else _unlike(said, operation, evidence)
    return "other", first_sentence(evidence.message) or "the placements do not meet", ""


def _pending(said: str, operation: Operation) -> tuple[str, str, str] | None:
    axes = sorted({axis for aval in operation.avals for axis in aval.sharding.spec.unreduced})
    if not axes:
        return None
    return (
        "unreduced",
        f"{said} takes a sum that is still pending over {listed(axes)}",
        (
            f"Each device holds a part of the sum. {operation.name} of the parts is not "
            f"{operation.name} of the sum, so the sum has to be done first, by a reshard to a spec "
            "without unreduced."
        ),
    )


def _product(said: str, operation: Operation) -> tuple[str, str, str] | None:
    if operation.name != "dot_general":
        return None
    (left, right), (left_batch, right_batch) = operation.params["dimension_numbers"]
    one, other = (entries_of(aval) for aval in operation.avals[:2])
    if is_ambiguous(operation):
        axes = dict.fromkeys(
            a for i, j in zip(left, right, strict=True) for a in one[i] if other[j]
        )
        return (
            "ambiguous-contraction",
            f"{said} sums over a dimension that is split over {listed(axes)} in both operands",
            (
                "Each device holds a part of the sum. With Explicit axes the result's placement is "
                "part of its type, and there are several: whole on every device of the axis, split "
                "once more, or left as a pending sum. JAX does not choose between them."
            ),
        )
    if any(one[i] != other[j] for i, j in zip(left_batch, right_batch, strict=True)):
        return (
            "batch",
            f"the operands of {said} are split differently along a dimension that they share",
            (
                "A batch dimension is worked on block by block, so both operands have to be cut "
                "into the same blocks."
            ),
        )
    return _twice(said, operation)


def _twice(said: str, operation: Operation) -> tuple[str, str, str]:
    used = [axis for aval in operation.avals for axes in entries_of(aval) for axis in axes]
    axes = [axis for axis in dict.fromkeys(used) if used.count(axis) > 1] or used
    return (
        "axis-twice",
        f"the result of {said} would be split over {listed(axes[:1])} along two dimensions",
        (
            "An axis can split one dimension of an array only, so one operand has to give it up "
            "before."
        ),
    )


def _indexed(said: str, operation: Operation) -> tuple[str, str, str] | None:
    if operation.name == "gather":
        return (
            "gather",
            f"{said} reads rows that may lie on any device",
            (
                "Which device has a row is known only when the program runs. The result's "
                "placement does not follow from the operands', so it has to be stated."
            ),
        )
    if operation.name.startswith("scatter"):
        return (
            "scatter",
            f"{said} writes rows that may lie on any device",
            (
                "Which device has a row is known only when the program runs. The result's "
                "placement does not follow from the operands', so it has to be stated."
            ),
        )
    return None


def _reshape(said: str, operation: Operation) -> tuple[str, str, str] | None:
    if operation.name != "reshape":
        return None
    shape, new = tuple(operation.avals[0].shape), operation.params["new_sizes"]
    return (
        "reshape",
        f"the blocks of {list(shape)} are no blocks of {list(new)} in {said}",
        (
            "A dimension that is split is cut or joined so that a device's block does not stay one "
            "block. Where the elements go has to be stated."
        ),
    )


def _meshes(said: str, operation: Operation) -> tuple[str, str, str] | None:
    meshes = {a.sharding.mesh for a in operation.avals if not a.sharding.mesh.empty}
    if len(meshes) < 2:
        return None
    return (
        "mesh",
        f"the operands of {said} are on different meshes",
        (
            "One program runs on one mesh. An array of another mesh has to be moved by "
            "jax.device_put first."
        ),
    )


def _unlike(said: str, operation: Operation, evidence: Evidence) -> tuple[str, str, str]:
    specs = {entries_of(aval) for aval in operation.avals if aval.shape}
    name = operation.name
    if wordings.NOT_DIVISIBLE.search(evidence.message):
        return (
            "uneven",
            f"the result of {said} has a size that its axis does not divide",
            (
                "The dimension is split, and the result's blocks would not be of one size. "
                "Explicit types have no uneven blocks."
            ),
        )
    if wordings.NOT_IMPLEMENTED.search(evidence.message):
        return (
            "no-rule",
            f"JAX has no rule for the placement of {said}",
            (
                f"The result of {name} can be left to propagation: jax.sharding.auto_axes with an "
                "out_sharding."
            ),
        )
    if len(specs) > 1:
        return (
            "conflict",
            f"the operands of {said} lie differently",
            (
                f"{name} works on blocks that lie alike, and an Explicit axis moves nothing by "
                "itself. One of the operands has to be moved first."
            ),
        )
    return (
        "whole-axis",
        f"{said} needs whole a dimension that is split",
        (
            f"{name} looks at all elements along a dimension, and an Explicit axis gathers nothing "
            "by itself. The array has to be moved first."
        ),
    )


def _candidate(one: Measured, edit: str) -> Candidate:
    way = one.way
    specs = [way.result] if way.result is not None else [spec for _, spec in way.moves]
    pending = way.result is not None and way.result.unreduced
    return Candidate(
        edit=edit,
        spec=", ".join(map(spec_text, specs)),
        collectives=tuple((c.kind, c.axes or ()) for c in one.collectives),
        wire_bytes=one.wire_bytes,
        note="the sum stays pending" if pending else "",
        chosen=one.chosen,
    )


def _best(shown: Sequence[tuple[Measured, tuple[str, str]]]) -> tuple[str, ...]:
    """Give the fixes, what Auto chooses first, a pending sum last."""

    def merit(item: tuple[Measured, tuple[str, str]]) -> tuple[bool, bool]:
        result = item[0].way.result
        return not item[0].chosen, bool(result is not None and result.unreduced)

    written = [item for item in shown if not item[1][1].endswith(_IN_WORDS)]
    return tuple(line for _, (_, line) in sorted(written or shown, key=merit)[:_SHOWN])


def _edit(evidence: Evidence, operation: Operation, way: Way) -> tuple[str, str]:
    """Write a way as an expression and into the user's line, or say it where that is no line."""
    expression = evidence.expression
    pieces = pieces_for(evidence, operation, way) if expression else None
    if expression is None or pieces is None:
        return (_in_words(operation, way),) * 2
    alone = expression.alone(pieces)
    if _traces(alone, evidence, operation) is False:
        return (_in_words(operation, way),) * 2
    line = expression.edited(pieces)
    return alone.text if alone else line, line


def _in_words(operation: Operation, way: Way) -> str:
    """Say a way where the line does not show the operands."""
    if way.result is not None:
        return f"out_sharding={spec_text(way.result)} for {operation.name} {_IN_WORDS}"
    moves = (f"jax.sharding.reshard(operand {i}, {spec_text(spec)})" for i, spec in way.moves)
    return f"{', '.join(moves)} before {operation.name} {_IN_WORDS}"


def pieces_for(evidence: Evidence, operation: Operation, way: Way) -> list[Piece] | None:
    """Write a way into the user's expression; None where that does not show the operands."""
    expression = evidence.expression
    if expression is None:
        return None
    if way.result is not None:
        stated = expression.with_out_sharding(way.result)
        stated = stated or expression.with_auto_axes(way.result)
        return list(stated) if stated else None
    pieces: list[Piece] = []
    for number, spec in way.moves:
        part = part_of(evidence, operation, number)
        if part is None:
            return None
        pieces += expression.with_reshard(part, spec)
    return pieces


def part_of(evidence: Evidence, operation: Operation, number: int) -> ast.expr | None:
    """Find the part of the user's expression that an operand is: by its type, else its place."""
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


def _same(one: Any, other: Any) -> bool:
    return one is not None and (one.shape, one.dtype, one.sharding) == (
        other.shape,
        other.dtype,
        other.sharding,
    )


def _traces(alone: Expression | None, evidence: Evidence, operation: Operation) -> bool | None:
    """Whether an edited expression traces; None where it calls what is not JAX."""
    function = alone.as_function() if alone else None
    avals = [evidence.arrays.get(name) for name in function[0]] if function else []
    if function is None or not avals or any(aval is None for aval in avals):
        return None
    if _are_stale(aval for aval in avals if aval):
        return None
    shapes = [jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=a.sharding) for a in avals if a]
    mesh = next(a.sharding.mesh for a in operation.avals if not a.sharding.mesh.empty)
    with suppress(Inconclusive), refusable(), mesh_context(mesh), traced_apart():
        jax.eval_shape(function[1], *shapes)
        return True
    return False
