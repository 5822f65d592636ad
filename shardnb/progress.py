"""A line that says how far a search is, while it lasts; gone afterwards."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

_WIDTH = 79
_BAR = 20
_SILENT = 1.0
_BETWEEN = 0.1


@contextmanager
def line_on(file: TextIO | None = None) -> Iterator[Callable[[str], None]]:
    """Give a function that writes its text over the one before.

    It draws on `file` (None: standard error), nothing before a second has passed, and not more
    often than anybody can see.
    """
    out = sys.stderr if file is None else file
    following, drawn = time.perf_counter() + _SILENT, False

    def draw(text: str) -> None:
        nonlocal following, drawn
        if time.perf_counter() >= following:
            following, drawn = time.perf_counter() + _BETWEEN, True
            out.write("\r" + text.ljust(_WIDTH)[:_WIDTH])
            out.flush()

    try:
        yield draw
    finally:
        if drawn:
            out.write("\r" + " " * _WIDTH + "\r")
            out.flush()


def bar(name: str, done: int, total: int) -> str:
    """Write a bar with its numbers.

    >>> bar("plan", 5, 20)
    'plan [#####               ] 5 of 20'
    """
    filled = _BAR * done // total if total else 0
    return f"{name} [{'#' * filled:{_BAR}}] {done} of {total}"
