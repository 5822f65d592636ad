"""Python's garbage collector, paused while many long-lived objects are made."""

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
    """Pause the collector: tracing and reading a program make many objects but few cycles.

    The new objects join the oldest generation, so that the next collection skips them.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            if gc.get_freeze_count() <= _FROZEN_AT_START:  # objects that the user froze stay frozen
                gc.freeze()
                gc.unfreeze()
            gc.enable()
