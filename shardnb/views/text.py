"""A report as text for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Literal

from shardnb.report import Report
from shardnb.views import page, typed
from shardnb.views.code import CodeLine, CodePart
from shardnb.views.content import NOTHING, Content, content_of
from shardnb.views.entries import Entry
from shardnb.views.formatting import columns, wrapped

View = Literal["full", "brief"]

# A longer line of code has its badges below, so that it does not push the others aside.
_CODE = 56
_LABEL = 10
# Lines of the typed view: its table is there to be looked at, report.typed has them all.
_TYPED = 24


def render(report: Report, view: View = "full") -> str:
    """Write a report: `full`, or `brief` with the lines that communicate and the summary.

    Raises `ValueError` for another view.
    """
    if view not in ("full", "brief"):
        raise ValueError(f"there is no view {view!r}; there are 'full' and 'brief'")
    content = content_of(report)
    header, brief = "   ".join(content.header), view == "brief"
    if brief and content.summary == NOTHING:
        return f"{header}   {NOTHING}"
    sources = [_source(part, named=i > 0, brief=brief) for i, part in enumerate(content.code)]
    parts = [header, "\n\n".join(filter(None, sources))]
    if brief:
        parts.append(content.summary)
    else:
        # Types have a placement on Explicit and Manual axes only.
        lines = page.text(typed.page(report.typed, report.sources, _TYPED)) if report.typed else ""
        parts += [_told(content), f"types\n{lines}" if lines else "", "\n".join(_facts(content))]
    return "\n\n".join(filter(None, parts))


def _source(part: CodePart, *, named: bool, brief: bool) -> str:
    lines = [line for line in part.lines if not brief or line.entries.shown]
    digits = max((len(str(line.number)) for line in lines if line.number is not None), default=1)
    fitting = [len(line.text) for line in lines if line.entries.shown and len(line.text) <= _CODE]
    width = max(fitting, default=0)
    aligned = columns([badge for line in lines for badge in _badges(line)])
    rows = [f"  {part.name}"] if named and lines else []
    for line in lines:
        if line.number is None:
            rows.append(f"  {' ' * digits}  ...")
            continue
        start = f"  {line.number:>{digits}}  "
        badges = [next(aligned) for _ in _badges(line)]
        beside = bool(badges) and len(line.text) <= width
        first = f"{line.text:<{width}}    {badges.pop(0)}" if beside else line.text
        rows.append(f"{start}{first}".rstrip())
        rows += [f"{' ' * (len(start) + width)}    {badge}" for badge in badges]
    return "\n".join([*rows, f"  {' ' * digits}  {part.rest}"] if part.rest else rows)


def _badges(line: CodeLine) -> list[tuple[str, ...]]:
    entries = line.entries
    badges = [(entry.head, entry.sends, entry.cause) for entry in entries.shown]
    return [*badges, (entries.rest,)] if entries.rest else [*badges]


def _told(content: Content) -> str:
    lines = wrapped(content.summary, 0, 2)
    names = Counter((entry.name, entry.at) for entry in content.entries.shown)
    for entry in content.entries.shown:
        twin = names[entry.name, entry.at] > 1 or len(entry.members) > 1
        lines += _entry(entry, entry.head if twin or not entry.placed else entry.name)
    if content.entries.rest:
        lines.append(f"  {content.entries.rest}")
    return "\n".join(lines)


def _entry(entry: Entry, name: str) -> list[str]:
    first = f"{name} {entry.at}{entry.lead}: {entry.because}"
    if entry.is_told_whole:
        first = entry.because + entry.lead
    further = " ".join(entry.further)
    if not entry.fixes:
        return wrapped(f"{first} {further}", 2, 6)
    fixes = [line for fix in entry.fixes for line in wrapped(f"Try: {fix}", 6, 8)]
    return [*wrapped(first, 2, 6), *wrapped(further, 6, 6), *fixes]


def _facts(content: Content) -> Iterator[str]:
    tables = (("inputs", content.inputs), ("outputs", content.outputs))
    rows = [
        (row.name, row.type, row.shard, row.size, "; ".join(row.remarks))
        for _, table in tables
        for row in table.rows
    ]
    aligned = columns(rows, right=3)
    for label, table in tables:
        body = [next(aligned) for _ in table.rows]
        body += [table.rest] if table.rest else []
        yield from _labelled(label, body or ["none"])
    facts = [("memory", content.memory), ("time", content.cost)]
    facts += [
        ("finding", f"{found.head}: {found.text}" if found.head else found.text)
        for found in content.findings
    ]
    facts += [("note", note) for note in content.notes]
    for label, text in (*facts, ("about", " ".join(content.about))):
        # Wrapped with the label's width, since lines are as long as the page.
        yield from _labelled(label, [line[_LABEL:] for line in wrapped(text, _LABEL, _LABEL)])


def _labelled(label: str, lines: list[str]) -> Iterator[str]:
    for i, line in enumerate(lines):
        yield f"{'' if i else label:<{_LABEL}}{line}"
