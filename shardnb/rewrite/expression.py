"""An expression of the user's: its operands, and edits of it that state a sharding."""

from __future__ import annotations

import ast
import inspect
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec

from shardnb.rewrite.syntax_trees import copied
from shardnb.rewrite.text_edits import Piece, Text
from shardnb.sources.positions import Position

ABSENT = object()
_FUNCTIONS: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.Div: "divide",
    ast.Pow: "power",
    ast.MatMult: "matmul",
}
_OPERATOR = re.compile(rb" *(?:\*\*|[-+*/@]) *")
_LIFTED = "shardnb_array_"
_PLAIN = (jax.Array, int, float, bool, str, tuple, ModuleType, type)
_NOT_EVALUATED = ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom | ast.JoinedStr
_UPDATES = {"add", "divide", "get", "max", "min", "mul", "multiply", "power", "set", "subtract"}
"""Methods of `x.at[i]` that take `out_sharding`."""


@dataclass(frozen=True)
class Expression:
    """A node of a source text's syntax tree, and the names that it can see.

    Names are looked up and nothing is evaluated.
    """

    source: Text
    node: ast.AST
    names: Mapping[str, Any]

    @classmethod
    def at(cls, source: Text, position: Position, names: Mapping[str, Any]) -> Expression | None:
        """Find the expression at a position in the source's file."""
        node = source.node(source.at(position))
        return None if node is None else cls(source, node, names)

    @property
    def text(self) -> str:
        """The text of the expression."""
        return self.text_of(self.node)

    def text_of(self, node: ast.AST) -> str:
        """Return the text of a part of it."""
        return self.source.part(self.source.span(node))

    @cached_property
    def named(self) -> dict[str, Any]:
        """The names, attributes of modules and constant items in it, with their values."""
        values = {ast.unparse(node): self.value(node) for node in _names(self.node)}
        return {text: value for text, value in values.items() if value is not ABSENT}

    def value(self, node: ast.AST) -> Any:
        """Look up a name, an attribute of a module, or an item of a plain container."""
        if isinstance(node, ast.Name):
            return self.names.get(node.id, ABSENT)
        if isinstance(node, ast.Attribute):
            owner = self.value(node.value)
            plain = isinstance(owner, ModuleType) or node.attr in getattr(owner, "__dict__", ())
            return getattr(owner, node.attr, ABSENT) if plain else ABSENT
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            return _item(self.value(node.value), node.slice.value)
        return ABSENT

    def name_of(self, thing: Any, otherwise: str) -> str:
        """Return the name by which the user's code knows a module or a class."""
        return next((name for name, value in self.names.items() if value is thing), otherwise)

    def spec_text(self, spec: PartitionSpec) -> str:
        """Write a spec by the name that `PartitionSpec` has here."""
        from shardnb.compiler.placement import text

        plain = "P" if self.name_of(jax, "") == "" else f"{self.name_of(jax, '')}.P"
        return self.name_of(PartitionSpec, plain) + text(spec)[1:]

    @cached_property
    def parts(self) -> tuple[ast.expr, ...]:
        """The operands: of an operator, an index, or a call (a method's own array first)."""
        node = self.node
        if isinstance(node, ast.BinOp):
            return node.left, node.right
        if isinstance(node, ast.Compare):
            return node.left, *node.comparators
        if isinstance(node, ast.AugAssign | ast.Subscript | ast.UnaryOp):
            return (getattr(node, "operand", None) or node.value,)  # type: ignore[union-attr]
        if isinstance(node, ast.Call):
            return tuple(self._arguments(node))
        return ()

    def _arguments(self, node: ast.Call) -> Iterator[ast.expr]:
        if isinstance(node.func, ast.Attribute) and not self._is_module(node.func.value):
            yield _updated(node.func.value)
        for argument in node.args:
            yield from argument.elts if isinstance(argument, ast.List | ast.Tuple) else (argument,)
        yield from (keyword.value for keyword in node.keywords)

    def _is_module(self, node: ast.AST) -> bool:
        return isinstance(self.value(node), ModuleType)

    def with_out_sharding(self, spec: PartitionSpec) -> tuple[Piece, ...] | None:
        """Return the edit that states the result's placement, or None where nothing takes one.

        `a @ b` becomes `jnp.matmul(a, b, out_sharding=...)`, `t[i]` becomes
        `t.at[i].get(out_sharding=...)`, and a call that takes `out_sharding` gets it.
        """
        keyword = f"out_sharding={self.spec_text(spec)}"
        if isinstance(self.node, ast.BinOp) and isinstance(self.node.op, ast.MatMult):
            return self._matmul(self.node, keyword)
        if isinstance(self.node, ast.Subscript):
            return self._get(self.node, keyword)
        if isinstance(self.node, ast.Call) and self._takes_out_sharding(self.node):
            if any(keyword.arg == "out_sharding" for keyword in self.node.keywords):
                return None
            return self._with_keyword(self.node, keyword)
        return None

    def with_reshard(self, part: ast.expr, spec: PartitionSpec) -> tuple[Piece, ...]:
        """Return the edit that moves a part, or the whole expression, to a placement."""
        return self.wrapped(part, "sharding.reshard", self.spec_text(spec))

    def wrapped(self, part: ast.AST, function: str, further: str) -> tuple[Piece, ...]:
        """Return the edit that hands a part to a function of JAX's, with further arguments."""
        owner = self.source.span(part)
        return (
            Piece(owner[0], owner[0], f"{self.name_of(jax, 'jax')}.{function}(", owner),
            Piece(owner[1], owner[1], f", {further})", owner),
        )

    def as_reshard(self) -> tuple[Piece, ...] | None:
        """Return the edit that makes a constraint a reshard, or None if it is not a constraint."""
        if not isinstance(self.node, ast.Call):
            return None
        function = self.value(self.node.func)
        if getattr(function, "__name__", "") != "with_sharding_constraint":
            return None
        owner = self.source.span(self.node.func)
        return (Piece(*owner, f"{self.name_of(jax, 'jax')}.sharding.reshard", owner),)

    def alone(self, pieces: Sequence[Piece]) -> Expression | None:
        """Return the edited expression by itself."""
        start, end = self.source.span(self.node)
        if not all(start <= piece.start <= piece.end <= end for piece in pieces):
            return None
        near = [
            Piece(p.start - start, p.end - start, p.text, (p.owner[0] - start, p.owner[1] - start))
            for p in pieces
        ]
        text = Text("(" + Text(self.text).edited(near).text + ")")
        node = text.tree.body[0].value if text.tree else None  # type: ignore[attr-defined]
        return Expression(text, node, self.names) if node is not None else None

    def with_auto_axes(self, spec: PartitionSpec) -> tuple[Piece, ...] | None:
        """Return the edit that leaves a called function to propagation, with this result.

        Its arrays have to come first; what follows them is written into a function of them.
        """
        node = self.node
        name = f"{self.name_of(jax, 'jax')}.sharding.auto_axes"
        keyword = f", out_sharding={self.spec_text(spec)})"
        if isinstance(node, ast.BinOp) and type(node.op) in _FUNCTIONS:
            function = f"{self.name_of(jnp, 'jax.numpy')}.{_FUNCTIONS[type(node.op)]}"
            return self._as_call(node, f"{name}({function}{keyword}(", ")")
        if not isinstance(node, ast.Call) or not node.args or _is_at_call(node):
            return None
        owner = self.source.span(node.func)
        arrays = list(itertools.takewhile(lambda arg: not self._is_plain(arg), node.args))
        rest = [*node.args[len(arrays) :], *(keyword.value for keyword in node.keywords)]
        if not rest:
            opening, closing = f"{name}(", keyword
            moved: tuple[Piece, ...] = ()
        elif arrays and all(map(self._is_plain, rest)):
            start, end = self.source.span(arrays[-1])[1], self.source.span(node)[1] - 1
            opening = f"{name}(lambda *arrays: "
            closing = f"(*arrays{self.source.part((start, end)).rstrip(', ')}){keyword}"
            moved = (Piece(start, end, "", owner),)
        else:
            return None
        return (
            Piece(owner[0], owner[0], opening, owner),
            Piece(owner[1], owner[1], closing, owner),
            *moved,
        )

    def _is_plain(self, node: ast.AST) -> bool:
        """Whether a part is not an array: a constant, or a name that holds none."""
        if isinstance(node, ast.UnaryOp):
            return self._is_plain(node.operand)
        if isinstance(node, ast.Tuple | ast.List):
            return all(map(self._is_plain, node.elts))
        if isinstance(node, ast.Name | ast.Attribute):
            value = self.value(node)
            return value is not ABSENT and not isinstance(value, jax.Array | dict | list)
        return isinstance(node, ast.Constant)

    def as_function(self) -> tuple[list[str], Callable[..., Any]] | None:
        """Return the expression as a function of the arrays that it names, with their texts.

        None where it calls anything but JAX, so that no code of the user's runs.
        """
        if not isinstance(self.node, ast.expr):
            return None
        lifter = _Lifter(self)
        node = lifter.visit(copied(self.node))
        if not all(map(self._is_jax, ast.walk(node))):
            return None
        code = compile(ast.fix_missing_locations(ast.Expression(node)), "<expression>", "eval")

        def call(*arrays: Any) -> Any:
            scope = {**self.names, **dict(zip(lifter.names, arrays, strict=True))}
            return eval(code, scope)  # noqa: S307 - only calls of JAX stand in it

        return lifter.texts, call

    def _is_jax(self, node: ast.AST) -> bool:
        """Whether evaluating a node runs nothing but JAX and plain Python values."""
        if isinstance(node, ast.Call):
            return isinstance(node.func, ast.Call) or self._calls_jax(node.func)
        if isinstance(node, ast.Name):
            value = self.value(node)
            lifted = node.id.startswith(_LIFTED)
            return lifted or isinstance(value, _PLAIN) or _is_of_jax(value)
        if isinstance(node, ast.Attribute):
            known = self.value(node) is not ABSENT or node.attr in _UPDATES
            return known or hasattr(jax.Array, node.attr)
        return not isinstance(node, _NOT_EVALUATED)

    def _calls_jax(self, function: ast.expr) -> bool:
        value = self.value(function)
        if value is ABSENT and isinstance(function, ast.Attribute):
            updates = _is_at(function.value) and function.attr in _UPDATES
            return updates or hasattr(jax.Array, function.attr)
        return _is_of_jax(value)

    def edited(self, pieces: Sequence[Piece]) -> str:
        """Return the lines of the expression with an edit applied."""
        text = self.source.edited(pieces)
        first = self.source.line_of(self.source.span(self.node)[0]) - self.source.shift
        count = self.text.count("\n") + 1
        lines = text.text.splitlines()[first - 1 : first - 1 + count]
        return "\n".join(line.strip() for line in lines)

    def _matmul(self, node: ast.BinOp, keyword: str) -> tuple[Piece, ...]:
        opening = f"{self.name_of(jnp, 'jax.numpy')}.matmul("
        return self._as_call(node, opening, f", {keyword})")

    def _as_call(self, node: ast.BinOp, opening: str, closing: str) -> tuple[Piece, ...]:
        """Write an operator as a call of a function of its operands."""
        owner = self.source.span(node)
        start, end = self.source.span(node.left)[1], self.source.span(node.right)[0]
        between = self.source.data[start:end]
        operator = _OPERATOR.search(between)
        first, last = operator.span() if operator else (0, len(between))
        return (
            Piece(owner[0], owner[0], opening, owner),
            Piece(start + first, start + last, ", ", owner),
            Piece(owner[1], owner[1], closing, owner),
        )

    def _get(self, node: ast.Subscript, keyword: str) -> tuple[Piece, ...]:
        owner = self.source.span(node)
        bracket = self.source.data.index(b"[", self.source.span(node.value)[1])
        return (
            Piece(bracket, bracket, ".at", owner),
            Piece(owner[1], owner[1], f".get({keyword})", owner),
        )

    def _takes_out_sharding(self, node: ast.Call) -> bool:
        if any(keyword.arg == "out_sharding" for keyword in node.keywords):
            return False
        function = self.value(node.func)
        if function is ABSENT and isinstance(node.func, ast.Attribute):
            if _is_at(node.func.value):
                return node.func.attr in _UPDATES
            function = getattr(jax.Array, node.func.attr, None)
        try:
            return "out_sharding" in inspect.signature(function).parameters
        except (TypeError, ValueError):
            return False

    def _with_keyword(self, node: ast.Call, keyword: str) -> tuple[Piece, ...]:
        owner = self.source.span(node)
        last = owner[1] - 1
        given = self.source.part((self.source.span(node.func)[1], last)).rstrip()
        comma = "" if given == "(" else " " if given.endswith(",") else ", "
        return (Piece(last, last, comma + keyword, owner),)


