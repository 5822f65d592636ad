"""What to look at: findings, costly reshards and compiled fixes, ranked by what they cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from shardnb.report import Collective, Finding, Fix, Location, Report
from shardnb.terms.findings import FINDINGS
from shardnb.views import words
from shardnb.views.formatting import clean, clean_lines, size
from shardnb.views.palette import Tone
from shardnb.views.sent import Row, short, weight

MOST = 5
_FIXES = 2

# These stop a program, whatever they cost.
_FATAL = ("out-of-memory",)


@dataclass(frozen=True)
class Edit:
    """An edit to paste, and what it changes; `compiled` says that it was tried."""

    code: str
    effect: str
    compiled: bool = True


@dataclass(frozen=True)
class Point:
    """Something to look at: a headline, what it costs, one sentence of cause, what fixes it.

    `collectives` are the ids of those that it is about. `finding` is the place of its finding in
    the report, whose arrays are drawn beside it; -1 if there is none.
    """

    head: str
    cost: str
    cause: str
    tone: Tone
    weight: int
    edits: tuple[Edit, ...] = ()
    collectives: tuple[int, ...] = ()
    finding: int = -1
    details: str = ""


def points_of(report: Report, rows: Sequence[Row]) -> tuple[Point, ...]:
    """Return all that is worth a look, the costliest first.

    Bytes that are sent and bytes that are held are compared as they are: both are one device's,
    and nothing in a report converts one to the other.
    """
    by_id = {c.id: row for row in rows for c in row.members}
    points: list[Point] = []
    told: set[int] = set()
    for number, finding in enumerate(report.findings):
        about = list({id(by_id[i]): by_id[i] for i in finding.collectives if i in by_id}.values())
        told.update(id(row) for row in about)
        points.append(_finding(number, report, about))
    points += [_row(row, report) for row in rows if id(row) not in told and _matters(row)]
    return tuple(sorted(points, key=lambda point: -point.weight))


def _matters(row: Row) -> bool:
    return row.tone != "neutral" or bool(row.fixes)


def _row(row: Row, report: Report) -> Point:
    place = f" at {row.at}" if row.place else ""
    code = short(words.code_at(row.place, report)) or row.what
    number = f" x{row.times}" if row.times not in ("1", "unknown") else ""
    head = f"{row.name}{number}{place}{f': {code}' if code else ''}"
    ids = tuple(c.id for c in row.members)
    return Point(head, row.cost, row.because, row.tone, row.weight, _edits(row.fixes), ids)


def _edits(fixes: Iterable[Fix]) -> tuple[Edit, ...]:
    """Return the best of the compiled edits: what sends least, then what holds least."""
    best = sorted(fixes, key=lambda fix: (fix.wire_bytes[1], fix.memory_bytes[1]))
    return tuple(Edit(clean_lines(fix.edit), words.effect(fix)) for fix in best[:_FIXES])


def _edits_of(finding: Finding, about: Sequence[Row]) -> tuple[Edit, ...]:
    """Return the finding's own edits, then those of the collectives that it is about."""
    compiled = _edits(finding.fixes or ())
    compiled += _edits({fix.edit: fix for row in about for fix in row.fixes}.values())
    proposed = (Edit(clean_lines(edit.text), "", compiled=False) for edit in finding.edits)
    return tuple({edit.code: edit for edit in (*compiled, *proposed)}.values())[:_FIXES]


def _place(finding: Finding, report: Report, about: Sequence[Row]) -> Location | None:
    """Return a finding's line; of a line that called the collectives' own one, that."""
    if about and finding.location in about[0].first.frames:
        return words.innermost(about[0].first, report)
    return finding.location


def _names(report: Report, about: Sequence[Collective]) -> set[str]:
    """Return the names that the message of a finding may begin with."""
    values = (*report.inputs, *report.outputs, *report.values)
    return {clean(value.name) for value in values}.union(*map(words.names_of, about))


def _finding(number: int, report: Report, about: Sequence[Row]) -> Point:
    finding = report.findings[number]
    place, headline = _place(finding, report, about), FINDINGS.get(finding.kind)
    prose = headline.prose if headline else clean(finding.kind)
    code = short(words.code_at(place, report))
    at = f": {clean(finding.subject)}" if finding.subject else ""
    at = f" {words.at(place, report)}{f': {code}' if code else ''}" if place else at
    sent, ids = finding.wire_bytes, set(finding.collectives)
    members = [c for row in about for c in row.members if c.id in ids]
    cost = f"{size(sent)} per run" if sent is not None else ""
    if members and (finding.wasted_bytes is None or sent is not None):
        sent = weight(members) if sent is None else sent
        cost = words.per_run(members) if not cost or words.unknown(members) else cost
    held = finding.wasted_bytes if sent is None else None
    return Point(
        head=f"{prose[:1].upper()}{prose[1:]}{at}",
        cost=f"{size(held)} per device" if held is not None else cost,
        cause=words.sentence(clean(finding.message), _names(report, members)),
        tone="red" if finding.kind in _FATAL or any(r.tone == "red" for r in about) else "amber",
        weight=1 << 62 if finding.kind in _FATAL else sent or held or 0,
        edits=_edits_of(finding, about),
        collectives=finding.collectives,
        finding=number,
        details=clean_lines(finding.details),
    )
