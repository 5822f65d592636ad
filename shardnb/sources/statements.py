"""The statements of a cell or a file: which lines they take, and which name they assign."""

from __future__ import annotations

import ast
import re
import textwrap
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

_MAGIC = re.compile(r"^(\s*)[%!]")
_COMPOUND = (ast.For, ast.AsyncFor, ast.While, ast.If, ast.With, ast.AsyncWith, ast.Try, ast.Match)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_LINE_END = 1 << 30
_MANY = (ast.Tuple, ast.List, ast.Dict, ast.Set, ast.Lambda, *_COMPREHENSIONS)


@dataclass(frozen=True)
class Statement:
    """A statement without a body of its own, or the head of one that has it.

    `name` is what it assigns, where that is one name and one value. `repeats` says that the
    statement, or what it calls, may run more than once. It begins at the column `start` of its
    first line and ends before `end` of its last one, counted in bytes from 0.
    """

    first: int
    last: int
    name: str | None = None
    repeats: bool = False
    start: int = 0
    end: int = _LINE_END

    def holds(self, line: int, column: int) -> bool:
        """Whether a position is in the statement."""
        return (self.first, self.start) <= (line, column) < (self.last, self.end)


def statements(text: str, first_line: int = 1) -> dict[int, tuple[Statement, ...]]:
    r"""Return the statements of each line; none at all if the text is not Python.

    >>> by_line = statements("%%shard\nh = x @ W\nfor i in range(3):\n    h += i; g = h\n")
    >>> [(line, [(one.name, one.repeats) for one in held]) for line, held in by_line.items()]
    [(2, [('h', False)]), (3, [(None, False)]), (4, [('h', True), ('g', True)])]
    """
    tree, margin = parsed(text, first_line)
    found: dict[int, list[Statement]] = defaultdict(list)
    for s in _walk(tree.body, repeats=False):
        for line in range(s.first, s.last + 1):
            found[line].append(replace(s, start=s.start + margin, end=s.end + margin))
    return {line: tuple(held) for line, held in found.items()}


def parsed(text: str, first_line: int) -> tuple[ast.Module, int]:
    """Return a text as Python reads it, with its lines counted from `first_line`, and its margin.

    The margin is by how many columns it is indented. Without magics; empty if it is not Python.
    """
    code = "\n".join(_without_magics(text))
    dedented = textwrap.dedent(code)
    try:
        tree = ast.parse(dedented)
    except (SyntaxError, ValueError):
        return ast.Module([], []), 0
    ast.increment_lineno(tree, first_line - 1)
    first = next((line for line in dedented.splitlines() if line), "")
    return tree, next((line.index(first) for line in code.splitlines() if line.strip()), 0)


def statement_at(held: Sequence[Statement], line: int, column: int) -> Statement | None:
    """Return the statement at a column of a line, of those that the line holds; -1 is not known.

    >>> first, second = statements("h = x; g = h")[1]
    >>> statement_at((first, second), 1, 11).name, statement_at((first, second), 1, -1)
    ('g', None)
    """
    if len(held) == 1:
        return held[0]
    return next((one for one in held if one.holds(line, column)), None)


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
            yield _head(node, parts[0][0], repeats=repeats)
            for part in parts:
                yield from _walk(part, repeats=inner)
        elif not isinstance(node, ast.Pass):
            again = repeats or any(isinstance(n, _COMPREHENSIONS) for n in ast.walk(node))
            last, end = node.end_lineno or node.lineno, node.end_col_offset or _LINE_END
            yield Statement(node.lineno, last, _assigned(node), again, node.col_offset, end)


def _head(node: ast.stmt, first: ast.stmt, *, repeats: bool) -> Statement:
    """Return what stands before the first statement in a compound one, perhaps on its line."""
    shared = first.lineno == node.lineno
    last, end = max(node.lineno, first.lineno - 1), first.col_offset if shared else _LINE_END
    return Statement(node.lineno, last, None, repeats, node.col_offset, end)


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
