"""Collectives as they are told: one by one while they are few, like ones together when many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace

from shardnb.report import Collective, Report
from shardnb.terms.causes import ASKERS
from shardnb.views import words
from shardnb.views.formatting import clean, count, plural, size

_FIXES = 3


@dataclass(frozen=True)
class Entry:
    """Collectives that are told together; mostly one.

    `name` is `all-reduce[model]`, `array` its result on a device, `sends` and `cause` what stands
    behind it, `at` its place (`placed` if it is known), `because` and `further` the sentences,
    `fixes` the edits.
    """

    members: tuple[Collective, ...]
    name: str
    array: str
    sends: str
    cause: str
    at: str
    placed: bool
    because: str
    further: tuple[str, ...]
    fixes: tuple[str, ...]

    @property
    def head(self) -> str:
        """The name with the array."""
        return f"{self.name} {self.array}".rstrip()


@dataclass(frozen=True)
class Entries:
    """The entries that are shown, and the collectives that are not."""

    shown: tuple[Entry, ...]
    left: tuple[Collective, ...] = ()

    @property
    def rest(self) -> str:
        """A sentence on the collectives that are not shown, "" where all are."""
        if not self.left:
            return ""
        sent = size(sum(c.least_wire_bytes for c in self.left))
        more = count(len(self.left), "more collective")
        return f"and {more}, {sent}: all are in report.collectives"


def tell(collectives: Sequence[Collective], report: Report, *, single: int, limit: int) -> Entries:
    """Tell collectives one by one up to `single`, else by kind, axes, place, asker and reason.

    Of more than `limit` such groups the ones that send most are shown, in program order.
    """
    if len(collectives) <= single:
        return Entries(_without_echo([_entry((c,), report) for c in collectives]))
    groups = _gather(collectives, lambda c: _likeness(c, report))
    order = sorted(range(len(groups)), key=lambda i: _weight(groups[i]), reverse=True)
    left = [collective for i in order[limit:] for collective in groups[i]]
    kept = [groups[i] for i in sorted(order[:limit])]
    return Entries(_without_echo([_entry(group, report) for group in kept]), tuple(left))


def _without_echo(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """Write `as above` where an entry says all that the one before it says."""
    said: list[Entry] = []
    before: tuple[str, ...] = ()
    for entry in entries:
        sentences = (entry.because, *entry.further)
        new = tuple(sentence for sentence in entry.further if sentence not in before)
        echoes = bool(before) and set(before) <= set(sentences)
        said.append(replace(entry, because="as above.", further=new) if echoes else entry)
        before = sentences
    return tuple(said)


def _gather(
    collectives: Iterable[Collective], key: Callable[[Collective], Hashable]
) -> list[tuple[Collective, ...]]:
    groups: dict[Hashable, list[Collective]] = {}
    for collective in collectives:
        groups.setdefault(key(collective), []).append(collective)
    return [tuple(group) for group in groups.values()]


def _likeness(collective: Collective, report: Report) -> Hashable:
    place = words.home(collective, report)
    line = (place.source, place.line) if place else None
    asker, axes = words.asked(collective), words.over(collective)
    told = collective.kind, axes, asker, collective.reason, collective.full_remat
    return line, words.like_module(collective), *told


def _weight(group: Sequence[Collective]) -> int:
    return sum(c.total_wire_bytes or c.wire_bytes for c in group)


def _entry(group: tuple[Collective, ...], report: Report) -> Entry:
    first = group[0]
    place = words.home(first, report)
    phase = f", {clean(first.phase)}" if first.phase and len({c.phase for c in group}) == 1 else ""
    return Entry(
        members=group,
        name=_name(group),
        array=_array(group),
        sends=words.sends(group),
        cause=words.cause(first),
        at=words.at(place, report) + words.inside(group) + phase,
        placed=place is not None,
        because=_because(group),
        further=_further(group),
        fixes=_fixes(group),
    )


def _fixes(group: Sequence[Collective]) -> tuple[str, ...]:
    """Give the edits that were found for any of these, each once, and of many the first."""
    found = dict.fromkeys(words.fix(edit) for one in group for edit in one.fixes or ())
    return tuple(found)[:_FIXES]


def _name(group: Sequence[Collective]) -> str:
    kind, axes = group[0].kind, words.over(group[0])
    return f"{kind}{axes}" if len(group) == 1 else f"{len(group):,} {plural(kind)}{axes}"


def _array(group: Sequence[Collective]) -> str:
    arrays = Counter(map(words.array, group))
    return next(iter(arrays)) if len(arrays) == 1 else f"of {len(arrays):,} shapes"


def _because(group: Sequence[Collective]) -> str:
    reasons = dict.fromkeys(map(words.because, group))
    first = next(iter(reasons))
    return first if len(reasons) == 1 else f"for the first, {first}"


def _further(group: Sequence[Collective]) -> tuple[str, ...]:
    if len(group) == 1:
        return words.further(group[0])
    said = [ASKERS[words.asked(group[0])].sentence.replace("it.", "them.").replace("it;", "them;")]
    if unknown := words.unknown(group):
        said.append(f"{unknown:,} of them run in loops whose trip count is not known.")
    if together := sum(bool(c.combined_with) for c in group):
        said.append(f"{together:,} of them are sent together with others.")
    return tuple(said)
