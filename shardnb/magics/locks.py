"""One cell is traced at a time, and no other cell begins meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from shardnb.jax_compat.process_lock import PROCESS_LOCK

_TRACED = threading.RLock()
# Tracing takes seconds at most; a cell that waits for another thread's cell must not hang for ever.
_LONGEST_WAIT = 60.0


@contextmanager
def cell_traced() -> Iterator[None]:
    """Trace a cell: its names hold traced values, which no other cell may see."""
    with PROCESS_LOCK, _TRACED:
        yield


def wait_for_traces() -> None:
    """Wait until no other thread traces a cell, such as the main one while a subshell begins."""
    if _TRACED.acquire(timeout=_LONGEST_WAIT):
        _TRACED.release()
