"""One line that says what is going on and for how long, while it lasts; gone afterwards.

Another thread draws it, so that it goes on while one call of JAX's or XLA's takes long.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import Any, TextIO

Progress = Callable[[str, int, int], None]
"""Takes what is counted, how much is done, and how much there is."""

_WIDTH = 79  # one line of a terminal
_BAR = 20
_SILENT = 1.0  # seconds: what ends sooner needs no line
_BETWEEN = 0.25  # seconds: a drawing costs the kernel a message
_TO_WIPE = 1.0  # seconds in which the thread has wiped the line, unless the front end hangs


class _Line:
    """The line of one call; what is inside of another call adds its text to that one's line."""

    def __init__(self, write: Callable[[str], None] | None) -> None:
        """Begin without a text; without `write` nothing is drawn."""
        self.texts: list[list[str]] = []
        self._write, self._start = write, time.perf_counter()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        if write is not None:
            # The context says under which cell a kernel shows what it displays.
            run = copy_context().run
            self._thread = threading.Thread(target=run, args=(self._draw, write), daemon=True)
            self._thread.start()

    def text(self) -> str:
        """Return what is going on, the outermost call first, and for how long."""
        seconds = time.perf_counter() - self._start
        parts = [text for (text,) in list(self.texts) if text]
        return f"{seconds:.0f} s  {'  '.join(parts)}"

    def _draw(self, write: Callable[[str], None]) -> None:
        if self._over.wait(_SILENT):
            return
        while True:
            write(self.text())
            if self._over.wait(_BETWEEN):
                break
        write("")

    def end(self) -> None:
        """Wipe the line."""
        self._over.set()
        if self._thread is not None:
            self._thread.join(_TO_WIPE)


_line: ContextVar[_Line | None] = ContextVar("line", default=None)


@contextmanager
def line_on(file: TextIO | None = None) -> Iterator[Callable[[str], None]]:
    """Yield a function that says what is going on, in the place of what it said before.

    It is drawn on `file`, or else under the cell in a notebook and on standard error in a terminal;
    nowhere in a script whose standard error is not a terminal. Nothing is drawn before a second has
    passed. Inside of another `line_on` the text comes after that one's.
    """
    outer, text = _line.get(), [""]
    line = outer or _Line(_writer(file))

    def say(what: str) -> None:
        text[0] = what

    line.texts.append(text)
    token = _line.set(line)
    try:
        yield say
    finally:
        _line.reset(token)
        # By identity: two calls may say the same.
        line.texts[:] = [other for other in line.texts if other is not text]
        if outer is None:
            line.end()


@contextmanager
def silent() -> Iterator[None]:
    """Draw nothing for what the block does: it is done for no cell."""
    token = _line.set(_Line(None))
    try:
        yield
    finally:
        _line.reset(token)


@contextmanager
def bar_on(name: str, file: TextIO | None = None) -> Iterator[Progress]:
    """Yield a function that draws a bar, with what it counts, on a line as `line_on` does."""
    with line_on(file) as say:
        yield lambda what, done, total: say(f"{bar(name, done, total)} {what}")


def _writer(file: TextIO | None) -> Callable[[str], None] | None:
    if file is not None:
        return _terminal_line(file)
    if in_kernel():
        return _cell_line()
    stderr: TextIO | None = sys.stderr
    return _terminal_line(stderr) if stderr is not None and stderr.isatty() else None


def _terminal_line(file: TextIO) -> Callable[[str], None]:
    def write(text: str) -> None:
        file.write("\r" + text.ljust(_WIDTH)[:_WIDTH] + ("" if text else "\r"))
        file.flush()

    return write


def _cell_line() -> Callable[[str], None]:
    """Write on an output of the cell: what a stream has shown leaves a red stripe there.

    The publisher is the one of now: while a cell is traced once more, displays are dropped.
    """
    ipython: Any = sys.modules["IPython"]
    publish, shown = ipython.get_ipython().display_pub.publish, {"display_id": _new_id()}
    drawn = False

    def write(text: str) -> None:
        nonlocal drawn
        publish(data={"text/plain": text}, metadata={}, transient=shown, update=drawn)
        drawn = True

    return write


def _new_id() -> str:
    return f"shardnb-{threading.get_ident()}-{time.monotonic_ns()}"


def in_kernel() -> bool:
    """Whether this is a notebook's kernel: only there are displays updated and widgets drawn."""
    ipython: Any = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def bar(name: str, done: int, total: int) -> str:
    """Write a bar with its numbers.

    >>> bar("plan", 5, 20)
    'plan [#####               ] 5 of 20'
    """
    filled = _BAR * done // total if total else 0
    return f"{name} [{'#' * filled:{_BAR}}] {done} of {total}"
