"""What the live view says of a report: each text that it shows, made here, beside the data.

The view draws, filters and lays out; it makes no sentence. Texts that thousands of collectives
share are kept once (`Column`), and what the data holds already is referred to: in `{producer}
lies as P('data')` the view fills in the collective's own producer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import repeat
from typing import Any

import msgspec

from shardnb.report import Collective, Mesh, Report, Value, json
from shardnb.report.spec import placed_value, type_text
from shardnb.report.why import arrivals, explain_each
from shardnb.views import content, html, phrases, text, words
from shardnb.views.code import Led, led_by
from shardnb.views.entries import Entry, tell, weight
from shardnb.views.formatting import clean, count, dims, size
from shardnb.views.layout import copies

MIME = "application/vnd.shardnb.report.v1+json"

# A shorter text than its reference is kept as it is.
_REFERRED = 5
# How many inputs, or outputs, are drawn at once.
_DRAWN = 40
# Badges behind a line: in the report, and in the editor, where there is less room.
_BADGES = {"single": 4, "limit": 2}
_MARKS = {"single": 2, "limit": 2}


class Column(msgspec.Struct, frozen=True, omit_defaults=True):
    """A text for each of many things: `texts` that differ, and by `at` which of them each has.

    `at` has their numbers with spaces between: in a notebook a list takes a line for each. Without
    it, all have the first.
    """

    texts: tuple[str, ...]
    at: str = ""


class Badge(msgspec.Struct, frozen=True, omit_defaults=True):
    """What stands behind a line: the collective `id`, or several that it stands for.

    `head` and `sends` are its texts in the report, `mark` the short one in the editor.
    """

    id: int
    head: str
    sends: str
    mark: str


class LedLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line and what it led to; `marks` are the editor's badges, where they are others."""

    line: int
    badges: tuple[Badge, ...]
    marks: tuple[Badge, ...] = ()


