"""What the live view says of a report: each text that it shows, made here, beside the data.

The view draws, filters and lays out; it makes no sentence. Texts that thousands of collectives
share are kept once (`Column`), and what the data holds already is referred to: in `{producer}
lies as P('data')` the view fills in the collective's own producer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from shardnb.report import Collective, Mesh, Report, Value, json
from shardnb.report.spec import placed_value, type_text
from shardnb.report.why import arrivals, explain_each
from shardnb.views import content, phrases, words
from shardnb.views.code import Led, led_by, weight
from shardnb.views.entries import Entry, tell
from shardnb.views.formatting import clean, count, dims, size
from shardnb.views.layout import copies

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
    return Said(
        header=content.header(report),
        summary=content.summary(report),
        filtered=_filtered(report),
        memory=content.memory_parts(report.memory, len(report.outputs)),
        about=" ".join(content.about(report)),
        cost=words.bound(report.cost) if report.cost else "",
        assumptions=words.estimated(report.cost) if report.cost else (),
        findings=tuple((one.head, one.text) for one in _findings(report)),
        inputs=_drawn(report.inputs, "input"),
        outputs=_drawn(report.outputs, "output"),
        lines=tuple(_lines(report)),
        arrays=_arrays([*arrays, *earlier], report),
        arrivals=arrivals,
        collectives=_collectives(report),
    )


def _findings(report: Report) -> Iterator[content.Remark]:
    return (content.finding(one, report) for one in report.findings)


def _filtered(report: Report) -> str:
    """Write what the filters let through; the view knows how many, and which part of the bytes."""
    known = phrases.KNOWN_BYTES if words.unknown(report.collectives) else phrases.BYTES
    number = count(len(report.collectives), "collective")
    return phrases.FILTERED.format(shown="{shown}", all=number, share="{share}", bytes=known)


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
        heavy = sorted(by_line, key=lambda line: (-weight(by_line[line]), line))
        yield tuple(_led(line, by_line[line], report) for line in heavy)


def _led(line: int, collectives: Sequence[Collective], report: Report) -> LedLine:
    badges = _badges(collectives, report, **_BADGES)
    marks = _badges(collectives, report, **_MARKS)
    return LedLine(line, badges, () if marks == badges else marks)


def _badges(
    collectives: Sequence[Collective], report: Report, *, single: int, limit: int
) -> tuple[Badge, ...]:
    entries = tell(collectives, report, single=single, limit=limit)
    shown = [Badge(e.members[0].id, e.head, e.sends, _mark(e)) for e in entries.shown]
    if entries.left:
        number = count(len(entries.left), "more collective")
        sent = size(sum(c.least_wire_bytes for c in entries.left))
        first = entries.left[0].id
        shown.append(Badge(first, "", f"and {number}, {sent}", f"and {number}"))
    return tuple(shown)


def _mark(entry: Entry) -> str:
    """Write the badge of an editor: `all-reduce 256 KiB model x4`, `17 all-reduces 3.2 MiB`."""
    first, *others = entry.members
    axes = ", ".join(first.axes) if first.axes is not None else words.grouping(first)
    along = f" {clean(axes)}" if axes else ""
    if not others:
        return f"{clean(first.kind)} {size(first.wire_bytes)}{along}{words.trips(first)}"
    return f"{count(len(entry.members), clean(first.kind))} {words.sent(entry.members)}{along}"


# Arrays


def _arrays(values: Sequence[Value], report: Report) -> dict[str, Column]:
    mesh = report.mesh
    types = [clean(type_text(value)) for value in values]
    edges = len(report.inputs) + len(report.outputs)
    reasons = [""] * edges + list(map(clean, explain_each(report)))
    reasons += [""] * (len(values) - len(reasons))
    why = [
        _referring(reason, {"type": kind, "from": _from(value), "name": clean(value.name)})
        for reason, kind, value in zip(reasons, types, values, strict=True)
    ]
    held = (f"{dims(v.shard_shape)} a device, {size(v.shard_bytes)}" for v in values)
    times = (clean(copies(value, mesh)) for value in values)
    more = ("; ".join(content.remarks(value, mesh)) for value in values)
    return dict(zip(ARRAY_TEXTS, map(_column, (types, held, times, more, why)), strict=True))


def _from(value: Value) -> str:
    """Give the name of what put the first of its axes on a value."""
    return clean(value.origins[0].name) if value.origins else ""


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


def _collectives(report: Report) -> dict[str, Column]:
    found = report.collectives
    if not found:
        return {}
    fields = [_fields(one) for one in found]
    plain = {name: _column(text(one, report) for one in found) for name, text in _PLAIN.items()}
    told = {name: _column(map(_referring, map(say, found), fields)) for name, say in _TOLD.items()}
    return {**plain, **told}


def _fields(one: Collective) -> dict[str, str]:
    """Give what a collective's sentences refer to; first the text that holds the others."""
    texts = {"why": one.why.strip(), "producer": one.producer, "consumer": one.consumer}
    return {name: clean(text or "") for name, text in texts.items()}


def _at(one: Collective, report: Report) -> str:
    phase = f", {clean(one.phase)}" if one.phase else ""
    return words.at(words.home(one, report), report) + words.inside((one,)) + phase


def _because(one: Collective) -> str:
    because = words.because(one)
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
