"""Python's garbage collector, off while many objects are made that stay."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# A report of a 24-layer training step (tests/benchmarks/bench_explain.py) takes 4.8 s of CPU time,
# 5.5 s where the collector runs: the medians of three runs each.
# Python itself freezes some hundred objects when it starts: 375 in 3.12.
_FROZEN_AT_START = 1000


@contextmanager
def collector_paused() -> Iterator[None]:
    """Keep the collector off: tracing and reading a program make many objects, and few cycles.

    What was made joins the oldest objects, or the next collection would walk over all of it.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            if gc.get_freeze_count() <= _FROZEN_AT_START:  # what the user froze stays frozen
                gc.freeze()
                gc.unfreeze()
            gc.enable()
