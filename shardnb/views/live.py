"""What the live view says of a report: each text that it shows, made here, beside the data.

The view draws, filters and lays out; it makes no sentence. Texts that thousands of collectives
share are kept once (`Column`), and what the data holds already is referred to: in `{producer}
is sharded as P('data')` the view fills in the collective's own producer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import repeat
from typing import Any, Literal

import msgspec

from shardnb.report import Collective, Mesh, Report, Value, json
from shardnb.report.spec import placed_value, type_text
from shardnb.report.why import arrivals, explain_each
from shardnb.views import html, measured, text, words
from shardnb.views.arrays import remarks
from shardnb.views.code import Led, led_by
from shardnb.views.content import Arrays, content_of
from shardnb.views.formatting import clean, count, dims, size
from shardnb.views.layout import copies
from shardnb.views.memory import PeakTable
from shardnb.views.palette import Tone
from shardnb.views.points import Point
from shardnb.views.sent import Row, more, rows_of, weight

MIME = "application/vnd.shardnb.report.v1+json"

View = Literal["full", "brief"]

# A shorter text than its reference is kept as it is.
_REFERRED = 5
# Badges after a line: in the report, and in the editor, where there is less room.
_BADGES = 4
_MARKS = 2
# Rows of what is alive at the peak that a reader takes in; the report has the others.
_HELD = 24


class Column(msgspec.Struct, frozen=True, omit_defaults=True):
    """A text for each of many things: `texts` that differ, and by `at` which of them each has.

    `at` has their numbers with spaces between: in a notebook a list takes a line for each. Without
    it, all have the first.
    """

    texts: tuple[str, ...]
    at: str = ""


class Badge(msgspec.Struct, frozen=True, omit_defaults=True):
    """The badges after a line: the collectives with these `ids`, with spaces between.

    `head` and `sends` are its texts in the report, `mark` the short one in the editor.
    """

    ids: str
    head: str
    sends: str
    mark: str
    cause: str = ""
    tone: Tone = "neutral"


class LedLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line and what it led to; `marks` are the editor's badges, where they are others."""

    line: int
    badges: tuple[Badge, ...]
    marks: tuple[Badge, ...] = ()


class SaidEdit(msgspec.Struct, frozen=True, omit_defaults=True):
    """An edit to copy, what it changes, and whether it was compiled."""

    code: str
    effect: str
    compiled: bool = True


