"""A report as HTML: a fragment for notebooks, and a page of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from shardnb.report import Report
from shardnb.report.spec import spec_text
from shardnb.views import page, phrases, typed, words
from shardnb.views.arrays import ArrayRow, smaller
from shardnb.views.code import CodeLine, CodePart
from shardnb.views.content import Arrays, Content, content_of
from shardnb.views.formatting import clean, clean_lines, count, size
from shardnb.views.grids import grid
from shardnb.views.layout import Bounds
from shardnb.views.markup import (
    FAINT,
    block,
    cell,
    chip,
    code,
    details,
    escaped,
    fragment,
    line_number,
    mono,
    row,
    table,
    tag,
    text,
)
from shardnb.views.memory import PeakTable
from shardnb.views.palette import TONES
from shardnb.views.phrases import LEGEND
from shardnb.views.picture import Gallery, pictures, value_picture
from shardnb.views.points import MOST, Point
from shardnb.views.sent import Row, more

# A notebook keeps the fragment, and each tile weighs about 150 bytes.
_TILES = 600
_PAGE_TEXT = 1_000_000
# Parts of so few lines, or pictures, are open at once.
_OPEN_LINES = 6
_OPEN = 4
# Rows that are shown before the rest, and that are shown at all.
_ROWS = 8
_TOLD = 40
_ARRAYS = 16
_HELD = 24
# Characters of a line of code beside its badges that stay on one line.
_CODE = 56
_TYPED = 200
_SHARED = "It shares the instruction of the row that it is sent together with."


def render(report: Report) -> str:
    """Write a report as an HTML fragment that lives in any notebook.

    It has tables, details and inline styles only, and says in text what it shows in colour. The
    program's texts, which are large, are in `report.texts` and in the page that `save` writes.
    """
    return _fragment(report)


def save(report: Report, path: str | Path) -> Path:
    """Write a report as one HTML file that needs no JavaScript and no network; give its path."""
    target = Path(path)
    filled = _PAGE.format(title=escaped(report.title), body=_fragment(report, _texts(report)))
    target.write_text(filled, encoding="utf-8")
    return target


_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ margin: 24px auto; padding: 0 20px; max-width: 1000px; background: #fff; color: #1c1c1c; }}
@media (prefers-color-scheme: dark) {{ body {{ background: #181a1d; color: #e6e6e6; }} }}
</style>
</head>
<body>
{body}
</body>
</html>
"""


def _fragment(report: Report, texts: str = "") -> str:
    content = content_of(report)
    parts = [
        *_top(content),
        *(_point(i, point, report) for i, point in enumerate(content.points[:MOST], 1)),
        _rest_of_points(content.points[MOST:]),
        _sent(content.rows),
        *map(_source, content.code),
        *_arrays(content, report),
        _facts(content),
    ]
    if report.typed:
        lines = page.html(typed.page(report.typed, report.sources, _TYPED))
        parts.append(_folded(phrases.TYPES, lines))
    if content.values.rows:
        values = _table(content.values)
        why = "".join(block(text(reason)) for reason in content.reasons)
        parts.append(_folded(content.values.label, values + why, content.values.summary))
    return fragment("".join((*parts, texts)))


def _faint(sentence: str) -> str:
    return block(text(sentence), FAINT) if sentence else ""


def _folded(title: str, body: str, summary: str = "", *, is_open: bool = False) -> str:
    beside = f" {tag('span', text(summary), FAINT)}" if summary else ""
    return details(tag("b", text(title)) + beside, body, is_open=is_open)


# The first screen


def _top(content: Content) -> Iterator[str]:
    first, *others = content.header
    devices = "".join(f" \u00b7 {text(part)}" for part in others)
    yield block(tag("span", text(first) + devices, FAINT))
    yield block(tag("b", text(" ".join(content.verdict))), "font-size:15px")
    yield _faint(content.changed)
    for said, passed in content.outcomes:
        tone = TONES["neutral" if passed else "red" if passed is False else "amber"]
        yield block(f"{chip(phrases.PASSED[passed], tone)} {text(said)}")


