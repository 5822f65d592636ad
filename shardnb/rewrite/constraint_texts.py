"""The user's texts with constraints written into them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from jax.sharding import PartitionSpec

from shardnb.report.spec import spec_text
from shardnb.rewrite.program_edits import ConstraintEdit
from shardnb.rewrite.source_units import SourceUnit
from shardnb.rewrite.text_edits import Piece, Text


def with_constraints(unit: SourceUnit, edits: Sequence[ConstraintEdit]) -> str:
    """Return a text with the constraints in it, as a person would write them."""
    text = Text.of(unit.text)
    return text.edited([piece for edit in edits for piece in _pieces(unit, text, edit)]).text


def _pieces(unit: SourceUnit, text: Text, edit: ConstraintEdit) -> Iterator[Piece]:
    point = edit.point
    spec = spec_text(edit.spec)
    if unit.namespace.get("P") is not PartitionSpec:
        spec = f"jax.{spec}"
    if point.kind == "returned":
        for node in (each for each in ast.walk(unit.tree) if isinstance(each, ast.Return)):
            if node.lineno == point.line and node.value is not None:
                start, end = span = text.span(node.value)
                yield Piece(start, start, f"{edit.function}(", span)
                yield Piece(end, end, f", {spec})", span)
        return
    lines = text.text.splitlines(keepends=True)
    line = lines[point.line - 1]
    indent = line[: len(line) - len(line.lstrip())]
    at = sum(len(each.encode()) for each in lines[: point.last_line])
    opened = "" if lines[point.last_line - 1].endswith("\n") else "\n"
    statement = f"{opened}{indent}{point.name} = {edit.function}({point.name}, {spec})\n"
    yield Piece(at, at, statement, (at, at))
