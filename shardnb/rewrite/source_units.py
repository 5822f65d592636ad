"""The user's texts that a program was traced from, and the live functions that they made."""

from __future__ import annotations

import ast
import gc
import linecache
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, Protocol, runtime_checkable

from shardnb.compiler import Program
from shardnb.report.model import Source
from shardnb.rewrite.rewrite_points import Place, marked, places_of
from shardnb.sources.source_texts import Sources
from shardnb.texts import hlo

Transform = Callable[[ast.Module], ast.Module]
Function = Callable[..., Any]


@runtime_checkable
class Editable(Protocol):
    """A function made of a text, such as a cell, that can be made again of an edited one.

    `file` is the file name of its code, `text` its Python.
    """

    file: str
    text: str

    def edited(self, transform: Transform) -> Function:
        """Give the function that the transformed syntax tree makes."""


class Unit(Protocol):
    """A text of the user's: its places, and the program's function with an edit at one of them."""

    file: str
    places: list[Place]
    functions: list[FunctionType]

    def line(self, number: int) -> str:
        """Give a line of the text, without the blanks around it."""

    def with_call(self, fn: Function, only: int | None) -> Any:
        """Give a context in which the place `only` (None: each) calls the hook; it gives `fn`."""


class CellUnit:
    """A cell: its function is made again of the edited text."""

    file = ""

    def __init__(self, cell: Editable) -> None:
        """List the places of the cell's text."""
        self._cell = cell
        self.places: list[Place] = []
        self.functions: list[FunctionType] = []
        cell.edited(self._listed)

    def _listed(self, tree: ast.Module) -> ast.Module:
        self.places = places_of(tree, top=True)
        return tree

    def line(self, number: int) -> str:
        """Give nothing: the report's first source is the cell."""
        del number
        return ""

    @contextmanager
    def with_call(self, fn: Function, only: int | None) -> Iterator[Function]:
        """Give the cell's function with the hook in its text."""
        del fn
        yield self._cell.edited(lambda tree: marked(tree, only, top=True))


Key = tuple[str, int]


@dataclass
class FileUnit:
    """A file, or an earlier cell: its live functions get the code of the edited text for a while.

    Only functions whose code is what the text compiles to take part, so that an edit is never
    tried on a text that is not the one running.
    """

    file: str
    text: str
    tree: ast.Module
    functions: list[FunctionType]

    def __post_init__(self) -> None:
        """List the places of the text."""
        self.places = places_of(self.tree)

    def line(self, number: int) -> str:
        """Give a line of the text, without the blanks around it."""
        return self.text.splitlines()[number - 1].strip()

    @contextmanager
    def with_call(self, fn: Function, only: int | None) -> Iterator[Function]:
        """Swap in the edited code, and give the functions their own back afterwards."""
        edited = _codes(compile(marked(self.tree, only), self.file, "exec", dont_inherit=True))
        kept = [(function, function.__code__) for function in self.functions]
        try:
            for function, code in kept:
                function.__code__ = edited[_key(code)]
            yield fn
        finally:
            for function, code in kept:
                function.__code__ = code


def units_of(program: Program, sources: Sequence[Source]) -> list[Unit]:
    """Give the user's texts that the program came from, as far as they can be edited."""
    files = _user_files(program)
    live: dict[str, list[FunctionType]] = {file: [] for file in files}
    for thing in gc.get_objects():
        if type(thing) is FunctionType and thing.__code__.co_filename in live:
            live[thing.__code__.co_filename].append(thing)
    fn: Any = program.request.function
    units: list[Unit] = [CellUnit(fn)] if isinstance(fn, Editable) else []
    own = fn.file if units else None
    for file, functions in live.items():
        if file == own:
            continue
        unit = _file_unit(file, functions, sources) if functions else None
        if unit is not None:
            units.append(unit)
    return units


def _user_files(program: Program) -> list[str]:
    """Give the files of the user's that a frame of the program names."""
    module, found = program.before or program.module, Sources()
    names = {name.strip('"') for name in module.tables.get("FileNames", {}).values()}
    return sorted(name for name in names if found.locate((hlo.Frame(name, 1),)))


def _file_unit(
    file: str, functions: list[FunctionType], sources: Sequence[Source]
) -> FileUnit | None:
    for text in _texts(file, sources):
        try:
            tree = ast.parse(text, file)
            codes = _codes(compile(tree, file, "exec", dont_inherit=True))
        except (SyntaxError, ValueError):
            continue
        same = [f for f in functions if _same(codes.get(_key(f.__code__)), f.__code__)]
        if same:
            return FileUnit(file, text, tree, same)
    return None


def _texts(file: str, sources: Sequence[Source]) -> Iterator[str]:
    """Give the texts that may be a file's: as Python knows it, and as the report holds it."""
    if text := "".join(linecache.getlines(file)):
        yield text
    for source in sources:
        if source.text and (source.name == Path(file).name or source is sources[0]):
            yield "\n" * (source.first_line - 1) + source.text


def _codes(code: CodeType) -> dict[Key, CodeType]:
    """Give every code object within one, by its qualified name and first line."""
    found = {_key(code): code}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _codes(constant)
    return found


def _key(code: CodeType) -> Key:
    return code.co_qualname, code.co_firstlineno


def _same(one: CodeType | None, other: CodeType) -> bool:
    return (
        one is not None
        and one.co_code == other.co_code
        and one.co_names == other.co_names
        and one.co_varnames == other.co_varnames
        and one.co_freevars == other.co_freevars
    )
