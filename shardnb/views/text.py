"""A report as text for a terminal."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from shardnb.report import Report
from shardnb.views import page, typed
from shardnb.views.code import Line, Part
from shardnb.views.content import NOTHING, Content, Table, content_of
from shardnb.views.entries import Entry

View = Literal["full", "brief"]

_WIDTH = 100
_CODE = 56
_LABEL = 10
_TYPED = 24


def render(report: Report, view: View = "full") -> str:
    """Write a report: `full`, or `brief` with the lines that communicate and the summary.

    Raises `ValueError` for another view.
    """
    if view not in ("full", "brief"):
        raise ValueError(f"there is no view {view!r}; there are 'full' and 'brief'")
    content = content_of(report)
    if view == "full":
        types = _typed(report)
        return _joined([_header(content), _code(content), _told(content), types, _facts(content)])
    if content.summary == NOTHING:
        return f"{_header(content)}   {NOTHING}"
    return _joined([_header(content), _code(content, brief=True), content.summary])


def _joined(parts: Iterable[str]) -> str:
    return "\n\n".join(part for part in parts if part)


def _header(content: Content) -> str:
    return "   ".join(content.header)


def _code(content: Content, *, brief: bool = False) -> str:
    parts = [_part(part, named=i > 0, brief=brief) for i, part in enumerate(content.code)]
    return "\n\n".join(part for part in parts if part)


def _part(part: Part, *, named: bool, brief: bool) -> str:
    lines = [line for line in part.lines if not brief or line.entries.shown]
    digits = max((len(str(line.number)) for line in lines if line.number is not None), default=1)
    fitting = [len(line.text) for line in lines if line.entries.shown and len(line.text) <= _CODE]
    code = max(fitting, default=0)
    badges = _aligned([badge for line in lines for badge in _badges(line)])
    rows = [f"  {part.name}"] if named and lines else []
    for line in lines:
        rows += _numbered(line, digits, code, [next(badges) for _ in _badges(line)])
    return "\n".join([*rows, f"  {' ' * digits}  {part.rest}"] if part.rest else rows)


def _badges(line: Line) -> list[tuple[str, ...]]:
    told: list[tuple[str, ...]] = [
        (entry.head, entry.sends, entry.cause) for entry in line.entries.shown
    ]
    return [*told, (line.entries.rest,)] if line.entries.rest else told


def _numbered(line: Line, digits: int, code: int, badges: list[str]) -> list[str]:
    if line.number is None:
        return [f"  {' ' * digits}  ..."]
    start = f"  {line.number:>{digits}}  "
    blank = f"{' ' * (len(start) + code)}    "
    if not badges:
        return [f"{start}{line.text}".rstrip()]
    if len(line.text) > code:
        return [f"{start}{line.text}", *(blank + badge for badge in badges)]
    return [f"{start}{line.text:<{code}}    {badges[0]}", *(blank + b for b in badges[1:])]


def _aligned(rows: Sequence[Sequence[str]], right: int | None = None) -> Iterator[str]:
    """Write rows in columns; the column `right` is aligned to its right end."""
    widths: dict[int, int] = {}
    for row in rows:
        for i, cell in enumerate(row[:-1] if len(row) == 1 else row):
            widths[i] = max(widths.get(i, 0), len(cell))
    for row in rows:
        cells = [
            f"{cell:>{widths.get(i, 0)}}" if i == right else f"{cell:<{widths.get(i, 0)}}"
            for i, cell in enumerate(row)
        ]
        yield "   ".join(cells).rstrip()


def _typed(report: Report) -> str:
    """Write the placement in the type of each line, where types have one."""
    if not report.typed:
        return ""
    return f"types\n{page.text(typed.page(report.typed, report.sources, _TYPED))}"


def _told(content: Content) -> str:
    lines = _wrapped(content.summary, 0, 2)
    names = Counter((entry.name, entry.at) for entry in content.entries.shown)
    for entry in content.entries.shown:
        twin = names[entry.name, entry.at] > 1 or len(entry.members) > 1
        lines += _entry(entry, entry.head if twin or not entry.placed else entry.name)
    if content.entries.rest:
        lines.append(f"  {content.entries.rest}")
    return "\n".join(lines)


def _entry(entry: Entry, name: str) -> list[str]:
    amount = f" ({entry.sends})" if not entry.placed or len(entry.members) > 1 else ""
    # A sentence of its own names the collective and its line already.
    whole = entry.because.startswith(entry.name) and len(entry.members) == 1
    first = f"{entry.because}{amount}" if whole else f"{name} {entry.at}{amount}: {entry.because}"
    further = " ".join(entry.further)
    if not entry.fixes:
        return _wrapped(f"{first} {further}", 2, 6)
    fixes = [line for fix in entry.fixes for line in _wrapped(f"Try: {fix}", 6, 8)]
    return [*_wrapped(first, 2, 6), *_wrapped(further, 6, 6), *fixes]


def _wrapped(text: str, first: int, later: int) -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=" " * first,
        subsequent_indent=" " * later,
        break_on_hyphens=False,
        replace_whitespace=False,
        drop_whitespace=True,
    )


def _facts(content: Content) -> str:
    lines = [*_tables([("inputs", content.inputs), ("outputs", content.outputs)])]
    lines += _labelled("memory", content.memory)
    lines += _labelled("time", content.cost)
    for finding in content.findings:
        head = f"{finding.head}: " if finding.head else ""
        lines += _labelled("finding", f"{head}{finding.text}")
    for note in content.notes:
        lines += _labelled("note", note)
    lines += _labelled("about", " ".join(content.about))
    return "\n".join(lines)


def _tables(tables: Sequence[tuple[str, Table]]) -> Iterator[str]:
    rows = [
        (row.name, row.type, row.shard, row.size, "; ".join(row.remarks))
        for _, table in tables
        for row in table.rows
    ]
    written = _aligned(rows, right=3)
    for label, table in tables:
        body = [next(written) for _ in table.rows]
        body += [table.rest] if table.rest else []
        for i, line in enumerate(body or ["none"]):
            yield f"{label if i == 0 else '':<{_LABEL}}{line}"


def _labelled(label: str, text: str) -> list[str]:
    lines = _wrapped(text, _LABEL, _LABEL)
    return [f"{label:<{_LABEL}}{lines[0].lstrip()}", *lines[1:]] if lines else []