def _point(number: int, point: Point, report: Report) -> str:
    cost = f" {chip(point.cost, TONES[point.tone])}" if point.cost else ""
    parts = [block(f"{number}. {tag('b', text(point.head))}{cost}"), block(text(point.cause))]
    for edit in point.edits:
        label, known = ("Fix", f"\u2192 {edit.effect} {phrases.REPORT['compiled']}")
        if not edit.compiled:
            label, known = ("Try", str(phrases.REPORT["notCompiled"]))
        written = mono(edit.code, "white-space:pre-wrap")
        parts.append(block(f"{tag('b', label)} {written} {text(known)}"))
    bounds = Bounds(tiles=_TILES // 8)
    values = report.findings[point.finding].values if point.finding >= 0 else ()
    drawn = "".join(grid(value_picture([value], report.mesh, bounds)) for value in values)
    inside = drawn + (code(point.details) if point.details else "")
    folded = details(tag("span", "details", FAINT), inside) if inside else ""
    return block("".join(parts) + folded, "margin:6px 0 6px 2px")


def _rest_of_points(points: Sequence[Point]) -> str:
    if not points:
        return ""
    told = [f"{tag('b', text(p.head))} {text(p.cost)}. {text(p.cause)}" for p in points[:_TOLD]]
    return _folded(f"{len(points):,} more to look at", "".join(map(block, told)))


def _sent(rows: Sequence[Row]) -> str:
    if not rows:
        return ""
    timed = any(told.measured for told in rows)
    columns = ("What is sent", *phrases.sent_columns(timed=timed))
    head = row(cell(tag("b", text(name)), "white-space:nowrap") for name in columns)
    # Collectives that are sent together share an instruction: the first of them shows it.
    firsts = {told.first.instruction: told for told in reversed(rows)}
    drawn = [
        _row(told, shows=firsts[told.first.instruction] is told, timed=timed)
        for told in rows[:_TOLD]
    ]
    shown = table([head, *drawn[:_ROWS]])
    rest = ""
    if left := rows[_ROWS:]:
        told = table(drawn[_ROWS:]) + _faint(more(rows[_TOLD:]))
        rest = details(tag("span", text(more(left)), FAINT), told)
    tones = dict.fromkeys(r.tone for r in rows)
    legend = " ".join(chip(said, TONES[tone]) for tone, said in LEGEND.items() if tone in tones)
    return shown + rest + (block(legend) if len(tones) > 1 else "")


def _row(told: Row, *, shows: bool, timed: bool) -> str:
    why = block(text(" ".join((told.because, *told.further)))) + "".join(_known(told))
    if told.first.instruction:
        why += code(clean(told.first.instruction)) if shows else _faint(_SHARED)
    what = details(text(told.where), why, margin="0")
    return row(
        [
            cell(mono(told.name, "white-space:nowrap"), "white-space:nowrap"),
            cell(what),
            cell(told.times, "text-align:right"),
            cell(text(told.sends), "text-align:right;white-space:nowrap"),
            *([cell(text(told.measured), "text-align:right")] if timed else ()),
            cell(chip(told.cause, TONES[told.tone])),
        ]
    )


def _known(told: Row) -> Iterator[str]:
    first = told.first
    facts = [f"{told.array}, {size(first.bytes)} on one device", words.grouping(first)]
    facts += [f"sends {size(first.wire_bytes)} in one execution"]
    for what, spec in (
        (first.producer, first.producer_spec),
        (first.consumer, first.needed_spec),
    ):
        if what and spec is not None:
            facts.append(f"{what} as {spec_text(spec)}")
    yield block(text(clean("; ".join(facts))), FAINT)


def _source(part: CodePart) -> str:
    lines = table(map(_line, part.lines)) + _faint(part.rest)
    marked = count(sum(bool(line.rows) for line in part.lines), "line")
    return _folded(part.name, lines, marked, is_open=len(part.lines) <= _OPEN_LINES)


def _line(line: CodeLine) -> str:
    if line.number is None:
        return row([cell(""), cell("\u22ee"), cell("")])
    badges = ""
    for told in line.rows:
        badges += block(f"{mono(told.head)} {chip(told.sends, TONES[told.tone])}")
    wrap = "pre" if len(line.text) <= _CODE else "pre-wrap"
    source = cell(mono(line.text, f"white-space:{wrap}"))
    return row([line_number(line.number), source, cell(badges + _faint(line.rest))])


# Arrays and facts


def _arrays(content: Content, report: Report) -> Iterator[str]:
    arrays, meshes = pictures(report, Bounds(tiles=_TILES))
    few = len(arrays.pictures) <= _OPEN and not arrays.left
    yield _gallery(phrases.ARRAYS, arrays, is_open=few)
    yield _gallery(phrases.DEVICES, meshes, is_open=False)
    for part in (content.inputs, content.outputs):
        yield _folded(part.label, _table(part), part.summary)


def _gallery(title: str, gallery: Gallery, *, is_open: bool) -> str:
    if not gallery.pictures:
        return ""
    left = _faint(f"and {gallery.left:,} more that are not drawn" if gallery.left else "")
    return _folded(title, "".join(map(grid, gallery.pictures)) + left, is_open=is_open)


def _table(part: Arrays) -> str:
    rest = smaller(part.rows[_ARRAYS:], part.noun)
    return table(row(_array(array)) for array in part.rows[:_ARRAYS]) + _faint(rest)


def _array(array: ArrayRow) -> list[str]:
    return [
        cell(mono(array.name)),
        cell(mono(array.type)),
        cell(text(array.shard)),
        cell(text(array.size), "text-align:right;white-space:nowrap"),
        cell(text("; ".join(array.remarks))),
    ]


def _facts(content: Content) -> str:
    total, *parts = content.memory
    held = text(f"{total}: {', '.join(parts)}" if parts else total)
    facts = [("Memory", held + _peak(content.peak))]
    if content.measured:
        facts.append((phrases.MEASURED, text(" ".join(content.measured))))
    if content.cost:
        assumed = "".join(block(text(sentence)) for sentence in content.assumptions)
        how = details(tag("span", "how it is estimated", FAINT), assumed)
        facts.append(("Time", text(content.cost) + how))
    facts += [("Note", text(note)) for note in content.notes]
    if content.about:
        facts.append(("About", tag("span", text(" ".join(content.about)), FAINT)))
    return table(
        row([cell(tag("b", label), "white-space:nowrap"), cell(body)]) for label, body in facts
    )


def _peak(shown: PeakTable | None) -> str:
    if shown is None or not shown.rows:
        return _faint(f"{shown.when}." if shown else "")
    rows, more = shown.shown(_HELD)
    head = row(cell(tag("b", text(name)), "white-space:nowrap") for name in phrases.HELD_COLUMNS)
    body = table([head, *map(_held, rows)]) + _faint(more) + _faint(shown.rest)
    return details(tag("span", text(shown.when), FAINT), body)


def _held(said: tuple[str, str, str, str]) -> str:
    room, what, shape, line = said
    right = "text-align:right;white-space:nowrap"
    return row([cell(text(room), right), cell(text(what)), cell(mono(shape)), cell(text(line))])


def _texts(report: Report) -> str:
    """Write the programs themselves, each folded."""
    return "".join(_text(name, body) for name, body in report.texts.items() if body)


def _text(name: str, body: str) -> str:
    limit = _PAGE_TEXT
    cut = f"Cut after {limit:,} of {len(body):,} characters: report.texts[{name!r}] has them all."
    lines = count(body.count("\n") + 1, "line")
    inside = (_faint(clean(cut)) if len(body) > limit else "") + code(clean_lines(body[:limit]))
    return _folded(f"{clean(name)} program", inside, f"{lines}, {size(len(body))}")
