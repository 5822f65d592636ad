"""A report as HTML: a fragment for notebooks, and a page of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from shardnb.report import Collective, Mesh, Report
from shardnb.report.spec import spec_text
from shardnb.terms.causes import ASKERS
from shardnb.views import page, palette, phrases, typed, words
from shardnb.views.code import CodeLine
from shardnb.views.content import ArrayRow, ArrayTable, Content, Remark, content_of
from shardnb.views.entries import Entry
from shardnb.views.formatting import clean, clean_lines, count, size
from shardnb.views.grids import grid
from shardnb.views.layout import Bounds
from shardnb.views.markup import (
    FAINT,
    PAGE,
    block,
    cell,
    chip,
    code,
    details,
    escaped,
    line_number,
    mono,
    row,
    table,
    tag,
    text,
)
from shardnb.views.picture import Gallery, pictures, value_picture

# A notebook keeps the fragment: each tile weighs about 200 bytes, and texts have no end.
_TILES = 1800
_FRAGMENT_TEXTS = 100_000
_PAGE_TEXT = 1_000_000
# Up to so many pictures are open at once.
_OPEN = 8
# Characters that stay on one line: of a cell, of a line of code beside its badges.
_SHORT = 40
_CODE = 56
# Collectives of a group, and lines of the typed view, that are told.
_MEMBERS = 20
_TYPED = 200
_RING = "what one device sends, by the ring formula; the hardware may do it another way"


def render(report: Report) -> str:
    """Write a report as an HTML fragment that lives in any notebook.

    It has tables, details and inline styles only, and says in text what it shows in colour.
    """
    return _fragment(report, _FRAGMENT_TEXTS // max(1, len(report.texts)))


def save(report: Report, path: str | Path) -> Path:
    """Write a report as one HTML file that needs no JavaScript and no network; give its path."""
    target = Path(path)
    filled = _PAGE.format(title=escaped(report.title), body=_fragment(report, _PAGE_TEXT))
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
body {{ margin: 24px auto; padding: 0 20px; max-width: 900px; background: #fff; color: #1c1c1c; }}
@media (prefers-color-scheme: dark) {{ body {{ background: #181a1d; color: #e6e6e6; }} }}
</style>
</head>
<body>
{body}
</body>
</html>
"""


def _fragment(report: Report, text_limit: int) -> str:
    content = content_of(report)
    # Collectives that are sent together share an instruction: the first of them shows it.
    first_users = {c.instruction: c.id for c in reversed(report.collectives)}
    first, *others = content.header
    devices = "".join(f" \u00b7 {text(part)}" for part in others)
    arrays, meshes = pictures(report, Bounds(tiles=_TILES))
    parts = [block(tag("b", text(first)) + devices, "margin: 0 0 8px 0")]
    for i, source in enumerate(content.code):
        parts.append(block(text(source.name), FAINT) if i else "")
        parts += [table(map(_line, source.lines)), _rest(source.rest)]
    parts += [
        block(tag("b", text(content.summary)), "margin: 10px 0 4px 0"),
        *(_entry(entry, first_users) for entry in content.entries.shown),
        _rest(content.entries.rest),
        table(
            [*_rows("inputs", content.inputs), *_rows("outputs", content.outputs)],
            "margin-top: 12px",
        ),
        table(_facts(content, report.mesh)),
        _gallery(phrases.ARRAYS, arrays),
        _gallery("Which devices exchange", meshes),
    ]
    if report.typed:
        parts.append(
            _folded(phrases.TYPES, page.html(typed.page(report.typed, report.sources, _TYPED)))
        )
    if content.values.rows:
        values = table(row(_array(array)) for array in content.values.rows)
        why = "".join(block(text(reason)) for reason in content.reasons)
        title = "Arrays inside the program, and why each lies so"
        parts.append(_folded(title, values + _rest(content.values.rest) + why))
    parts += [_text(name, body, text_limit) for name, body in report.texts.items() if body]
    return tag("div", "".join(parts), PAGE)


def _rest(sentence: str) -> str:
    return block(text(sentence), FAINT) if sentence else ""


def _folded(title: str, body: str, *, is_open: bool = False) -> str:
    return details(tag("span", text(title), "font-weight: 600"), body, is_open=is_open)


# Lines and collectives


def _line(line: CodeLine) -> str:
    if line.number is None:
        return row([cell(""), cell("\u22ee"), cell("")])
    badges = ""
    for entry in line.entries.shown:
        colours = ASKERS[words.asked(entry.members[0])].colours or palette.OTHER
        sends = tag("span", text(entry.sends), "white-space: nowrap", title=_RING)
        head = mono(entry.head, _kept(entry.head))
        badges += block(f"{head} &nbsp; {sends} &nbsp; {chip(entry.cause, colours)}")
    wrap = "pre" if len(line.text) <= _CODE else "pre-wrap"
    source = cell(mono(line.text, f"white-space: {wrap}"))
    return row([line_number(line.number), source, cell(badges + _rest(line.entries.rest))])


