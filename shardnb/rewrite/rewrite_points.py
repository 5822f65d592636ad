"""Places in a text of Python where a value could be given another sharding."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from shardnb.rewrite import hook
from shardnb.rewrite.syntax_trees import copied

Kind = Literal["assigned", "argument", "returned", "product"]
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class RewritePoint:
    """A value at a line: assigned there, an argument from there on, returned, or `a @ b`.

    `number` counts the points of a text. `operands` are the texts of a product's two sides, and
    `added` the names that a sum adds to other things, as `x` in `x + f(x)`.
    """

    number: int
    kind: Kind
    name: str
    line: int
    last_line: int
    function: str = ""
    operands: tuple[str, ...] = ()
    added: tuple[str, ...] = ()


def points_of(tree: ast.Module, *, top: bool = False) -> list[RewritePoint]:
    """List the points of a text; `top` says that its outermost statements count too."""
    marker = _Marker(None, top=top)
    marker.visit(copied(tree))
    return marker.points


def hooked(
    tree: ast.Module, only: Mapping[int, int] | None = None, *, top: bool = False
) -> ast.Module:
    """Return the text with a call of the hook at each point, or at the numbers of points in `only`.

    These have the number that the hook gets. It also gets the value; at a product, which is marked
    only where it is meant, the two sides.
    Line numbers stay what they are: an added statement stands on the line it follows.
    """
    changed: ast.Module = _Marker(only, top=top).visit(copied(tree))
    return ast.fix_missing_locations(changed)


class _Marker(ast.NodeTransformer):
    def __init__(self, only: Mapping[int, int] | None, *, top: bool) -> None:
        self.points: list[RewritePoint] = []
        self._only = only
        self._within: list[str] = ["<cell>"] if top else []
        self._class: list[str] = []

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._function(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """Mark the methods of a class; names assigned in its body are not program values."""
        within, self._within = self._within, []
        self._class.append(node.name)
        node.body = [
            self.visit(item) if isinstance(item, _Function) else item for item in node.body
        ]
        self._within = within
        self._class.pop()
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return node

    def _function(self, node: _Function) -> ast.AST:
        self._within.append(node.name)
        first, given = node.body[0], node.args
        documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
        names = [arg.arg for arg in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
        names = [name for name in names if name not in ("self", "cls")]
        added = [s for name in names for s in self._rebound(name, node, "argument")]
        self.generic_visit(node)
        node.body[documented:documented] = added
        self._within.pop()
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST | list[ast.stmt]:
        names = [name for target in node.targets for name in _names(target)]
        return self._followed(node, names, _added(node.value) if len(names) == 1 else ())

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST | list[ast.stmt]:
        added = _names(node.target) if isinstance(node.op, ast.Add) else ()
        return self._followed(node, _names(node.target), added)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | list[ast.stmt]:
        return self._followed(node, _names(node.target) if node.value is not None else [])

    def visit_Return(self, node: ast.Return) -> ast.AST:
        if node.value is None or isinstance(node.value, ast.Tuple | ast.Dict | ast.Constant):
            return node
        text = ast.unparse(node.value)
        self.generic_visit(node)
        call = self._call(text, node.value, node, "returned", _added(node.value))
        return node if call is None else ast.copy_location(ast.Return(call), node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        sides = ast.unparse(node.left), ast.unparse(node.right)
        self.generic_visit(node)
        if not isinstance(node.op, ast.MatMult) or not self._within:
            return node
        number = len(self.points)
        self._add("product", " @ ".join(sides), node.lineno, node.end_lineno or 0, sides)
        if self._only is None or number not in self._only:
            return node
        return self._hooked(node, self._only[number], node.left, node.right)

    def _followed(
        self, node: ast.stmt, names: list[str], added: Iterable[str] = ()
    ) -> ast.AST | list[ast.stmt]:
        if not self._within:
            return node
        self.generic_visit(node)
        after = [s for name in names for s in self._rebound(name, node, "assigned", added)]
        return [node, *after]

    def _rebound(
        self, name: str, node: ast.stmt, kind: Kind, added: Iterable[str] = ()
    ) -> list[ast.stmt]:
        call = self._call(name, ast.Name(name, ast.Load()), node, kind, added)
        if call is None:
            return []
        statement = ast.Assign([ast.Name(name, ast.Store())], call)
        statement.lineno = statement.end_lineno = _last_line(node, kind)
        statement.col_offset = statement.end_col_offset = 0
        return [statement]

    def _call(
        self, name: str, value: ast.expr, node: ast.stmt, kind: Kind, added: Iterable[str] = ()
    ) -> ast.expr | None:
        number = len(self.points)
        self._add(kind, name, node.lineno, _last_line(node, kind), added=added)
        if self._only is not None and number not in self._only:
            return None
        return self._hooked(node, number if self._only is None else self._only[number], value)

    def _add(
        self,
        kind: Kind,
        name: str,
        line: int,
        last: int,
        operands: tuple[str, ...] = (),
        added: Iterable[str] = (),
    ) -> None:
        function, number = ".".join((*self._class, *self._within)), len(self.points)
        point = RewritePoint(number, kind, name, line, last, function, operands, tuple(added))
        self.points.append(point)

    @staticmethod
    def _hooked(node: ast.stmt | ast.expr, number: int, *operands: ast.expr) -> ast.expr:
        call = hook.call(hook.apply, ast.Constant(number), *operands)
        for part in (call, *ast.walk(call.func)):
            ast.copy_location(part, node)
        return call


def _last_line(node: ast.stmt, kind: Kind) -> int:
    """Return the line after which a value is there: an argument's is where the function begins."""
    return node.lineno if kind == "argument" else node.end_lineno or node.lineno


def _added(value: ast.expr) -> list[str]:
    """Return the names among the summands of a sum.

    >>> _added(ast.parse("x + f(x) + bias", mode="eval").body)
    ['x', 'bias']
    """
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add):
        return []
    sides = (value.left, value.right)
    return [
        name
        for side in sides
        for name in ([side.id] if isinstance(side, ast.Name) else _added(side))
    ]


def _names(target: ast.expr) -> list[str]:
    if isinstance(target, ast.Name):
        return [target.id]
    if isinstance(target, ast.Tuple | ast.List):
        return [name for item in target.elts for name in _names(item)]
    return []
