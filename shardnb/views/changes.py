"""What changed between two reports, in a line and as a page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shardnb.report import Report
from shardnb.report.changes import Change, Diff, KindChange
from shardnb.views import page
from shardnb.views.formatting import count, size
from shardnb.views.page import Block, Lead, Table

_FIGURES = ("bytes sent per device", "bytes held per device")


def since_last_run(report: Report) -> str:
    """Say what changed since the last run of the cell, "" where there was none."""
    return (
        ""
        if report.since is None
        else f"Since the last run of this cell: {in_a_line(report.since)}."
    )


def in_a_line(diff: Diff) -> str:
    """Say what changed: `-1 all-gather (412 MiB), +2 all-reduces (6.0 MiB)`."""
    said = [_kind(kind) for kind in diff.kinds]
    if diff.memory is not None and diff.memory[0] != diff.memory[1]:
        more = diff.memory[1] - diff.memory[0]
        said.append(f"{'+' if more > 0 else '-'}{size(abs(more))} memory per device")
    if said:
        return ", ".join(said)
    others = [change for change in diff.changes if change.name not in _FIGURES]
    return f"{count(len(others), 'other change')}" if others else "nothing changed"


def _kind(kind: KindChange) -> str:
    number = f"{'-' if kind.number < 0 else '+'}{count(abs(kind.number), kind.kind)}"
    if kind.at_least and not kind.wire_bytes:
        return f"{number} (bytes unknown)"
    return f"{number} ({'at least ' if kind.at_least else ''}{size(kind.wire_bytes)})"


def text_of(diff: Diff) -> str:
    """Write a diff for a terminal."""
    return page.text(_page(diff))


def html_of(diff: Diff) -> str:
    """Write a diff as an HTML fragment."""
    return page.html(_page(diff))


def mimebundle(diff: Diff) -> dict[str, Any]:
    """Return a diff as text and as HTML."""
    return {"text/plain": text_of(diff), "text/html": html_of(diff)}


def _page(diff: Diff) -> Iterator[Block]:
    before, after = diff.wire_bytes
    if not diff:
        yield Lead("No difference")
        return
    sent = (
        f"{size(after)} per run"
        if after == before
        else f"{size(after)} instead of {size(before)} per run"
    )
    yield Lead(f"Each device sends {sent}", in_a_line(diff))
    rows = [_row(change) for change in diff.changes]
    yield Table(("", "what", "before", "after"), tuple(rows), code=(1, 2, 3))


def _row(change: Change) -> tuple[str, ...]:
    mark = "+" if change.before is None else "-" if change.after is None else ""
    values = [value or "" for value in (change.before, change.after)]
    if change.name in _FIGURES:
        values = [value and size(int(value)) for value in values]
    return mark, change.name, *values
