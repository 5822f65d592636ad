"""One line that says how far a search is, while it lasts."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from shardnb.fixes.search import Progress
from shardnb.report.model import Fix

_WIDTH = 79
_BAR = 20
_SILENT = 1.0


@contextmanager
def shown(file: TextIO | None = None) -> Iterator[Progress]:
    """Give a `progress` for `find_fixes` that draws a bar on a line, which is gone afterwards.

    It draws on `file` (None: standard error), and nothing before a second has passed.
    """
    out = sys.stderr if file is None else file
    start, drawn = time.perf_counter(), False

    def draw(done: int, total: int, best: Fix | None) -> None:
        nonlocal drawn
        if time.perf_counter() - start >= _SILENT:
            drawn = True
            out.write("\r" + line(done, total, best).ljust(_WIDTH)[:_WIDTH])
            out.flush()

    try:
        yield draw
    finally:
        if drawn:
            out.write("\r" + " " * _WIDTH + "\r")
            out.flush()


def line(done: int, total: int, best: Fix | None) -> str:
    """Write a state of the search.

    >>> line(5, 20, None)
    'fixes [#####               ] 5 of 20 edits tried'
    """
    filled = _BAR * done // total if total else 0
    said = f"fixes [{'#' * filled:{_BAR}}] {done} of {total} edits tried"
    if best is None:
        return said
    before, after = best.wire_bytes
    return f"{said}, best: {100 * after / before:.0f}% of the bytes sent" if before else said
