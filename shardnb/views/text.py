"""A report as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from shardnb.report import Report
from shardnb.views import page, phrases, typed
from shardnb.views.arrays import smaller
from shardnb.views.content import Content, content_of
from shardnb.views.formatting import columns, wrapped
from shardnb.views.memory import PeakTable
from shardnb.views.points import MOST, Edit, Point
from shardnb.views.sent import Row, more
from shardnb.views.verdict import NOTHING

View = Literal["full", "brief"]
VIEWS: tuple[View, ...] = ("full", "brief")

_LABEL = 10
_WIDTH = 100
# Rows that a reader takes in at once; a report holds them all.
_ROWS = 10
_ARRAYS = 8
# Of a program that holds less, nobody asks what it holds when; the HTML has it folded.
_SMALL = 1 << 24
_HELD = 6
# Lines of the typed view: its table is there to be looked at, report.typed has them all.
_TYPED = 24


def render(report: Report, view: View = "full") -> str:
    """Write a report: `full`, or `brief` with the verdict, what to look at, and what is sent.

    Raises `ValueError` for another view.
    """
    if view not in VIEWS:
        raise ValueError(f"expected the view 'full' or 'brief', got {view!r}")
    content = content_of(report)
    header, brief = "   ".join(content.header), view == "brief"
    more = content.points or content.changed or content.outcomes
    if brief and content.verdict == (NOTHING,) and not more:
        return f"{header}   {NOTHING}"
    parts = [header, "\n".join(_verdict(content)), "\n".join(_points(content.points))]
    parts.append("\n".join(_sent(content.rows)))
    if not brief:
        held = report.memory.total if report.memory else 0
        # Types have a sharding on Explicit and Manual axes only.
        lines = page.text(typed.page(report.typed, report.sources, _TYPED)) if report.typed else ""
        parts += ["\n".join(_facts(content, held)), f"{phrases.TYPES}\n{lines}" if lines else ""]
        parts.append("\n".join(_remarks(content)))
    return "\n\n".join(filter(None, parts))


def _verdict(content: Content) -> Iterator[str]:
    yield from wrapped(" ".join(content.verdict), 0, 0)
    yield from wrapped(content.changed, 0, 2)
    for said, passed in content.outcomes:
        yield from wrapped(f"[{phrases.PASSED[passed]}] {said}", 0, 2)


def _points(points: Sequence[Point]) -> Iterator[str]:
    for number, point in enumerate(points[:MOST], 1):
        first, *others = wrapped(f"{number}  {point.head}", 0, 3)
        space = _WIDTH - len(point.cost)
        yield f"{first:<{space - 2}}  {point.cost}" if len(first) < space - 1 else first
        yield from others
        if len(first) >= space - 1 and point.cost:
            yield f"   {point.cost}"
        yield from wrapped(point.cause, 3, 3)
        for edit in point.edits:
            yield from _edit(edit)
    if points[MOST:]:
        yield f"   and {len(points) - MOST:,} more"


def _edit(edit: Edit) -> Iterator[str]:
    first, *others = edit.code.splitlines() or [""]
    yield f"   {phrases.FIX if edit.compiled else phrases.TRY} {first}"
    yield from (f"        {line}" for line in others)
    known = f"-> {edit.effect}  {phrases.COMPILED}" if edit.compiled else phrases.NOT_COMPILED
    yield f"        {known}"


def _sent(rows: Sequence[Row]) -> Iterator[str]:
    if not rows:
        return
    timed = any(row.measured for row in rows)
    shown = [_cells(row, timed=timed) for row in rows[:_ROWS]]
    head = ("What is sent", *phrases.sent_columns(timed=timed))
    yield from columns([head, *shown], right=(2, 3, 4) if timed else (2, 3))
    if left := more(rows[_ROWS:]):
        yield left


def _cells(row: Row, *, timed: bool) -> tuple[str, ...]:
    took = (row.measured,) if timed else ()
    return (row.name, row.where, row.times, row.sends, *took, row.cause)


def _facts(content: Content, held: int) -> Iterator[str]:
    peak = content.peak if held >= _SMALL else None
    yield from _labelled("Memory", [_memory(content.memory), *_peak(peak)])
    tables = (content.inputs, content.outputs)
    rows = [
        (row.name, row.type, row.shard, row.size, "; ".join(row.remarks))
        for table in tables
        for row in table.rows[:_ARRAYS]
    ]
    aligned = columns(rows, right=(3,))
    for table in tables:
        body = [next(aligned) for _ in table.rows[:_ARRAYS]]
        rest = smaller(table.rows[_ARRAYS:], table.noun)
        yield from _labelled(table.label, [*body, *filter(None, [rest])] or [table.summary])


def _memory(parts: Sequence[str]) -> str:
    return f"{parts[0]}: {', '.join(parts[1:])}" if parts[1:] else parts[0]


def _peak(table: PeakTable | None) -> Iterator[str]:
    if table is None:
        return
    rows, more = table.shown(_HELD)
    yield f"{table.when}{':' if rows else '.'}"
    yield from (f"  {line}" for line in columns(rows, right=(0,)))
    yield from (f"  {line}" for line in (more, table.rest) if line)


def _remarks(content: Content) -> Iterator[str]:
    timed = (phrases.MEASURED, " ".join(content.measured))
    facts = [timed, ("Time", content.cost), ("", content.over_both)]
    facts += [("Note", note) for note in content.notes]
    for label, text in (*facts, ("About", " ".join(content.about))):
        # Wrapped with the label's width, since lines are as long as the page.
        yield from _labelled(label, [line[_LABEL:] for line in wrapped(text, _LABEL, _LABEL)])


def _labelled(label: str, lines: list[str]) -> Iterator[str]:
    for i, line in enumerate(lines):
        yield f"{'' if i else label:<{_LABEL}}{line}"