class Drawn(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of many inputs or outputs those to draw at once, and a text on the others; "" for all."""

    kept: tuple[int, ...] = ()
    rest: str = ""


class Said(msgspec.Struct, frozen=True, omit_defaults=True):
    """Every text of the live view.

    `lines` has the lines of each source, the heaviest first. `arrays` has the texts of inputs,
    outputs, values, the findings' arrays and the earlier states of values, in this order.
    `arrivals` has for each value the steps of Shardy's that brought it the axes of its spec: 0
    for one that was there before, `?` where they are not known, "" where all were there.
    """

    header: tuple[str, ...]
    summary: str
    filtered: str
    memory: tuple[str, ...]
    about: str
    cost: str = ""
    assumptions: tuple[str, ...] = ()
    findings: tuple[tuple[str, str], ...] = ()
    inputs: Drawn = Drawn()
    outputs: Drawn = Drawn()
    lines: tuple[tuple[LedLine, ...], ...] = ()
    arrays: dict[str, Column] = {}
    arrivals: Column | None = None
    collectives: dict[str, Column] = {}


def mimebundle(report: Report) -> dict[str, Any]:
    """Give what a notebook keeps, to be shown without a kernel: text, HTML, and the live view."""
    return {
        "text/plain": text.render(report),
        "text/html": html.render(report),
        MIME: to_data(report),
    }


def to_data(report: Report) -> dict[str, Any]:
    """Give a report's data, without the programs' texts, with what is said of it."""
    return {**json.to_data(report, texts=False), "said": msgspec.to_builtins(said_of(report))}


def to_json(report: Report) -> str:
    """Give the same as JSON."""
    return json.encoded(to_data(report))


def said_of(report: Report) -> Said:
    """Put a report into the words of the live view."""
    arrays = [*report.inputs, *report.outputs, *report.values]
    arrays += [value for finding in report.findings for value in finding.values]
    arrivals, earlier = _history(report)
    remarks = (content.finding(finding, report) for finding in report.findings)
    # The view knows how many the filters let through, and which part of the bytes.
    known = phrases.KNOWN_BYTES if words.unknown(report.collectives) else phrases.BYTES
    number = count(len(report.collectives), "collective")
    filtered = phrases.FILTERED.format(shown="{shown}", all=number, share="{share}", bytes=known)
    return Said(
        header=content.header(report),
        summary=content.summary(report),
        filtered=filtered,
        memory=content.memory_parts(report.memory, len(report.outputs)),
        about=" ".join(content.about(report)),
        cost=words.bound(report.cost) if report.cost else "",
        assumptions=words.estimated(report.cost) if report.cost else (),
        findings=tuple((remark.head, remark.text) for remark in remarks),
        inputs=_drawn(report.inputs, "input"),
        outputs=_drawn(report.outputs, "output"),
        lines=tuple(_lines(report)),
        arrays=_arrays([*arrays, *earlier], report),
        arrivals=arrivals,
        collectives=_collectives(report),
    )


def _drawn(values: Sequence[Value], noun: str) -> Drawn:
    """Choose the heaviest where there are many."""
    heavy = sorted(range(len(values)), key=lambda i: -values[i].shard_bytes)
    left = heavy[_DRAWN:]
    if not left:
        return Drawn()
    held = sum(values[i].shard_bytes for i in left)
    return Drawn(tuple(sorted(heavy[:_DRAWN])), content.smaller(len(left), held, noun))


# Lines


def _lines(report: Report) -> Iterator[tuple[LedLine, ...]]:
    led = led_by(report)
    for index, _ in enumerate(report.sources):
        by_line: Led = led.get(index, {})
        lines = []
        for line in sorted(by_line, key=lambda line: (-weight(by_line[line]), line)):
            badges = _badges(by_line[line], report, **_BADGES)
            marks = _badges(by_line[line], report, **_MARKS)
            lines.append(LedLine(line, badges, () if marks == badges else marks))
        yield tuple(lines)


def _badges(
    collectives: Sequence[Collective], report: Report, *, single: int, limit: int
) -> tuple[Badge, ...]:
    entries = tell(collectives, report, single=single, limit=limit)
    shown = [Badge(e.members[0].id, e.head, e.sends, _mark(e)) for e in entries.shown]
    if left := entries.left:
        number = count(len(left), "more collective")
        sent = size(sum(c.least_wire_bytes for c in left))
        shown.append(Badge(left[0].id, "", f"and {number}, {sent}", f"and {number}"))
    return tuple(shown)


def _mark(entry: Entry) -> str:
    """Write the badge of an editor: `all-reduce 256 KiB model x4`, `17 all-reduces 3.2 MiB`."""
    first = entry.members[0]
    axes = ", ".join(first.axes) if first.axes is not None else words.grouping(first)
    along = f" {clean(axes)}" if axes else ""
    if len(entry.members) == 1:
        return f"{clean(first.kind)} {size(first.wire_bytes)}{along}{words.trips(first)}"
    return f"{count(len(entry.members), clean(first.kind))} {words.sent(entry.members)}{along}"


# Arrays


def _arrays(values: Sequence[Value], report: Report) -> dict[str, Column]:
    # Inputs and outputs come first, and have no reasons; nor have the arrays after the values.
    edges = len(report.inputs) + len(report.outputs)
    reasons = [*[""] * edges, *map(clean, explain_each(report)), *repeat("", len(values))]
    rows = []
    for value, reason in zip(values, reasons, strict=False):
        held = f"{dims(value.shard_shape)} a device, {size(value.shard_bytes)}"
        remarks = "; ".join(content.remarks(value, report.mesh))
        kind, name = clean(type_text(value)), clean(value.name)
        # What put the first of its axes on the value.
        origin = clean(value.origins[0].name) if value.origins else ""
        why = _referring(reason, {"type": kind, "from": origin, "name": name})
        rows.append((kind, held, clean(copies(value, report.mesh)), remarks, why))
    columns = zip(*rows, strict=True) if rows else [()] * len(ARRAY_TEXTS)
    return dict(zip(ARRAY_TEXTS, map(_column, columns), strict=True))


def _history(report: Report) -> tuple[Column | None, list[Value]]:
    """Give when each value got its axes, and how it lay from each of these steps on."""
    if not any(origin.steps for value in report.values for origin in value.origins):
        return None, []
    earlier: list[Value] = []
    texts: list[str] = []
    for index, value in enumerate(report.values):
        when = arrivals(report, index)
        known = {step for step in when.values() if step is not None}
        if len(known) < len(set(when.values())):
            texts.append("?")
        elif known <= {0}:
            texts.append("")
        else:
            axes = (axis for axes in value.spec or () for axis in axes)
            texts.append(" ".join(str(when[axis]) for axis in axes))
            earlier += [_since(value, when, step, report.mesh) for step in sorted({0, *known})]
    return _column(texts), earlier


def _since(value: Value, when: Mapping[str, int | None], step: int, mesh: Mesh) -> Value:
    """Give a value as it was after a step: with the axes of its spec that had come."""
    given = value.spec or ()
    spec = tuple(tuple(axis for axis in axes if (when[axis] or 0) <= step) for axes in given)
    placed = placed_value(value.name, value.dtype, value.shape, spec, mesh)
    return replace(value, spec=spec, shard_shape=placed.shard_shape, propagated=None)


# Collectives


def _at(collective: Collective, report: Report) -> str:
    place = words.at(words.home(collective, report), report)
    return place + words.inside((collective,)) + words.phase(collective)


def _home(collective: Collective, report: Report) -> str:
    """Give the number of the frame that it is told at; `-` where no frame's line is known."""
    place = words.home(collective, report)
    return "-" if place is None else str(collective.frames.index(place))


def _because(collective: Collective) -> str:
    because = words.because(collective)
    return because[:1].upper() + because[1:]


_PLAIN: dict[str, Callable[[Collective, Report], str]] = {
    "name": lambda one, _: clean(one.kind) + words.over(one),
    "array": lambda one, _: words.array(one),
    "size": lambda one, _: size(one.wire_bytes),
    "trips": lambda one, _: words.trips(one),
    "asked": lambda one, _: words.asked(one),
    "cause": lambda one, _: words.cause(one),
    "grouping": lambda one, _: words.grouping(one),
    "at": _at,
    "home": _home,
    "effects": lambda one, _: "\n".join(map(words.effect, one.fixes or ())),
}
# These name the operations around the collective, which the data holds already.
_TOLD: dict[str, Callable[[Collective], str]] = {
    "because": _because,
    "further": lambda one: " ".join(words.further(one)),
    "made": words.made,
    "used": words.used,
}


ARRAY_TEXTS = ("type", "held", "copies", "remarks", "why")
COLLECTIVE_TEXTS = (*_PLAIN, *_TOLD)


def _collectives(report: Report) -> dict[str, Column]:
    found = report.collectives
    if not found:
        return {}
    # First the text that holds the others.
    texts = ({"why": c.why.strip(), "producer": c.producer, "consumer": c.consumer} for c in found)
    fields = [{name: clean(text or "") for name, text in each.items()} for each in texts]
    plain = {name: _column(text(c, report) for c in found) for name, text in _PLAIN.items()}
    told = {name: _column(map(_referring, map(say, found), fields)) for name, say in _TOLD.items()}
    return {**plain, **told}


# Texts that are kept once


def _column(texts: Iterable[str]) -> Column:
    numbers: dict[str, int] = {}
    at = [numbers.setdefault(text, len(numbers)) for text in texts]
    return Column(tuple(numbers), " ".join(map(str, at)) if len(numbers) > 1 else "")


def _referring(text: str, fields: Mapping[str, str]) -> str:
    """Replace what the data holds by references, as `str.format` reads them.

    Clean texts hold no characters of private use: these stand for references until braces that
    are the text's own have been doubled.
    """
    for number, value in enumerate(fields.values()):
        if len(value) >= _REFERRED:
            text = text.replace(value, chr(0xE000 + number))
    text = text.replace("{", "{{").replace("}", "}}")
    for number, name in enumerate(fields):
        text = text.replace(chr(0xE000 + number), f"{{{name}}}")
    return text
