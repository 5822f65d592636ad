"""A line that says how far a search is, while it lasts; gone afterwards."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TextIO

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
    cell = file is None and _in_notebook()
    line: _Line = _Output() if cell else _Stream(sys.stderr if file is None else file)
    following, drawn = time.perf_counter() + _SILENT, False

    def draw(text: str) -> None:
        nonlocal following, drawn
        if time.perf_counter() >= following:
            following, drawn = time.perf_counter() + _BETWEEN, True
            line.write(text)

    try:
        yield draw
    finally:
        if drawn:
            line.clear()


@contextmanager
def bar_on(name: str, file: TextIO | None = None) -> Iterator[Callable[[str, int, int], None]]:
    """Give a function that draws a bar, with what it counts, on a line as `line_on` does."""
    with line_on(file) as draw:
        yield lambda what, done, total: draw(f"{bar(name, done, total)} {what}")


class _Line(Protocol):
    def write(self, text: str) -> None: ...

    def clear(self) -> None: ...


class _Stream:
    """A line of a terminal."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, text: str) -> None:
        self._file.write("\r" + text.ljust(_WIDTH)[:_WIDTH])
        self._file.flush()

    def clear(self) -> None:
        self.write("")
        self._file.write("\r")
        self._file.flush()


class _Output:
    """An output of a cell: what a stream has shown leaves a red stripe there."""

    _shown: Any = None

    def write(self, text: str) -> None:
        from IPython.display import display

        data = {"text/plain": text}
        if self._shown is None:
            self._shown = display(data, raw=True, display_id=True)
        else:
            self._shown.update(data, raw=True)

    def clear(self) -> None:
        self.write("")


def _in_notebook() -> bool:
    ipython: Any = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def bar(name: str, done: int, total: int) -> str:
    """Write a bar with its numbers.

    >>> bar("plan", 5, 20)
    'plan [#####               ] 5 of 20'
    """
    filled = _BAR * done // total if total else 0
    return f"{name} [{'#' * filled:{_BAR}}] {done} of {total}"
