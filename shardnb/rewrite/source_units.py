"""The user's texts that a program was traced from, and the program with one of them edited."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FunctionType
from typing import Any, Protocol, runtime_checkable

from shardnb.compiler import Program
from shardnb.report.model import Source
from shardnb.rewrite.edited_code import edited_functions, made_by, traced_functions
from shardnb.rewrite.rewrite_points import RewritePoint, points_of

Transform = Callable[[ast.Module], ast.Module]
Function = Callable[..., Any]


@runtime_checkable
class Editable(Protocol):
    """A function made of a text, such as a cell, that can be made again of an edited one.

    `file` is the file name of its code, `text` its Python, `namespace` what its names hold.
    """

    file: str
    text: str
    namespace: Mapping[str, Any]

    def edited(self, transform: Transform) -> Function:
        """Return the function that the transformed syntax tree makes."""


@dataclass(frozen=True, eq=False)
class SourceUnit:
    """A text of the user's: a file or an earlier cell with its functions, or the program's cell.

    `functions` are those whose code is what the text compiles to, so that an edit is never tried
    on a text that is not the one running. `cell` is the program's function where that is a cell.
    """

    file: str
    text: str
    tree: ast.Module
    functions: tuple[FunctionType, ...] = ()
    cell: Editable | None = None
    points: tuple[RewritePoint, ...] = field(init=False)

    def __post_init__(self) -> None:
        """List the places where a value could get another sharding."""
        points = points_of(self.tree, top=self.cell is not None)
        object.__setattr__(self, "points", tuple(points))

    @property
    def namespace(self) -> Mapping[str, Any]:
        """The names that the text sees from outside of its functions."""
        return self.functions[0].__globals__ if self.cell is None else self.cell.namespace

    def line(self, number: int) -> str:
        """Return a line of the text, without the blanks around it."""
        return self.text.splitlines()[number - 1].strip()

    @contextmanager
    def edited(self, fn: Function, transform: Transform) -> Iterator[Function]:
        """Yield the program's function `fn` with the transformed text, to be traced in here."""
        if self.cell is not None:
            yield self.cell.edited(transform)
        else:
            with edited_functions(self.functions, self.file, self.tree, transform(self.tree)):
                yield fn


def units_of(program: Program, sources: Sequence[Source]) -> list[SourceUnit]:
    """Return the user's texts that the program came from, as far as they can be edited."""
    cell: Any = program.request.function
    units = [_cell_unit(cell)] if isinstance(cell, Editable) else []
    cells = {unit.file for unit in units}
    for file, functions in traced_functions(program).items():
        unit = None if file in cells else _file_unit(file, functions, sources)
        if unit is not None:
            units.append(unit)
    return units


def _cell_unit(cell: Editable) -> SourceUnit:
    trees: list[ast.Module] = []

    def kept(tree: ast.Module) -> ast.Module:
        trees.append(tree)
        return tree

    cell.edited(kept)
    return SourceUnit(cell.file, cell.text, trees[0], cell=cell)


def _file_unit(
    file: str, functions: Sequence[FunctionType], sources: Sequence[Source]
) -> SourceUnit | None:
    for text in _texts(file, sources):
        try:
            tree = ast.parse(text, file)
            edited = made_by(tree, file, functions)
        except (SyntaxError, ValueError):
            continue
        if edited:
            return SourceUnit(file, text, tree, tuple(edited))
    return None


def _texts(file: str, sources: Sequence[Source]) -> Iterator[str]:
    """Yield the texts that may be a file's: as Python knows it, and as the report holds it."""
    if text := "".join(linecache.getlines(file)):
        yield text
    for source in sources:
        if source.text and (source.name == Path(file).name or source is sources[0]):
            yield "\n" * (source.first_line - 1) + source.text
