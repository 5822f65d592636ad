"""From an equation to the user's expression that wrote it."""

from __future__ import annotations

import linecache
from collections.abc import Mapping, Sequence
from typing import Any

from shardnb.rewrite.expression import Expression
from shardnb.rewrite.text_edits import Text
from shardnb.sources.positions import Position, of_equation
from shardnb.sources.source_texts import Sources


def users(stack: Sequence[Position], sources: Sources) -> list[Position]:
    """Return the positions in the user's own code, innermost first."""
    return [position for position in stack if sources.locate((position.frame,))]


def expression_at(
    position: Position, sources: Sources, names: Mapping[str, Any]
) -> Expression | None:
    """Find the expression at a position: in a known source, else in its file."""
    place = sources.locate((position.frame,))
    source = sources.texts()[place[0].source] if place else None
    if source is not None and source.text:
        expression = Expression.at(Text.of(source.text, source.first_line), position, names)
        if expression is not None:
            return expression
    return Expression.at(Text.of("".join(linecache.getlines(position.file))), position, names)


def expression_of(equation: Any, sources: Sources, names: Mapping[str, Any]) -> Expression | None:
    """Find the innermost expression of the user's own that wrote an equation."""
    positions = users(of_equation(equation), sources)
    return expression_at(positions[0], sources, names) if positions else None
