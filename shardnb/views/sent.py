"""What is sent: equal collectives in one row, the rows that send most first."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from shardnb.report import Collective, Fix, Location, Report
from shardnb.report.bytes_sent import most_sent
from shardnb.report.strategies import strategy_of
from shardnb.terms.causes import REASONS
from shardnb.terms.roles import ROLES
from shardnb.views import measured, words
from shardnb.views.formatting import clean, count, plural, seconds
from shardnb.views.palette import Tone

_INDEX = re.compile(r"(?<=\[)\d+(?=\])|(?<=_)\d+(?=['\"\]./])")
_RESULT = re.compile(r"result\[\d+\]")

_CODE = 48


@dataclass(frozen=True)
class Row:
    """Equal collectives.

    `name` is `all-reduce[model]`, `array` its result on one device, `what` what it is for: its
    role, else its line. `at` is its place, `times` how often a run executes them all, `sends` and
    `cause` follow in few words, `cost` is `sends` with its unit, such as `4 B per run`,
    `measured` what a profiler measured per run, `because` and `further` are sentences, `fixes` the
    compiled edits.
    """

    members: tuple[Collective, ...]
    place: Location | None
    name: str
    array: str
    what: str
    at: str
    times: str
    sends: str
    cost: str
    cause: str
    measured: str
    tone: Tone
    because: str
    further: tuple[str, ...]
    fixes: tuple[Fix, ...]

    @property
    def first(self) -> Collective:
        """The one that stands for all."""
        return self.members[0]

    @property
    def weight(self) -> int:
        """The bytes to compare rows by."""
        return weight(self.members)

    @property
    def seconds(self) -> float:
        """The measured seconds per run to compare rows by, 0 where nothing was measured."""
        return measured.seconds_per_run(self.members)

    @property
    def head(self) -> str:
        """The name with the array."""
        number = len(self.members)
        kind = clean(self.first.kind)
        name = self.name if number == 1 else f"{number:,} {plural(kind)}{self.name[len(kind) :]}"
        return f"{name} {self.array}"

    @property
    def where(self) -> str:
        """What it is for, with its line: `h = x @ W, line 13`."""
        return ", ".join(filter(None, (self.what, self.at)))


def rows_of(collectives: Sequence[Collective], report: Report) -> tuple[Row, ...]:
    """Put equal collectives together: call stack, kind, axes, array, cause and role.

    The slowest come first where they were measured, else those that send most.
    """
    alike: dict[Hashable, list[Collective]] = {}
    for one in collectives:
        stack = tuple((frame.source, frame.line) for frame in one.frames)
        cause = words.asked(one), one.reason, one.detail, one.full_remat, one.trips is None
        strategy = strategy_of(one, report)
        role = one.role, pattern(one.role_of), words.like_module(one)
        sent = one.kind, words.over(one), one.dtype, one.shape
        alike.setdefault((stack, cause, strategy, role, sent), []).append(one)
    rows = (_row(tuple(group), report) for group in alike.values())
    return tuple(sorted(rows, key=lambda row: (-row.seconds, -row.weight)))


def weight(collectives: Sequence[Collective]) -> int:
    """Return the bytes to compare collectives by: of a run, or of one execution."""
    return most_sent([c if c.trips is not None else replace(c, trips=1) for c in collectives])


def pattern(name: str) -> str:
    """Write a path with a star for each index of a layer; a result keeps its own number.

    >>> pattern("lm['layers'][11]['w1']"), pattern("p['Dense_0']['kernel']"), pattern("w[0]")
    ("lm['layers'][*]['w1']", "p['Dense_*']['kernel']", 'w[*]')
    >>> pattern("result[0]['layers'][3]")
    "result[0]['layers'][*]"
    """
    kept = match[0] if (match := _RESULT.match(name)) else ""
    return kept + _INDEX.sub("*", name[len(kept) :])


def short(code: str) -> str:
    """Cut a line of code to what fits beside other columns."""
    return code if len(code) <= _CODE else f"{code[: _CODE - 3]}..."


def _row(group: tuple[Collective, ...], report: Report) -> Row:
    first, alone = group[0], len(group) == 1
    place = words.innermost(first, report)
    reasons = dict.fromkeys(map(words.reason, group))
    because = next(iter(reasons))
    fixes = {edit.edit: edit for c in group for edit in c.fixes or ()}
    runs = sum(c.least_trips if c.trips is None else c.trips for c in group)
    unknown, took = words.unknown(group), _seconds(group)
    what = short(words.code_at(place, report))
    further = words.further(first) if alone else _further(group)
    # Of a called one, why says so, and the line says more.
    if first.role and first.role != "called":
        what = ROLES[first.role].of(clean(pattern(first.role_of)))
    return Row(
        members=group,
        place=place,
        name=f"{clean(first.kind)}{words.over(first)}",
        array=words.array(first),
        what=what,
        at=_at(place, report) + words.inside(group),
        times=f"{runs:,} or more" if unknown and runs else "unknown" if unknown else f"{runs:,}",
        sends=", ".join(filter(None, (words.sent(group), took))),
        cost=", ".join(filter(None, (words.per_run(group), took))),
        cause=words.cause(first, report),
        measured=measured.cell(group, report),
        tone=_tone(group, report),
        because=because if len(reasons) == 1 else f"The first of them: {because}",
        further=(*further, *(measured.sentences(first, report) if alone else ())),
        fixes=tuple(fixes.values()),
    )


def _seconds(group: Sequence[Collective]) -> str:
    """Return the seconds per run, "" where those of one of them are not known."""
    took = [c.seconds * c.trips for c in group if c.seconds is not None and c.trips is not None]
    return seconds(sum(took)) if len(took) == len(group) else ""


def _at(place: Location | None, report: Report) -> str:
    return words.at(place, report).removeprefix("at ") if place else "line not known"


def _tone(group: Sequence[Collective], report: Report) -> Tone:
    """Colour by cost and cause: red for what dominates, or gathers in full without need."""
    first = group[0]
    if first.full_remat:
        return "red"
    written = words.asked(first) != "inferred" or strategy_of(first, report) is not None
    if written or first.reason is None or not REASONS[first.reason].reshards:
        return "neutral"
    # Half of all bytes: then no other row matters as much.
    return "red" if 2 * weight(group) >= report.wire_bytes else "amber"


def _further(group: Sequence[Collective]) -> tuple[str, ...]:
    said = [words.asker_sentence(group[0])]
    if unknown := words.unknown(group):
        said.append(f"{unknown:,} of them are in loops whose trip count is not known.")
    if together := sum(bool(c.combined_with) for c in group):
        said.append(f"{together:,} of them are sent together with others.")
    return tuple(said)


def more(rows: Sequence[Row]) -> str:
    """Say in a line what these rows hold: `and 3 more collectives, 12 KiB`."""
    members = [c for row in rows for c in row.members]
    number = count(len(members), "more collective")
    return f"and {number}, {words.sent(members)}" if members else ""