class SaidPoint(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something to look at; `ids` are its collectives, `finding` the place of its finding."""

    head: str
    cost: str
    cause: str
    tone: Tone
    ids: str = ""
    edits: tuple[SaidEdit, ...] = ()
    finding: int = -1


class SaidRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """Equal collectives, with these `ids`.

    Of a program that was measured, `seconds` and `bytes` per run are what rows are sorted by.
    """

    ids: str
    name: str
    what: str
    times: str
    sends: str
    cause: str
    tone: Tone = "neutral"
    measured: str = ""
    seconds: float = 0.0
    bytes: int = 0


class SaidArrays(msgspec.Struct, frozen=True, omit_defaults=True):
    """Inputs, outputs or values: a line on all, and for each row of equal ones their numbers."""

    summary: str
    names: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()
    members: tuple[str, ...] = ()


class SaidPeak(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is alive at the peak: when that is, a row for each kind of values, what is left over."""

    when: str
    rows: tuple[tuple[str, str, str, str], ...]
    rest: str = ""


class Said(msgspec.Struct, frozen=True, omit_defaults=True):
    """Every text of the live view.

    `lines` has the lines of each source, the heaviest first. `arrays` has the texts of inputs,
    outputs, values, the findings' arrays and the earlier states of values, in this order.
    `arrivals` has for each value the steps of Shardy's that brought it the axes of its spec: 0
    for one that was there before, `?` where they are not known, "" where all were there.
    `measured` is what was measured of a run, and `timeline` says which run is drawn.
    """

    header: tuple[str, ...]
    verdict: str
    about: str
    memory: tuple[str, ...]
    inputs: SaidArrays
    outputs: SaidArrays
    values: SaidArrays
    peak: SaidPeak | None = None
    changed: str = ""
    outcomes: tuple[tuple[str, bool | None], ...] = ()
    points: tuple[SaidPoint, ...] = ()
    rows: tuple[SaidRow, ...] = ()
    measured: str = ""
    timeline: str = ""
    cost: str = ""
    assumptions: tuple[str, ...] = ()
    lines: tuple[tuple[LedLine, ...], ...] = ()
    arrays: dict[str, Column] = {}
    arrivals: Column | None = None
    collectives: dict[str, Column] = {}


def mimebundle(report: Report, view: View = "full") -> dict[str, Any]:
    """Return what a notebook keeps, to be shown without a kernel: text, HTML, and the live view.

    Of a `brief` one the live view shows the verdict and what to look at, and the rest on demand.
    """
    shown = {} if view == "brief" else {"text/html": html.render(report)}
    kept = {"view": view} if view == "brief" else {}
    return {
        "text/plain": text.render(report, view),
        **shown,
        MIME: {**json.packed(to_data(report)), **kept},
    }


def to_data(report: Report) -> dict[str, Any]:
    """Return a report's data, without the programs' texts, with what is said of it."""
    return {**json.to_data(report, texts=False), "said": msgspec.to_builtins(said_of(report))}


def to_json(report: Report) -> str:
    """Return the same as JSON."""
    return json.encoded(to_data(report))


def said_of(report: Report) -> Said:
    """Put a report into the words of the live view."""
    content = content_of(report)
    values = [*report.inputs, *report.outputs, *report.values]
    values += [value for finding in report.findings for value in finding.values]
    arrivals, earlier = _history(report)
    return Said(
        header=content.header,
        verdict=" ".join(content.verdict),
        changed=content.changed,
        outcomes=content.outcomes,
        points=tuple(map(_point, content.points)),
        rows=tuple(_row(row, timed=report.profile is not None) for row in content.rows),
        measured=" ".join(content.measured),
        timeline=measured.timeline(report),
        memory=content.memory,
        peak=_peak(content.peak),
        inputs=_rows(content.inputs),
        outputs=_rows(content.outputs),
        values=_rows(content.values),
        about=" ".join(content.about),
        cost=content.cost,
        assumptions=content.assumptions,
        lines=tuple(_lines(report)),
        arrays=_arrays([*values, *earlier], report),
        arrivals=arrivals,
        collectives=_collectives(report),
    )


def _ids(collectives: Iterable[Collective]) -> str:
    return " ".join(str(one.id) for one in collectives)


def _point(point: Point) -> SaidPoint:
    edits = tuple(SaidEdit(edit.code, edit.effect, edit.compiled) for edit in point.edits)
    ids = " ".join(map(str, point.collectives))
    return SaidPoint(point.head, point.cost, point.cause, point.tone, ids, edits, point.finding)


def _row(row: Row, *, timed: bool) -> SaidRow:
    said = _ids(row.members), row.name, row.where, row.times, row.sends, row.cause, row.tone
    return SaidRow(*said, row.measured, row.seconds, row.weight) if timed else SaidRow(*said)


def _peak(table: PeakTable | None) -> SaidPeak | None:
    if table is None:
        return None
    rows, more_rows = table.shown(_HELD)
    return SaidPeak(table.when, tuple(rows), "; ".join(filter(None, (more_rows, table.rest))))


def _rows(part: Arrays) -> SaidArrays:
    return SaidArrays(
        part.summary,
        names=tuple(row.name for row in part.rows),
        sizes=tuple(row.size for row in part.rows),
        members=tuple(" ".join(map(str, row.numbers)) for row in part.rows),
    )


# Lines


def _lines(report: Report) -> Iterator[tuple[LedLine, ...]]:
    led = led_by(report)
    for index, _ in enumerate(report.sources):
        by_line: Led = led.get(index, {})
        lines = []
        for line in sorted(by_line, key=lambda line: (-weight(by_line[line]), line)):
            rows = rows_of(by_line[line], report)
            badges, marks = _badges(rows, _BADGES), _badges(rows, _MARKS)
            lines.append(LedLine(line, badges, () if marks == badges else marks))
        yield tuple(lines)


def _badges(rows: Sequence[Row], limit: int) -> tuple[Badge, ...]:
    shown = [
        Badge(_ids(r.members), r.head, r.sends, _mark(r), r.cause, r.tone) for r in rows[:limit]
    ]
    if left := rows[limit:]:
        others = [one for row in left for one in row.members]
        shown.append(Badge(_ids(others), "", more(left), f"and {len(others):,} more"))
    return tuple(shown)


def _mark(row: Row) -> str:
    """Write the badge of an editor: `all-reduce 256 KiB model x4`, `12 all-gathers 3 MiB data`."""
    first = row.first
    axes = ", ".join(first.axes) if first.axes is not None else words.grouping(first)
    along = f" {clean(axes)}" if axes else ""
    if len(row.members) == 1:
        return f"{clean(first.kind)} {size(first.wire_bytes)}{along}{words.trips(first)}"
    return f"{count(len(row.members), clean(first.kind))} {words.sent(row.members)}{along}"


# Arrays


def _arrays(values: Sequence[Value], report: Report) -> dict[str, Column]:
    # Inputs and outputs come first, and have no reasons; nor have the arrays after the values.
    edges = len(report.inputs) + len(report.outputs)
    reasons = [*[""] * edges, *map(clean, explain_each(report)), *repeat("", len(values))]
    rows = []
    for value, reason in zip(values, reasons, strict=False):
        held = f"{dims(value.shard_shape)} per device, {size(value.shard_bytes)}"
        more_said = "; ".join(remarks(value, report.mesh))
        kind, name = clean(type_text(value)), clean(value.name)
        # What put the first of its axes on the value.
        origin = clean(value.origins[0].name) if value.origins else ""
        why = _referring(reason, {"type": kind, "from": origin, "name": name})
        rows.append((kind, held, clean(copies(value, report.mesh)), more_said, why))
    columns = zip(*rows, strict=True) if rows else [()] * len(ARRAY_TEXTS)
    return dict(zip(ARRAY_TEXTS, map(_column, columns), strict=True))


def _history(report: Report) -> tuple[Column | None, list[Value]]:
    """Return when each value got its axes, and how it lay from each of these steps on."""
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
    """Return a value as it was after a step: with the axes of its spec that had come."""
    given = value.spec or ()
    spec = tuple(tuple(axis for axis in axes if (when[axis] or 0) <= step) for axes in given)
    placed = placed_value(value.name, value.dtype, value.shape, spec, mesh)
    return replace(value, spec=spec, shard_shape=placed.shard_shape, propagated=None)


# Collectives


def _at(collective: Collective, report: Report) -> str:
    place = words.at(words.innermost(collective, report), report)
    return place + words.inside((collective,)) + words.phase(collective)


def _home(collective: Collective, report: Report) -> str:
    """Return the number of the frame that it is shown at; `-` where no frame's line is known."""
    place = words.home(collective, report)
    return "-" if place is None else str(collective.frames.index(place))


_PLAIN: dict[str, Callable[[Collective, Report], str]] = {
    "name": lambda one, _: clean(one.kind) + words.over(one),
    "array": lambda one, _: words.array(one),
    "size": lambda one, _: size(one.wire_bytes),
    "trips": lambda one, _: words.trips(one),
    "cause": words.cause,
    "grouping": lambda one, _: words.grouping(one),
    "at": _at,
    "home": _home,
    "measured": lambda one, report: " ".join(measured.sentences(one, report)),
}
# These name the operations around the collective, which the data holds already.
_TOLD: dict[str, Callable[[Collective], str]] = {
    "because": words.reason,
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
