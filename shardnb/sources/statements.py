"""The statements of a cell or a file: which lines they take, and which name they assign."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

_MAGIC = re.compile(r"^(\s*)[%!]")
_COMPOUND = (ast.For, ast.AsyncFor, ast.While, ast.If, ast.With, ast.AsyncWith, ast.Try, ast.Match)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_MANY = (ast.Tuple, ast.List, ast.Dict, ast.Set, ast.Lambda, *_COMPREHENSIONS)


@dataclass(frozen=True)
class Statement:
    """A statement without a body of its own, or the head of one that has it.

    `name` is what it assigns, where that is one name and one value. `repeats` says that the
    statement, or what it calls, may run more than once.
    """

    first: int
    last: int
    name: str | None = None
    repeats: bool = False


def statements(text: str, first_line: int = 1) -> dict[int, Statement]:
    r"""Return the statement of each line; none at all if the text is not Python.

    >>> by_line = statements("%%shard\nh = x @ W\nfor i in range(3):\n    h += i\n")
    >>> [(line, statement.name, statement.repeats) for line, statement in by_line.items()]
    [(2, 'h', False), (3, None, False), (4, 'h', True)]
    """
    try:
        tree = ast.parse(textwrap.dedent("\n".join(_without_magics(text))))
    except (SyntaxError, ValueError):
        return {}
    shift = first_line - 1
    return {
        line + shift: Statement(s.first + shift, s.last + shift, s.name, s.repeats)
        for s in _walk(tree.body, repeats=False)
        for line in range(s.first, s.last + 1)
    }


def _without_magics(text: str) -> Iterator[str]:
    continued = False
    for line in text.splitlines():
        if continued or line.startswith("%%"):
            yield ""
        elif magic := _MAGIC.match(line):
            yield f"{magic[1]}pass"
        else:
            yield line
        continued = (continued or bool(_MAGIC.match(line))) and line.rstrip().endswith("\\")


def _walk(body: list[ast.stmt], *, repeats: bool) -> Iterator[Statement]:
    for node in body:
        if isinstance(node, _SCOPES):
            yield from _walk(node.body, repeats=False)
        elif isinstance(node, _COMPOUND):
            inner = repeats or isinstance(node, _LOOPS)
            bodies = [getattr(node, name, []) for name in ("body", "orelse", "finalbody")]
            clauses = getattr(node, "handlers", []) + getattr(node, "cases", [])
            parts = [part for part in (*bodies, *(clause.body for clause in clauses)) if part]
            yield Statement(node.lineno, max(node.lineno, parts[0][0].lineno - 1), None, repeats)
            for part in parts:
                yield from _walk(part, repeats=inner)
        elif not isinstance(node, ast.Pass):
            again = repeats or any(isinstance(n, _COMPREHENSIONS) for n in ast.walk(node))
            yield Statement(node.lineno, node.end_lineno or node.lineno, _assigned(node), again)


def _assigned(node: ast.stmt) -> str | None:
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign | ast.AugAssign):
        targets = [node.target]
    value = getattr(node, "value", None)
    if len(targets) != 1 or not isinstance(targets[0], ast.Name) or isinstance(value, _MANY):
        return None
    if value is None or any(isinstance(inner, ast.NamedExpr) for inner in ast.walk(value)):
        return None
    return targets[0].id
