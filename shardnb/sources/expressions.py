"""The expressions of a cell or a file, by where they begin: what an operation is written as."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Container, Mapping, Sequence

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
    "dot_general": ("dot", "einsum", "inner", "matmul", "tensordot", "vdot"),
    "gather": ("take", "take_along_axis"),
    "iota": ("arange",),
    "reduce_and": ("all",),
    "reduce_max": ("max",),
    "reduce_min": ("min",),
    "reduce_or": ("any",),
    "reduce_prod": ("prod",),
    "reduce_sum": ("sum",),
    "select_n": ("where",),
    "sharding_constraint": ("with_sharding_constraint",),
}
"""How JAX's operations are written beside their own names, by operators and by functions.

What a function computes in several steps is not among them: the sum in `jnp.mean(x)` is not it.
"""

_REDUCTIONS = tuple(call for name in _CALLS if name.startswith("reduce_") for call in _CALLS[name])

_SUMMING = ("average", "mean", "norm", "std", "var")
"""Functions that sum on the way to what they return."""

_SUMMING_TWICE = ("std", "var")

_SOLVING = ("det", "inv", "slogdet", "solve")
_FACTORING = {
    "eigh": ("eigvalsh",),
    "geqrf": ("qr",),
    "lu": _SOLVING,
    "svd": ("cond", "lstsq", "matrix_rank", "norm", "pinv", "svdvals"),
    "triangular_solve": ("inv", "solve", "solve_triangular"),
}
"""Functions of linear algebra, by JAX's operations in them that have other names."""

Expressions = Mapping[tuple[int, int], Sequence[ast.expr]]
"""Expressions by line and column, in bytes from 0; those that begin at one place are nested."""


def expressions(text: str, first_line: int = 1) -> Expressions:
    """Return the operators, calls and look-ups of a text; none at all if it is not Python."""
    tree, margin = parsed(text, first_line)
    found: dict[tuple[int, int], list[ast.expr]] = defaultdict(list)
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp | ast.Call | ast.Subscript):
            found[node.lineno, node.col_offset + margin].append(node)
    return found


def written_as(operation: str, nested: Sequence[ast.expr]) -> list[ast.expr]:
    """Return the expressions that an operation may be written as, outermost first.

    >>> nested = expressions("h = a @ b @ c + d")[1, 4]
    >>> [text_of(expression) for expression in written_as("dot_general", nested)]
    ['a @ b @ c', 'a @ b']
    """
    return [one for one in nested if _is_written_as(operation, one)]


def within(nested: Sequence[ast.expr], functions: Container[str]) -> Sequence[ast.expr]:
    """Return the expressions that an operation which is made in these functions may be written as.

    >>> nested = expressions("h = silu(x) * w")[1, 4]
    >>> [[text_of(one) for one in within(nested, names)] for names in ((), ("silu",))]
    [['silu(x) * w', 'silu(x)'], ['silu(x)']]
    """
    called = [isinstance(one, ast.Call) and _function(one) in functions for one in nested]
    return nested[len(called) - 1 - called[::-1].index(True) :] if True in called else nested


def step_within(operation: str, nested: Sequence[ast.expr]) -> str:
    """Return the call that an operation is a step of, as of `jnp.mean`, in words; "" for none.

    >>> step_within("reduce_sum", expressions("h = x.mean(0)")[1, 4])
    'the sum in x.mean(0)'
    >>> step_within("svd", expressions("h = jnp.linalg.pinv(x)")[1, 4])
    'the svd in jnp.linalg.pinv(x)'
    """
    steps = _SUMMING if operation == "reduce_sum" else _FACTORING.get(operation, ())
    calls = [one for one in nested if isinstance(one, ast.Call) and _function(one) in steps]
    if len(calls) != 1 or not (text := text_of(calls[0])):
        return ""
    if operation == "reduce_sum":
        return f"{'a' if _function(calls[0]) in _SUMMING_TWICE else 'the'} sum in {text}"
    return f"the {operation} in {text}"


