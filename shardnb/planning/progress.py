"""One line that says how far the search for plans is, while it lasts."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

Progress = Callable[[str, int, int], None]
_WIDTH = 79
_BAR = 20
_SILENT = 1.0
_BETWEEN = 0.1


@contextmanager
def shown(file: TextIO | None = None) -> Iterator[Progress]:
    """Give a `progress` that draws a bar on a line, which is gone afterwards.

    It draws on `file` (None: standard error), and nothing before a second has passed.
    """
    out = sys.stderr if file is None else file
    following, drawn = time.perf_counter() + _SILENT, False

    def draw(what: str, done: int, total: int) -> None:
        nonlocal following, drawn
        if time.perf_counter() >= following:
            following, drawn = time.perf_counter() + _BETWEEN, True
            out.write("\r" + line(what, done, total).ljust(_WIDTH)[:_WIDTH])
            out.flush()

    try:
        yield draw
    finally:
        if drawn:
            out.write("\r" + " " * _WIDTH + "\r")
            out.flush()


def line(what: str, done: int, total: int) -> str:
    """Write a state of the search.

    >>> line("plans compiled", 6, 24)
    'plan [#####               ] 6 of 24 plans compiled'
    """
    filled = _BAR * done // total if total else 0
    return f"plan [{'#' * filled:{_BAR}}] {done} of {total} {what}"
