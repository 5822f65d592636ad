"""A source text, edits of it, and the way back from a place in the edited text."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from shardnb.sources.positions import Position

Span = tuple[int, int]
"""The first byte of a part of a text and the one after its last."""


class Piece(NamedTuple):
    """Bytes of a text and what to write in their place; `owner` is the expression edited."""

    start: int
    end: int
    text: str
    owner: Span


@dataclass(frozen=True)
class Text:
    """A source text. Line n of its file is line n - `shift` here.

    The text of a method is indented: it is put under a condition, so that it can be parsed.
    """

    text: str
    shift: int = 0

    @classmethod
    def of(cls, text: str, first_line: int = 1) -> Text:
        """Take a text whose first line is line `first_line` of its file."""
        indented = text[:1] in (" ", "\t")
        return cls("if True:\n" + text if indented else text, first_line - 1 - indented)

    @cached_property
    def data(self) -> bytes:
        """The text as Python counts its columns."""
        return self.text.encode()

    @cached_property
    def starts(self) -> list[int]:
        """The first byte of each line."""
        starts = [0]
        for line in self.data.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        return starts

    @cached_property
    def tree(self) -> ast.Module | None:
        """The syntax tree, or None where the text is not Python."""
        try:
            return ast.parse(self.text)
        except (SyntaxError, ValueError):
            return None

    def span(self, node: ast.AST) -> Span:
        """Return the bytes of a node."""
        line, column, end_line, end_column = (
            getattr(node, name) for name in ("lineno", "col_offset", "end_lineno", "end_col_offset")
        )
        return self.starts[line - 1] + column, self.starts[end_line - 1] + end_column

    def part(self, span: Span) -> str:
        """Return the text of some bytes."""
        return self.data[slice(*span)].decode()

    def at(self, position: Position) -> Span | None:
        """Return the bytes at a position in the file."""
        if position.column < 0 or position.end_column < 0:
            return None
        line, end_line = position.line - self.shift, position.end_line - self.shift
        if not 0 < line <= end_line < len(self.starts) + 1:
            return None
        return self.starts[line - 1] + position.column, self.starts[
            end_line - 1
        ] + position.end_column

    def line_of(self, byte: int) -> int:
        """Return the number of the line, in the file, of a byte."""
        return sum(start <= byte for start in self.starts) + self.shift

    def node(self, span: Span | None) -> ast.AST | None:
        """Return the outermost node at some bytes; of a statement that is an expression, that."""
        if span is None or self.tree is None:
            return None
        nodes = (n for n in ast.walk(self.tree) if hasattr(n, "lineno"))
        return next(
            (n for n in nodes if not isinstance(n, ast.Expr) and self.span(n) == span), None
        )

    def edited(self, pieces: Sequence[Piece]) -> Text:
        """Return the text with pieces written into it."""
        return Text(_apply(self.data, pieces)[0].decode(), self.shift)

    def origin(self, span: Span, pieces: Sequence[Piece]) -> Span | None:
        """Return the bytes of this text that some bytes of the edited one came from."""
        origins = _apply(self.data, pieces)[1][slice(*span)]
        kept = [origin for origin in origins if origin >= 0]
        return (kept[0], kept[-1] + 1) if kept else None


def _apply(data: bytes, pieces: Sequence[Piece]) -> tuple[bytes, list[int]]:
    """Write pieces into a text; gives for each byte where it stood before, or -1."""
    ordered = sorted(enumerate(pieces), key=lambda item: _place(item[1], item[0]))
    result, origins, at = bytearray(), list[int](), 0
    for _, piece in ordered:
        written = piece.text.encode()
        result += data[at : piece.start] + written
        origins += [*range(at, piece.start), *[-1] * len(written)]
        at = max(at, piece.end)
    return bytes(result + data[at:]), [*origins, *range(at, len(data))]


def _place(piece: Piece, number: int) -> tuple[int, int, int, int]:
    """Order pieces: what closes an inner expression first, what opens an outer one first."""
    if piece.start < piece.end:
        return piece.start, 1, 0, number
    if piece.start == piece.owner[0]:
        return piece.start, 2, -piece.owner[1], -number
    return piece.start, 0, -piece.owner[0], number