def sums_in_a_row(nested: Sequence[ast.expr]) -> ast.expr | None:
    """Return the outermost of several calls that sum one after another, None for fewer.

    XLA makes one sum of them, in the name of either (`two_sums_in_a_row`).

    >>> text_of(sums_in_a_row(expressions("h = jnp.sum(x, -1).mean() / 2")[1, 4]))
    'jnp.sum(x, -1).mean()'
    """
    functions = ("sum", *_SUMMING)
    calls = [one for one in nested if isinstance(one, ast.Call) and _function(one) in functions]
    return calls[0] if len(calls) > 1 else None


def text_of(expression: ast.expr) -> str:
    """Return the text of an expression, "" for a long one; of a product each factor may be long.

    >>> text_of(expressions("jax.nn.gelu(x @ first_weights + bias) @ second_weights")[1, 0][0])
    '(...) @ second_weights'
    >>> text_of(expressions("jnp.dot(jax.nn.gelu(x @ first_weights + bias), weights)")[1, 0][0])
    'jnp.dot((...), weights)'
    """
    text = ast.unparse(expression)
    if len(text) <= _LONGEST or not is_product(expression):
        return text if len(text) <= _LONGEST else ""
    short = ""
    if isinstance(expression, ast.BinOp):
        left, right = ast.unparse(expression.left), ast.unparse(expression.right)
        short = f"(...) @ {right}" if len(left) > len(right) else f"{left} @ (...)"
    elif isinstance(expression, ast.Call) and expression.args and not expression.keywords:
        factors = [ast.unparse(one) for one in expression.args]
        factors[factors.index(max(factors, key=len))] = "(...)"
        short = f"{ast.unparse(expression.func)}({', '.join(factors)})"
    return short if len(short) <= _LONGEST else ""


def operand_of(expression: ast.expr, at: int) -> str:
    """Return the text of an operand, "" where the expression does not tell which one it is.

    >>> (product,) = written_as("dot_general", expressions("h = x @ w + b")[1, 4])
    >>> [operand_of(product, at) for at in (0, 1)]
    ['x', 'w']
    """
    operand: ast.expr | None = None
    if isinstance(expression, ast.BinOp) and at < 2:
        operand = (expression.left, expression.right)[at]
    elif isinstance(expression, ast.Subscript) and at == 1:
        several = isinstance(expression.slice, ast.Tuple | ast.Slice)
        operand = None if several else expression.slice
    elif isinstance(expression, ast.Call) and at == 0 and primitive_of(_function(expression)):
        operand = expression.args[0] if expression.args else None
        # What a call returns may be several arrays.
        operand = None if isinstance(operand, ast.Call | ast.Tuple | ast.List) else operand
    return text_of(operand) if operand is not None else ""


def is_product(expression: ast.expr) -> bool:
    """Whether an expression multiplies matrices."""
    if isinstance(expression, ast.BinOp):
        return isinstance(expression.op, ast.MatMult)
    return isinstance(expression, ast.Call) and _function(expression) in _CALLS["dot_general"]


def is_one_operation(expression: ast.expr) -> bool:
    """Whether JAX makes one operation of it each time: not of an `einsum` of several arrays."""
    if not isinstance(expression, ast.Call):
        return True
    return _function(expression) in _REDUCTIONS


def is_of_two(expression: ast.expr) -> bool:
    """Whether an expression is one operation on two arrays: an `einsum` may be none, or several."""
    return isinstance(expression, ast.BinOp) or (
        isinstance(expression, ast.Call) and _function(expression) in ("dot", "inner", "matmul")
    )


def _is_written_as(operation: str, expression: ast.expr) -> bool:
    if isinstance(expression, ast.BinOp):
        return type(expression.op) is _OPERATORS.get(operation)
    if isinstance(expression, ast.Subscript):
        updates = isinstance(expression.value, ast.Attribute) and expression.value.attr == "at"
        sliced = isinstance(expression.slice, ast.Slice)
        return operation == "gather" and not updates and not sliced
    if not isinstance(expression, ast.Call) or _sends_several(operation, expression):
        return False
    return _function(expression) in (operation, *_CALLS.get(operation, ()))


def _function(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _sends_several(operation: str, call: ast.Call) -> bool:
    """Whether a collective is called with a tuple of arrays: its result is none of them."""
    several = bool(call.args) and isinstance(call.args[0], ast.Tuple | ast.List | ast.Dict)
    return several and primitive_of(operation) is not None
