"""The user's texts with annotations written into them, and the program that they make."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from shardnb.compiler import Program
from shardnb.report.model import Source
from shardnb.rewrite.source_units import Editable, FileUnit, units_of
from shardnb.rewrite.text_edits import Piece, Span, Text
from shardnb.sources.positions import Position


class Texts:
    """The texts that a program was traced from, by the file name of their code."""

    def __init__(self, program: Program) -> None:
        """Find the texts whose functions can be made again."""
        self.pieces: dict[str, list[Piece]] = {}
        self._functions: dict[str, list[FunctionType]] = {}
        self._texts: dict[str, Text] = {}
        fn: Any = program.request.function
        self._cell = fn if isinstance(fn, Editable) else None
        if self._cell is not None:
            self._texts[self._cell.file] = Text.of(self._cell.text)
        for unit in units_of(program, program.request.texts.sources):
            if isinstance(unit, FileUnit):
                self._texts[unit.file] = Text(unit.text)
                self._functions[unit.file] = unit.functions

    def text(self, file: str) -> Text | None:
        """Give the text of a file as the user wrote it."""
        return self._texts.get(file)

    def names(self, file: str) -> dict[str, Any]:
        """Give the names that the code of a file sees from outside of its functions."""
        functions = self._functions.get(file)
        found = functions[0].__globals__ if functions else getattr(self._cell, "namespace", {})
        return dict(found)

    def span(self, position: Position, *, edited: bool) -> Span | None:
        """Give the bytes, in the text as written, of a position in it or in the edited one."""
        text = self._texts.get(position.file)
        if text is None:
            return None
        pieces = self.pieces.get(position.file, [])
        if not edited or not pieces:
            return text.at(position)
        span = text.edited(pieces).at(position)
        return text.origin(span, pieces) if span else None

    def edited(self) -> tuple[Source, ...]:
        """Give the texts that were edited, with their edits."""
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
        """Give the program's function with the edits in it.

        Functions of files have other code while this runs, and their own afterwards.
        """
        with ExitStack() as stack:
            for file, functions in self._functions.items():
                if self.pieces.get(file):
                    stack.enter_context(self._swapped(file, functions))
            yield self._made_again() if self._cell is not None else fn

    def _made_again(self) -> Callable[..., Any]:
        cell: Any = self._cell
        pieces = self.pieces.get(cell.file)
        if not pieces:
            function: Callable[..., Any] = cell
            return function
        tree = ast.parse(self._texts[cell.file].edited(pieces).text)
        edited: Callable[..., Any] = cell.edited(lambda given: _with_added(tree, given))
        return edited

    @contextmanager
    def _swapped(self, file: str, functions: list[FunctionType]) -> Iterator[None]:
        text = self._texts[file].edited(self.pieces[file])
        codes = _codes(compile(text.text, file, "exec", dont_inherit=True))
        kept = [(function, function.__code__) for function in functions]
        try:
            for function, code in kept:
                function.__code__ = codes[_key(code)]
            yield
        finally:
            for function, code in kept:
                function.__code__ = code


def _with_added(edited: ast.Module, given: ast.Module) -> ast.Module:
    """Give an edited tree with the statement that the shell may have added to show a value."""
    return ast.Module([*edited.body, *given.body[len(edited.body) :]], [])


def _codes(code: CodeType) -> dict[tuple[str, int], CodeType]:
    found = {_key(code): code}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _codes(constant)
    return found


def _key(code: CodeType) -> tuple[str, int]:
    return code.co_qualname, code.co_firstlineno
