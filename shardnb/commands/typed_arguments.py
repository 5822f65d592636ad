"""Arguments written as types, such as `x=f32[256@data,512]`, which need no array."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Any

from shardnb.commands.command_error import CommandError

FORM = "an argument is written as x=f32[256@data,512@model] or n=4"
_SHORT = {"f": "float", "i": "int", "s": "int", "u": "uint", "c": "complex", "bf": "bfloat"}
_TYPE = re.compile(r"(\w+)\[(.*)\]", re.DOTALL)
_DIM = re.compile(r"\s*(\d{1,18})\s*(?:@\s*(\w+|\([\w\s,]+\))\s*)?(?:,|$)")


@dataclass(frozen=True)
class Argument:
    """An argument by name: the dtype, shape and mesh axes per dimension of an array, or a value.

    `dtype` is None if the argument is the Python literal `value`.
    """

    name: str
    dtype: str | None = None
    shape: tuple[int, ...] = ()
    spec: tuple[tuple[str, ...], ...] = ()
    value: Any = None


def parse(text: str) -> Argument:
    """Read one argument; raises `CommandError` with the right form.

    >>> parse("x=bf16[8@(data,model), 16]")
    Argument(name='x', dtype='bfloat16', shape=(8, 16), spec=(('data', 'model'), ()), value=None)
    >>> parse("n=4").value
    4
    """
    name, equals, rest = (part.strip() for part in text.partition("="))
    if not equals or not name.isidentifier():
        raise CommandError(f"cannot read the argument {text!r}: {FORM}")
    match = _TYPE.fullmatch(rest)
    if match is None:
        return Argument(name, value=_literal(text, rest))
    shape, spec = _dimensions(text, match[2])
    return Argument(name, _dtype(match[1]), shape, spec)


def _literal(text: str, value: str) -> Any:
    try:
        return ast.literal_eval(value)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError) as error:
        raise CommandError(f"cannot read the argument {text!r}: {FORM}") from error


def _dimensions(text: str, dims: str) -> tuple[tuple[int, ...], tuple[tuple[str, ...], ...]]:
    shape: list[int] = []
    spec: list[tuple[str, ...]] = []
    at = 0
    while at < len(dims):
        match = _DIM.match(dims, at)
        if match is None:
            raise CommandError(f"{dims[at:].strip()!r} in {text!r} is not a dimension: {FORM}")
        shape.append(int(match[1]))
        spec.append(tuple(axis.strip() for axis in (match[2] or "").strip("()").split(",") if axis))
        at = match.end()
    return tuple(shape), tuple(spec)


def _dtype(name: str) -> str:
    """Return NumPy's name of a dtype that is written as in HLO or in JAX's types."""
    if name == "pred":
        return "bool"
    match = re.fullmatch(r"([a-z]+?)(\d+)", name)
    return f"{_SHORT.get(match[1], match[1])}{match[2]}" if match else name
