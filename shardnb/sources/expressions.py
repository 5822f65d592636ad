"""The expressions of a cell or a file, by where they begin: what an operation is written as."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Mapping, Sequence

from shardnb.sources.statements import parsed
from shardnb.terms.primitives import primitive_of

# A longer expression would take up half of a line.
_LONGEST = 40

_OPERATORS: Mapping[str, type[ast.operator]] = {
    "add": ast.Add,
    "div": ast.Div,
    "dot_general": ast.MatMult,
    "mul": ast.Mult,
    "sub": ast.Sub,
}
_CALLS = {
    "dot_general": ("dot", "einsum", "matmul", "tensordot"),
    "reduce_max": ("max",),
    "reduce_min": ("min",),
    "reduce_sum": ("sum",),
}
"""How JAX's operations are written beside their own names, by operators and by functions.

What a function computes in several steps is not among them: the sum in `jnp.mean(x)` is not it.
"""

Expressions = Mapping[tuple[int, int], Sequence[ast.expr]]
"""Expressions by line and column, in bytes from 0; those that begin at one place are nested."""


def expressions(text: str, first_line: int = 1) -> Expressions:
    """Return the operators and calls of a text; none at all if it is not Python."""
    tree, margin = parsed(text, first_line)
    found: dict[tuple[int, int], list[ast.expr]] = defaultdict(list)
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp | ast.Call):
            found[node.lineno, node.col_offset + margin].append(node)
    return found


def expression_of(operation: str, nested: Sequence[ast.expr]) -> str:
    """Return the text of the expression that an operation is written as, "" if that is not plain.

    >>> begun = expressions("h = x @ w + b")[1, 4]
    >>> [expression_of(operation, begun) for operation in ("dot_general", "add", "mul")]
    ['x @ w', 'x @ w + b', '']
    """
    fitting = [one for one in nested if _is_written_as(operation, one)]
    text = ast.unparse(fitting[0]) if len(fitting) == 1 else ""
    return text if len(text) <= _LONGEST else ""


def _is_written_as(operation: str, expression: ast.expr) -> bool:
    if isinstance(expression, ast.BinOp):
        return type(expression.op) is _OPERATORS.get(operation)
    if not isinstance(expression, ast.Call) or _sends_several(operation, expression):
        return False
    function = expression.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name in (operation, *_CALLS.get(operation, ()))


def _sends_several(operation: str, call: ast.Call) -> bool:
    """Whether a collective is called with a tuple of arrays: its result is none of them."""
    several = bool(call.args) and isinstance(call.args[0], ast.Tuple | ast.List | ast.Dict)
    return several and primitive_of(operation) is not None
