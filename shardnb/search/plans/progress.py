"""One line that says how far the search for plans is, while it lasts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from shardnb.search.progress import bar, line_on

Progress = Callable[[str, int, int], None]


@contextmanager
def shown(file: TextIO | None = None) -> Iterator[Progress]:
    """Give a `progress` that draws a bar on a line of `file` (see `shardnb.search.progress`)."""
    with line_on(file) as draw:
        yield lambda what, done, total: draw(f"{bar('plan', done, total)} {what}")
