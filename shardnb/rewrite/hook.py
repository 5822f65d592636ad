"""The call that an edited text makes on a value: it looks at it, or gives it another sharding."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

Handler = Callable[[int, Any], Any]

CALL = f"__import__({__name__!r}, fromlist=['apply']).apply"
"""The function `apply` as an expression that needs no name of the user's namespace."""

_handler: ContextVar[Handler | None] = ContextVar("handler", default=None)


def apply(place: int, value: Any) -> Any:
    """Give what the edit that is on trial makes of a value at a place; else the value itself."""
    handler = _handler.get()
    return value if handler is None else handler(place, value)


@contextmanager
def handling(handler: Handler) -> Iterator[None]:
    """Let `handler` decide what `apply` gives, within this block."""
    token = _handler.set(handler)
    try:
        yield
    finally:
        _handler.reset(token)
