"""What edited code calls: a value is looked at or replaced, and each thread gets its own branch."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

Handler = Callable[..., Any]

_handler: ContextVar[Handler | None] = ContextVar("handler", default=None)
_edited: ContextVar[bool] = ContextVar("edited", default=False)


def call(function: Callable[..., Any], *arguments: ast.expr) -> ast.Call:
    """Write a call of a function of this module; it needs no name of the user's namespace."""
    text = f"__import__({__name__!r}, fromlist=['{function.__name__}']).{function.__name__}"
    return ast.Call(ast.parse(text, mode="eval").body, list(arguments), [])


def apply(number: int, *operands: Any) -> Any:
    """Return what the handler makes of the value (two: of the product) at a rewrite point.

    Without a handler that is the value itself: what a cell defines may be called afterwards.
    """
    handler = _handler.get()
    if handler is not None:
        return handler(number, *operands)
    return operands[0] if len(operands) == 1 else operands[0] @ operands[1]


@contextmanager
def handling(handler: Handler) -> Iterator[None]:
    """Let `handler` decide what `apply` gives, within this block."""
    token = _handler.set(handler)
    try:
        yield
    finally:
        _handler.reset(token)


def in_edited_trace() -> bool:
    """Whether the caller is being traced with its edit; other threads run what the user wrote."""
    return _edited.get()


@contextmanager
def edited_trace() -> Iterator[None]:
    """Let the functions that are called in this block, by this thread, take their edits."""
    token = _edited.set(True)
    try:
        yield
    finally:
        _edited.reset(token)
