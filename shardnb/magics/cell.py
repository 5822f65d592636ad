"""Checks that the text of a cell is Python that can be compiled as one program."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shardnb.magics.scope import Names, names_of

_ESCAPES = ("run_line_magic", "run_cell_magic", "system", "getoutput", "set_next_input")
_OUTSIDE = {
    ast.Await: "await",
    ast.AsyncFor: "async for",
    ast.AsyncWith: "async with",
    ast.Return: "return",
    ast.Yield: "yield",
    ast.YieldFrom: "yield from",
}
_Scopes = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class CellError(ValueError):
    """A cell that cannot be compiled as one program; the message names the line and the form."""


@dataclass(frozen=True)
class CheckedCell:
    """A cell's syntax tree, and what it does with names."""

    tree: ast.Module
    names: Names


def cell_of(tree: ast.Module, lines: Sequence[str]) -> CheckedCell:
    """Check a cell and find the names it uses; `lines` are the lines as the user wrote them.

    Raises `CellError` for a shell command, a magic or `?` in the cell, and for `await`, `return` or
    `yield` outside a function.
    """
    _refuse_escapes(tree, lines)
    _refuse_outside_function(tree)
    return CheckedCell(tree, names_of(tree))


def parted(tree: ast.Module) -> tuple[ast.Module, ast.Expression | None]:
    """Return the statements of a cell, and separately the expression that it ends with."""
    match tree.body:
        case [*body, ast.Expr(value=value)]:
            return ast.Module(body, []), ast.Expression(value)
    return tree, None


def _refuse_escapes(tree: ast.Module, lines: Sequence[str]) -> None:
    """Refuse `!`, `%` and `?`, which IPython turns into method calls on `get_ipython()`."""
    numbers = []
    for node in ast.walk(tree):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Call(func=ast.Name(id="get_ipython")), attr=attr)
            ) if attr in _ESCAPES:
                numbers.append(node.lineno)
    for number in sorted(numbers):
        text = lines[number - 1].strip() if number <= len(lines) else ""
        # A user may write get_ipython() too: that is Python.
        if "get_ipython" not in text:
            raise CellError(
                f"line {number}: `{text}` is not Python, and %%shard compiles the cell as one "
                "program; put it into a cell of its own"
            )


def _refuse_outside_function(tree: ast.Module) -> None:
    for node in _at_top(tree):
        word = _OUTSIDE.get(type(node))
        if isinstance(node, ast.comprehension) and node.is_async:
            word, node = "async for", node.target  # noqa: PLW2901
        if word is not None:
            raise CellError(
                f"line {getattr(node, 'lineno', 0)}: `{word}` outside a function; "
                "%%shard compiles the cell as one program, which cannot wait or return"
            )


def _at_top(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, _Scopes):
            yield from _at_top(child)