class _Lifter(ast.NodeTransformer):
    """Puts a name in the place of each part that is an array."""

    def __init__(self, expression: Expression) -> None:
        self._expression = expression
        self.texts: list[str] = []

    @property
    def names(self) -> list[str]:
        return [f"{_LIFTED}{number}" for number in range(len(self.texts))]

    def visit(self, node: ast.AST) -> Any:
        if not isinstance(self._expression.value(node), jax.Array):
            return self.generic_visit(node)
        text = ast.unparse(node)
        if text not in self.texts:
            self.texts.append(text)
        return ast.Name(f"{_LIFTED}{self.texts.index(text)}", ast.Load())


def _is_of_jax(value: Any) -> bool:
    return str(getattr(value, "__module__", "")).partition(".")[0] == "jax"


def _is_at_call(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Attribute) and _is_at(node.func.value)


def _is_at(node: ast.AST) -> bool:
    """Whether a node is `x.at[i]`."""
    is_item = isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute)
    return is_item and node.value.attr == "at"  # type: ignore[attr-defined]


def _updated(node: ast.expr) -> ast.expr:
    """Return `x` of `x.at[i]`, and any other node as it is."""
    return node.value.value if _is_at(node) else node  # type: ignore[attr-defined]


def _item(value: Any, key: Any) -> Any:
    if isinstance(value, dict | list | tuple):
        try:
            return value[key]
        except (LookupError, TypeError):
            return ABSENT
    return ABSENT


def _names(node: ast.AST) -> Iterator[ast.AST]:
    constant = isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)
    if constant or isinstance(node, ast.Name | ast.Attribute):
        yield node
    for child in ast.iter_child_nodes(node):
        yield from _names(child)
