"""A report as HTML: a fragment for notebooks, and a page of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from shardnb.report import Collective, Mesh, Report, Value
from shardnb.report.spec import spec_text
from shardnb.terms.causes import ASKERS
from shardnb.views import page, palette, phrases, typed, words
from shardnb.views.code import Line, Part
from shardnb.views.content import Content, Remark, Row, Table, content_of
from shardnb.views.entries import Entry
from shardnb.views.formatting import clean, count, size
from shardnb.views.grids import grid
from shardnb.views.layout import Bounds
from shardnb.views.markup import (
    FAINT,
    block,
    cell,
    chip,
    code,
    details,
    mono,
    row,
    table,
    tag,
    text,
)
from shardnb.views.picture import Gallery, pictures, value_picture

_TILES = 1800
_OPEN = 8
_SHORT = 40
_CODE = 56
_RING = "what one device sends, by the ring formula; the hardware may do it another way"
_MEMBERS = 20
_TYPED = 200
_FRAGMENT_TEXTS = 100_000
_PAGE_TEXT = 1_000_000
_LAYOUT = "font: 14px/1.5 system-ui, sans-serif; max-width: 900px; overflow-wrap: anywhere"


def render(report: Report) -> str:
    """Write a report as an HTML fragment that lives in any notebook.

    It has tables, details and inline styles only, and says in text what it shows in colour.
    """
    return _fragment(report, _FRAGMENT_TEXTS // max(1, len(report.texts)))


def save(report: Report, path: str | Path) -> Path:
    """Write a report as one HTML file that needs no JavaScript and no network; give its path."""
    target = Path(path)
    page = _PAGE.format(title=text(clean(report.title)), body=_fragment(report, _PAGE_TEXT))
    target.write_text(page, encoding="utf-8")
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
    content, users = content_of(report), _first_users(report)
    parts = [
        _header(content),
        _code(content),
        block(tag("b", text(content.summary)), "margin: 10px 0 4px 0"),
        *(_entry(entry, users) for entry in content.entries.shown),
        _rest(content.entries.rest),
        _arrays(content),
        _facts(content, report.mesh),
        _pictures(report),
        _typed(report),
        _values(content.values, content.reasons),
        _texts(report, text_limit),
    ]
    return tag("div", "".join(parts), _LAYOUT)


def _rest(sentence: str) -> str:
    return block(text(sentence), FAINT) if sentence else ""


def _header(content: Content) -> str:
    first, *others = content.header
    tail = "".join(f" \u00b7 {text(part)}" for part in others)
    return block(tag("b", text(first)) + tail, "margin: 0 0 8px 0")


def _code(content: Content) -> str:
    parts = [_part(part, named=i > 0) for i, part in enumerate(content.code)]
    return "".join(parts)


def _part(part: Part, *, named: bool) -> str:
    name = block(text(part.name), FAINT) if named else ""
    return name + table([_line(line) for line in part.lines]) + _rest(part.rest)


def _line(line: Line) -> str:
    if line.number is None:
        return row([cell(""), cell("\u22ee"), cell("")])
    badges = "".join(block(_badge(entry)) for entry in line.entries.shown)
    number = cell(str(line.number), f"text-align: right; white-space: nowrap; {FAINT}")
    wrap = "pre" if len(line.text) <= _CODE else "pre-wrap"
    source = cell(mono(line.text, f"white-space: {wrap}"))
    return row([number, source, cell(badges + _rest(line.entries.rest))])


def _badge(entry: Entry) -> str:
    colours = ASKERS[words.asked(entry.members[0])].colours or palette.OTHER
    sends = tag("span", text(entry.sends), "white-space: nowrap", title=_RING)
    return (
        f"{mono(entry.head, _kept(entry.head))} &nbsp; {sends} &nbsp; {chip(entry.cause, colours)}"
    )


def _entry(entry: Entry, users: dict[str, int]) -> str:
    # A sentence of its own names the collective and its line already.
    whole = entry.because.startswith(entry.name) and len(entry.members) == 1
    because = entry.because.removeprefix(entry.name) if whole else entry.because
    name = mono(entry.head, "font-weight: 600") + ("" if whole else f" {text(entry.at)}")
    amount = f" ({text(entry.sends)})" if not entry.placed or len(entry.members) > 1 else ""
    said = text(" ".join((because, *entry.further)))
    fixes = "".join(block(f"Try: {_fix(fix)}", "margin-left: 32px") for fix in entry.fixes)
    lead = f"{name}{amount}{'' if whole else ': '}"
    return details(f"{lead}{said}", _inside(entry, users)) + fixes


def _fix(fix: str) -> str:
    edit, gap, effect = fix.rpartition("  (")
    return f"{mono(edit)} {text(gap.strip() + effect)}"


def _inside(entry: Entry, users: dict[str, int]) -> str:
    shown = entry.members[:_MEMBERS]
    parts = [_member(member, users, alone=len(entry.members) == 1) for member in shown]
    left = len(entry.members) - len(shown)
    inside = "".join(parts) + _rest(f"and {left:,} more" if left else "")
    return block(inside, "margin-left: 32px")


def _member(member: Collective, users: dict[str, int], *, alone: bool) -> str:
    title = "" if alone else block(mono(f"{words.array(member)} {words.sends([member])}"))
    facts = [
        row([cell(text(name), FAINT), cell(text(clean(value)))]) for name, value in _known(member)
    ]
    return title + (table(facts) if alone else "") + _instruction(member, users)


def _first_users(report: Report) -> dict[str, int]:
    """Give for each instruction the first collective that it holds; combined ones share it."""
    return {c.instruction: c.id for c in reversed(report.collectives)}


def _instruction(member: Collective, users: dict[str, int]) -> str:
    if not member.instruction:
        return ""
    if users[member.instruction] != member.id:
        return _rest("Its instruction is that of the first which is sent with it.")
    return code(clean(member.instruction))


def _known(member: Collective) -> Iterable[tuple[str, str]]:
    ring = f"{size(member.wire_bytes)} for one execution, by the ring formula"
    result = f"{words.array(member)}, {size(member.bytes)} on one device"
    specs = [
        ("moves", member.producer, member.producer_spec),
        ("for", member.consumer, member.needed_spec),
    ]
    yield "result", result
    yield "sent", ring
    unknown = member.trips is None and not member.least_trips
    yield "runs", "an unknown number of times" if unknown else words.trips(member).strip() or "x1"
    yield "groups", words.grouping(member)
    for name, what, spec in specs:
        if what:
            yield name, what if spec is None else f"{what} as {spec_text(spec)}"
    if member.within:
        yield "inside", ", ".join(member.within)
    if member.op_name:
        yield "operation", member.op_name


def _arrays(content: Content) -> str:
    rows = [*_rows("inputs", content.inputs), *_rows("outputs", content.outputs)]
    return table(rows, "margin-top: 12px")


def _rows(label: str, arrays: Table) -> Iterable[str]:
    head = _label(label)
    if not arrays.rows and not arrays.rest:
        yield row([head, cell("none", colspan="5")])
    for i, array in enumerate(arrays.rows):
        yield row([head if i == 0 else cell(""), *_array(array)])
    if arrays.rest:
        first = cell("") if arrays.rows else head
        yield row([first, cell(text(arrays.rest), FAINT, colspan="5")])


def _array(array: Row) -> list[str]:
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


def _facts(content: Content, mesh: Mesh) -> str:
    rows = [_fact("memory", text(content.memory))]
    if content.cost:
        rows.append(_fact("time", _cost(content)))
    rows += [_fact("finding", _finding(finding, mesh)) for finding in content.findings]
    rows += [_fact("note", text(note)) for note in content.notes]
    if content.about:
        rows.append(_fact("about", text(" ".join(content.about)), FAINT))
    return table(rows)


def _cost(content: Content) -> str:
    said = "".join(block(text(sentence)) for sentence in content.assumptions)
    return text(content.cost) + details(tag("span", "how it is estimated", FAINT), said)


def _fact(label: str, body: str, style: str = "") -> str:
    return row([_label(label), cell(body, style)])


def _label(label: str) -> str:
    return cell(tag("b", label), "white-space: nowrap; min-width: 58px")


def _finding(finding: Remark, mesh: Mesh) -> str:
    head = f"{tag('b', text(finding.head))}: " if finding.head else ""
    more = details(tag("span", "details", FAINT), code(finding.details)) if finding.details else ""
    return head + text(finding.text) + _drawn(finding.values, mesh) + more


def _drawn(values: Sequence[Value], mesh: Mesh) -> str:
    """Draw arrays side by side."""
    bounds = Bounds(tiles=_TILES // 8)
    return block("".join(grid(value_picture([value], mesh, bounds)) for value in values))


def _pictures(report: Report) -> str:
    arrays, meshes = pictures(report, Bounds(tiles=_TILES))
    return _gallery(phrases.ARRAYS, arrays) + _gallery("Which devices exchange", meshes)


def _gallery(title: str, gallery: Gallery) -> str:
    drawn = gallery.pictures
    if not drawn:
        return ""
    more = _rest(f"and {gallery.left:,} more that are not drawn" if gallery.left else "")
    summary = tag("span", text(title), "font-weight: 600")
    return details(summary, "".join(map(grid, drawn)) + more, is_open=len(drawn) <= _OPEN)


def _typed(report: Report) -> str:
    """Give the placement in the type of each line, where types have one."""
    if not report.typed:
        return ""
    summary = tag("span", phrases.TYPES, "font-weight: 600")
    return details(summary, page.html(typed.page(report.typed, report.sources, _TYPED)))


def _values(values: Table, reasons: tuple[str, ...]) -> str:
    if not values.rows:
        return ""
    rows = [row(_array(array)) for array in values.rows]
    summary = tag("span", "Arrays inside the program, and why each lies so", "font-weight: 600")
    why = "".join(block(text(reason)) for reason in reasons)
    return details(summary, table(rows) + _rest(values.rest) + why)


def _texts(report: Report, limit: int) -> str:
    return "".join(_text(name, body, limit) for name, body in report.texts.items() if body)


def _text(name: str, body: str, limit: int) -> str:
    shown = body[:limit]
    lines = count(body.count("\n") + 1, "line")
    note = f"Cut after {limit:,} of {len(body):,} characters: report.texts[{name!r}] has them all."
    cut = _rest(clean(note)) if len(body) > limit else ""
    summary = f"{tag('b', text(clean(name)))} program, {lines}, {size(len(body))}"
    look = "max-height: 420px; overflow-y: auto"
    lines_of = "\n".join(map(clean, shown.splitlines()))
    return details(summary, cut + code(lines_of, look))
