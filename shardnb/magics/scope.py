"""The names that a cell reads before it assigns them, and those that it may assign.

The cell is followed in the order of execution, as far as that is certain. Functions and classes are
left to Python's symbol table: a name that is read only inside one counts as read, unless the cell
has certainly assigned it before.
"""

from __future__ import annotations

import ast
import symtable
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Names:
    """What a cell does with the names of the notebook.

    `read` are those whose value before the cell may matter, `assigned` those that it may bind or
    delete, both in the order of their first use.
    """

    read: tuple[str, ...]
    assigned: tuple[str, ...]


def names_of(tree: ast.Module) -> Names:
    r"""Find the names that a cell reads and assigns.

    >>> names_of(ast.parse("h = x @ W\ny = [h * k for k in range(n)]"))
    Names(read=('x', 'W', 'range', 'n'), assigned=('h', 'y'))
    """
    scope = _Scope(frozenset(_unbound_again(tree)))
    scope.block(tree.body)
    return Names(tuple(scope.read), tuple(scope.assigned))


def _unbound_again(tree: ast.AST) -> Iterator[str]:
    """Return the names that a `del` or the end of an `except` unbinds somewhere in a cell."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Del):
            yield node.id
        elif isinstance(node, ast.ExceptHandler) and node.name:
            yield node.name


class _Scope(ast.NodeVisitor):
    """Follows a cell; `bound` are the names that it has certainly assigned so far."""

    def __init__(self, never_certain: frozenset[str]) -> None:
        self.read: dict[str, None] = {}
        self.assigned: dict[str, None] = {}
        self.bound: set[str] = set()
        self._never_certain = never_certain

    def block(self, body: Iterable[ast.AST]) -> None:
        for node in body:
            self.visit(node)

    def _use(self, name: str) -> None:
        if name not in self.bound:
            self.read.setdefault(name)

    def _store(self, name: str) -> None:
        self.assigned.setdefault(name)
        if name not in self._never_certain:
            self.bound.add(name)

    def _one_of(self, *bodies: Iterable[ast.AST]) -> None:
        """Follow alternative blocks: only the names that all of them bind are certain."""
        before = set(self.bound)
        ends = []
        for body in bodies:
            self.bound = set(before)
            self.block(body)
            ends.append(self.bound)
        self.bound = set.intersection(*ends)

    def _perhaps(self, body: Iterable[ast.AST]) -> None:
        self._one_of(body, ())

    # Expressions

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self._use(node.id)
        else:
            self._store(node.id)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.block([node.value, node.target])

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        self.visit(node.values[0])
        self._perhaps(node.values[1:])

    def visit_Compare(self, node: ast.Compare) -> None:
        self.block([node.left, node.comparators[0]])
        self._perhaps(node.comparators[1:])

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self.visit(node.test)
        self._one_of([node.body], [node.orelse])

    # Assignments: the value comes first

    def visit_Assign(self, node: ast.Assign) -> None:
        self.block([node.value, *node.targets])

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self._use(node.target.id)
        self.block([node.value, node.target])

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.visit(node.annotation)
        if node.value is not None:
            self.block([node.value, node.target])

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            if alias.name != "*":
                self._store(alias.asname or alias.name.partition(".")[0])

    visit_ImportFrom = visit_Import

    # Blocks

    def visit_If(self, node: ast.If) -> None:
        self.visit(node.test)
        self._one_of(node.body, node.orelse)

    def visit_For(self, node: ast.For) -> None:
        self.visit(node.iter)
        self._perhaps([node.target, *node.body])
        self._perhaps(node.orelse)

    def visit_While(self, node: ast.While) -> None:
        self.visit(node.test)
        self._perhaps(node.body)
        self._perhaps(node.orelse)

    def visit_Try(self, node: ast.Try | ast.TryStar) -> None:
        before = set(self.bound)
        self._one_of([*node.body, *node.orelse], *([handler] for handler in node.handlers))
        after, self.bound = self.bound, before
        self.block(node.finalbody)
        self.bound |= after

    visit_TryStar = visit_Try

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name is not None:
            self._store(node.name)
        self.generic_visit(node)

    def visit_Match(self, node: ast.Match) -> None:
        self.visit(node.subject)
        self._one_of(*([case] for case in node.cases), ())

    def _capture(self, node: ast.MatchAs | ast.MatchStar | ast.MatchMapping) -> None:
        self.generic_visit(node)
        name = node.rest if isinstance(node, ast.MatchMapping) else node.name
        if name is not None:
            self._store(name)

    visit_MatchAs = visit_MatchStar = visit_MatchMapping = _capture

    # Scopes of their own

    def visit_FunctionDef(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    ) -> None:
        self._inner(node)
        self._store(node.name)

    visit_AsyncFunctionDef = visit_ClassDef = visit_FunctionDef

    def visit_TypeAlias(self, node: ast.TypeAlias) -> None:
        self._inner(node)
        self.visit(node.name)

    def _inner(self, node: ast.AST) -> None:
        read, assigned = _inside(node)
        for name in read:
            self._use(name)
        for name in assigned:
            self.assigned.setdefault(name)

    visit_Lambda = _inner

    def visit_ListComp(
        self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
    ) -> None:
        before = set(self.bound)
        for generator in node.generators:
            self.visit(generator.iter)
            for name in (n for n in ast.walk(generator.target) if isinstance(n, ast.Name)):
                if isinstance(name.ctx, ast.Store):
                    self.bound.add(name.id)
                else:
                    self._use(name.id)
            self.block(generator.ifs)
        self.block([node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt])
        self.bound = before

    visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_ListComp


def _inside(node: ast.AST) -> tuple[list[str], list[str]]:
    """Return the notebook names that a scope inside a cell reads and assigns."""
    # Inside a function, a comprehension's variables are not among the surrounding names.
    text = "def _():\n" + textwrap.indent(ast.unparse(node), " ")
    read: dict[str, None] = {}
    assigned: dict[str, None] = {}
    for table in _tables(symtable.symtable(text, "<cell>", "exec")):
        for symbol in table.get_symbols():
            # A class may read a notebook name before it assigns its own.
            early = table.get_type() == "class" and not symbol.is_free()
            if symbol.is_referenced() and (symbol.is_global() or early):
                read.setdefault(symbol.get_name())
            if symbol.is_assigned() and symbol.is_declared_global():
                assigned.setdefault(symbol.get_name())
    return list(read), list(assigned)


def _tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    for child in table.get_children():
        yield child
        yield from _tables(child)
