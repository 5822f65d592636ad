"""Where in Python something was written: of an equation of a jaxpr, and of an exception."""

from __future__ import annotations

import itertools
import traceback
from collections.abc import Iterable
from types import TracebackType
from typing import Any, NamedTuple

from shardnb.jax_compat import frames
from shardnb.jax_compat.parts import NotAvailable
from shardnb.texts.hlo import Frame

_NOWHERE = (None, None, None, None)


class Position(NamedTuple):
    """A part of a line: columns are counted from 0, in bytes; -1 is not known."""

    file: str
    function: str
    line: int
    column: int = -1
    end_line: int = -1
    end_column: int = -1

    @property
    def frame(self) -> Frame:
        """The line alone, as HLO knows it."""
        return Frame(self.file, self.line, self.function)


def of_equation(equation: Any) -> tuple[Position, ...]:
    """Return the stack that wrote an equation, innermost first."""
    try:
        stack = frames.raw_frames(equation)
    except NotAvailable:
        return tuple(Position(*line) for line in frames.lines(equation))
    return tuple(Position(code.co_filename, code.co_name, *_span(code, at)) for code, at in stack)


def of_exception(error: BaseException) -> tuple[Position, ...]:
    """Return the stack that raised an exception, innermost first."""
    positions: list[Position] = []
    tb: TracebackType | None = error.__traceback__
    while tb is not None:
        code = tb.tb_frame.f_code
        positions.append(Position(code.co_filename, code.co_name, *_span(code, tb.tb_lasti)))
        tb = tb.tb_next
    return tuple(reversed(positions))


def of_here() -> tuple[Frame, ...]:
    """Return the lines that are running now, innermost first."""
    stack = traceback.walk_stack(None)
    return tuple(Frame(f.f_code.co_filename, line, f.f_code.co_name) for f, line in stack)


def lines(positions: Iterable[Position]) -> tuple[Frame, ...]:
    """Return the lines of a stack, as `shardnb.sources.source_texts` takes them."""
    return tuple(position.frame for position in positions)


def _span(code: Any, at: int) -> tuple[int, int, int, int]:
    """Return line, column, last line and last column of an instruction."""
    span = next(itertools.islice(code.co_positions(), at // 2, None), None)
    line, end_line, column, end_column = (-1 if part is None else part for part in span or _NOWHERE)
    return (code.co_firstlineno if line == -1 else line), column, end_line, end_column
