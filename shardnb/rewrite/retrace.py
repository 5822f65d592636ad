"""The user's Python traced once more, without its output."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from shardnb.jax_compat.process_lock import PROCESS_LOCK
from shardnb.jax_compat.tracing import traced_apart

_silent: ContextVar[bool] = ContextVar("silent", default=False)


@contextmanager
def silenced() -> Iterator[None]:
    """Drop what this thread prints, and in a notebook what it displays.

    Another thread's output goes where it went: no stream and no publisher is replaced. Their
    methods are asked meanwhile whether it is this thread that writes.
    """
    with PROCESS_LOCK, ExitStack() as stack:
        if not _silent.get():
            for stream in (sys.stdout, sys.stderr):
                stack.enter_context(_asked(stream, "write", len))
            shell = sys.modules.get("IPython")
            shell = shell and shell.get_ipython()
            if shell is not None:
                for method in ("publish", "clear_output"):
                    stack.enter_context(_asked(shell.display_pub, method, _nothing))
            token = _silent.set(True)
            stack.callback(_silent.reset, token)
        yield


def _nothing(*_: Any, **__: Any) -> None:
    """Display nothing."""


@contextmanager
def _asked(owner: Any, method: str, dropped: Callable[..., Any]) -> Iterator[None]:
    """Have a method of an object do as `dropped` does, where a silent thread calls it."""
    original = getattr(owner, method, None)
    attributes = getattr(owner, "__dict__", None)
    if original is None or attributes is None:  # a stream of C's without attributes stays loud
        yield
        return

    def asked(*args: Any, **options: Any) -> Any:
        return (dropped if _silent.get() else original)(*args, **options)

    before = dict(attributes)
    attributes[method] = asked
    try:
        yield
    finally:
        if method in before:
            attributes[method] = before[method]
        else:
            attributes.pop(method, None)


@contextmanager
def quiet_retrace() -> Iterator[None]:
    """Trace the user's Python once more, without its output and apart from JAX's caches.

    What it prints is dropped, Python's and NumPy's random numbers go on where they were, and
    JAX traces inner `jit` functions anew without touching what it has cached for the user.
    One thread at a time.
    """
    with PROCESS_LOCK:
        numbers, state = random.getstate(), np.random.get_state()  # noqa: NPY002 - the user's own
        try:
            with silenced(), traced_apart():
                yield
        finally:
            random.setstate(numbers)
            np.random.set_state(state)  # noqa: NPY002
