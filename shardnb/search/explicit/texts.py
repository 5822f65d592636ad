"""The user's texts with annotations written into them, and the program that they make."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from shardnb.compiler import Program
from shardnb.report.model import Source
from shardnb.rewrite.source_units import units_of
from shardnb.rewrite.text_edits import Piece, Span, Text
from shardnb.sources.positions import Position


class AnnotatedTexts:
    """The texts that a program was traced from, by the file name of their code.

    `pieces` are the annotations written into each of them so far.
    """

    def __init__(self, program: Program) -> None:
        """Find the texts whose functions can be traced with an edit."""
        self.pieces: dict[str, list[Piece]] = {}
        units = units_of(program, program.request.texts.sources)
        self._units = {unit.file: unit for unit in units}
        self._texts = {file: Text.of(unit.text) for file, unit in self._units.items()}

    def text(self, file: str) -> Text | None:
        """Return the text of a file as the user wrote it."""
        return self._texts.get(file)

    def names(self, file: str) -> dict[str, Any]:
        """Return the names that the code of a file sees from outside of its functions."""
        return dict(self._units[file].namespace)

    def span(self, position: Position, *, edited: bool) -> Span | None:
        """Return the bytes, in the text as written, of a position in it or in the edited one."""
        text = self._texts.get(position.file)
        if text is None:
            return None
        pieces = self.pieces.get(position.file, [])
        if not edited or not pieces:
            return text.at(position)
        span = text.edited(pieces).at(position)
        return text.origin(span, pieces) if span else None

    def edited(self) -> tuple[Source, ...]:
        """Return the texts that were edited, with their edits."""
        return tuple(
            Source(Path(file).name, self._texts[file].edited(pieces).text)
            for file, pieces in self.pieces.items()
            if pieces
        )

    def compiles(self, file: str) -> bool:
        """Whether an edited text is Python: two edits of one call may repeat a keyword."""
        text = self._texts[file].edited(self.pieces[file]).text
        try:
            compile(text, file, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        except SyntaxError:
            return False
        return True

    @contextmanager
    def running(self, fn: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
        """Yield the program's function with the annotations in it, to be traced in here."""
        with ExitStack() as stack:
            for file, pieces in self.pieces.items():
                if pieces:
                    edited = ast.parse(self._texts[file].edited(pieces).text)
                    transform = partial(_with_shown_value, edited)
                    fn = stack.enter_context(self._units[file].edited(fn, transform))
            yield fn


def _with_shown_value(edited: ast.Module, tree: ast.Module) -> ast.Module:
    """Return an edited tree with the statement that the shell may have added to show a value."""
    return ast.Module([*edited.body, *tree.body[len(edited.body) :]], [])