def _entry(entry: Entry, first_users: dict[str, int]) -> str:
    alone = len(entry.members) == 1
    head = mono(entry.head, "font-weight: 600")
    lead, because = f"{head} {text(entry.at)}{text(entry.lead)}: ", entry.because
    if entry.is_told_whole:
        lead, because = head + text(entry.lead), because.removeprefix(entry.name)
    inside = "".join(_member(c, first_users, alone=alone) for c in entry.members[:_MEMBERS])
    left = len(entry.members) - _MEMBERS
    inside += _rest(f"and {left:,} more" if left > 0 else "")
    fixes = ""
    for fix in entry.fixes:
        edit, gap, effect = fix.rpartition("  (")
        fixes += block(f"Try: {mono(edit)} {text(gap.strip() + effect)}", "margin-left: 32px")
    said = lead + text(" ".join((because, *entry.further)))
    return details(said, block(inside, "margin-left: 32px")) + fixes


def _member(member: Collective, first_users: dict[str, int], *, alone: bool) -> str:
    if alone:
        rows = ((cell(text(name), FAINT), cell(escaped(value))) for name, value in _known(member))
        told = table(map(row, rows))
    else:
        told = block(mono(f"{words.array(member)} {words.sends([member])}"))
    if not member.instruction:
        return told
    if first_users[member.instruction] != member.id:
        return told + _rest("Its instruction is that of the first which is sent with it.")
    return told + code(clean(member.instruction))


def _known(member: Collective) -> Iterator[tuple[str, str]]:
    yield "result", f"{words.array(member)}, {size(member.bytes)} on one device"
    yield "sent", f"{size(member.wire_bytes)} for one execution, by the ring formula"
    unknown = member.trips is None and not member.least_trips
    yield "runs", "an unknown number of times" if unknown else words.trips(member).strip() or "x1"
    yield "groups", words.grouping(member)
    for name, what, spec in (
        ("moves", member.producer, member.producer_spec),
        ("for", member.consumer, member.needed_spec),
    ):
        if what:
            yield name, what if spec is None else f"{what} as {spec_text(spec)}"
    if member.within:
        yield "inside", ", ".join(member.within)
    if member.op_name:
        yield "operation", member.op_name


# Arrays and facts


def _rows(label: str, arrays: ArrayTable) -> Iterator[str]:
    head = _label(label)
    if not arrays.rows and not arrays.rest:
        yield row([head, cell("none", colspan="5")])
    for i, array in enumerate(arrays.rows):
        yield row([cell("") if i else head, *_array(array)])
    if arrays.rest:
        first = cell("") if arrays.rows else head
        yield row([first, cell(text(arrays.rest), FAINT, colspan="5")])


def _array(array: ArrayRow) -> list[str]:
    return [
        cell(mono(array.name), _kept(array.name)),
        cell(mono(array.type), _kept(array.type)),
        cell(text(array.shard), _kept(array.shard)),
        cell(text(array.size), "text-align: right; white-space: nowrap"),
        cell(text("; ".join(array.remarks)), "min-width: 120px; overflow-wrap: break-word"),
    ]


def _kept(value: str) -> str:
    """Keep a short text on one line."""
    return "white-space: nowrap" if len(value) <= _SHORT else ""


def _facts(content: Content, mesh: Mesh) -> Iterator[str]:
    facts = [("memory", text(content.memory))]
    if content.cost:
        assumed = "".join(block(text(sentence)) for sentence in content.assumptions)
        how = details(tag("span", "how it is estimated", FAINT), assumed)
        facts.append(("time", text(content.cost) + how))
    facts += [("finding", _finding(found, mesh)) for found in content.findings]
    facts += [("note", text(note)) for note in content.notes]
    for label, body in facts:
        yield row([_label(label), cell(body)])
    if content.about:
        yield row([_label("about"), cell(text(" ".join(content.about)), FAINT)])


def _label(label: str) -> str:
    return cell(tag("b", label), "white-space: nowrap; min-width: 58px")


def _finding(found: Remark, mesh: Mesh) -> str:
    head = f"{tag('b', text(found.head))}: " if found.head else ""
    bounds = Bounds(tiles=_TILES // 8)
    drawn = block("".join(grid(value_picture([value], mesh, bounds)) for value in found.values))
    more = details(tag("span", "details", FAINT), code(found.details)) if found.details else ""
    return head + text(found.text) + drawn + more


def _gallery(title: str, gallery: Gallery) -> str:
    drawn = gallery.pictures
    if not drawn:
        return ""
    more = _rest(f"and {gallery.left:,} more that are not drawn" if gallery.left else "")
    return _folded(title, "".join(map(grid, drawn)) + more, is_open=len(drawn) <= _OPEN)


def _text(name: str, body: str, limit: int) -> str:
    cut = f"Cut after {limit:,} of {len(body):,} characters: report.texts[{name!r}] has them all."
    lines = count(body.count("\n") + 1, "line")
    summary = f"{tag('b', escaped(name))} program, {lines}, {size(len(body))}"
    shown = code(clean_lines(body[:limit]), "max-height: 420px; overflow-y: auto")
    return details(summary, (_rest(clean(cut)) if len(body) > limit else "") + shown)
