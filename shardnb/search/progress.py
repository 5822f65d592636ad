"""A line that says how far a search is, while it lasts; gone afterwards."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

Progress = Callable[[str, int, int], None]
"""Takes what is counted, how much is done, and how much there is."""

_WIDTH = 79  # one line of a terminal
_BAR = 20
_SILENT = 1.0  # seconds: a search that ends sooner needs no line
_BETWEEN = 0.1  # seconds: a drawing costs the kernel a message


@contextmanager
def line_on(file: TextIO | None = None) -> Iterator[Callable[[str], None]]:
    """Give a function that writes its text over the one before.

    It draws on `file` (None: under the cell in a notebook, else on standard error), nothing before
    a second has passed, and not more often than anybody can see.
    """
    cell = file is None and in_kernel()
    write = _cell_line() if cell else _terminal_line(sys.stderr if file is None else file)
    following, drawn = time.perf_counter() + _SILENT, False

    def draw(text: str) -> None:
        nonlocal following, drawn
        if time.perf_counter() >= following:
            following, drawn = time.perf_counter() + _BETWEEN, True
            write(text)

    try:
        yield draw
    finally:
        if drawn:
            write("")


@contextmanager
def bar_on(name: str, file: TextIO | None = None) -> Iterator[Progress]:
    """Give a function that draws a bar, with what it counts, on a line as `line_on` does."""
    with line_on(file) as draw:
        yield lambda what, done, total: draw(f"{bar(name, done, total)} {what}")


def _terminal_line(file: TextIO) -> Callable[[str], None]:
    def write(text: str) -> None:
        file.write("\r" + text.ljust(_WIDTH)[:_WIDTH] + ("" if text else "\r"))
        file.flush()

    return write


def _cell_line() -> Callable[[str], None]:
    """Write on an output of the cell: what a stream has shown leaves a red stripe there."""
    handle: Any = None

    def write(text: str) -> None:
        nonlocal handle
        from IPython.display import display

        data = {"text/plain": text}
        if handle is None:
            handle = display(data, raw=True, display_id=True)
        else:
            handle.update(data, raw=True)

    return write


def in_kernel() -> bool:
    """Whether this is a notebook's kernel: only there a cell has outputs and widgets are drawn."""
    ipython: Any = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def bar(name: str, done: int, total: int) -> str:
    """Write a bar with its numbers.

    >>> bar("plan", 5, 20)
    'plan [#####               ] 5 of 20'
    """
    filled = _BAR * done // total if total else 0
    return f"{name} [{'#' * filled:{_BAR}}] {done} of {total}"
