"""One lock for what a compile changes in the whole process, and one for traces in the notebook."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

PROCESS_LOCK = threading.RLock()
"""Held while descriptor 2, JAX's compilation cache or libtpu's environment is changed, and while
the user's own functions and names are traced."""

_TRACED = threading.RLock()
# Tracing takes seconds; a cell whose trace waits for another thread's cell must not hang for ever.
_LONGEST_WAIT = 60.0


@contextmanager
def names_traced() -> Iterator[None]:
    """Hold traced values in the user's names: one thread at a time, and no cell begins meanwhile.

    The same thread may do so again within.
    """
    with PROCESS_LOCK, _TRACED:
        yield


def wait_for_traces() -> None:
    """Wait until no other thread has traced values in the user's names.

    Such as a cell in a subshell of the kernel, while the main shell traces a cell.
    """
    if _TRACED.acquire(timeout=_LONGEST_WAIT):
        _TRACED.release()


@contextmanager
def no_names_traced() -> Iterator[bool]:
    """Say whether no other thread has traced values in the user's names, at once.

    If so, none has until the block ends.
    """
    free = _TRACED.acquire(blocking=False)
    try:
        yield free
    finally:
        if free:
            _TRACED.release()
