"""One line that says how far a search is, while it lasts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from shardnb.report.model import Fix
from shardnb.search.fixes.search import Progress
from shardnb.search.progress import bar, line_on


@contextmanager
def shown(file: TextIO | None = None) -> Iterator[Progress]:
    """Give a `progress` for `find_fixes` that draws a bar on a line, which is gone afterwards.

    It draws on `file` (None: standard error), and nothing before a second has passed.
    """
    with line_on(file) as draw:
        yield lambda done, total, best: draw(line(done, total, best))


def line(done: int, total: int, best: Fix | None) -> str:
    """Write a state of the search.

    >>> line(5, 20, None)
    'fixes [#####               ] 5 of 20 edits tried'
    """
    text = f"{bar('fixes', done, total)} edits tried"
    if best is None:
        return text
    before, after = best.wire_bytes
    return f"{text}, best: {100 * after / before:.0f}% of the bytes sent" if before else text
