"""Collectives as they are told: one by one while they are few, like ones together when many."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace

from shardnb.report import Collective, Report
from shardnb.terms.causes import ASKERS
from shardnb.views import words
from shardnb.views.formatting import count, plural, size

# Edits that are shown of a group: its collectives mostly share the first ones.
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

    @property
    def lead(self) -> str:
        """What stands between the name and the sentences, for an entry that needs it."""
        return f" ({self.sends})" if not self.placed or len(self.members) > 1 else ""

    @property
    def is_told_whole(self) -> bool:
        """Whether the sentence names the collective and its line already."""
        return self.because.startswith(self.name) and len(self.members) == 1


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
        return (
            f"and {count(len(self.left), 'more collective')}, {sent}: all are in report.collectives"
        )


def tell(collectives: Sequence[Collective], report: Report, *, single: int, limit: int) -> Entries:
    """Tell collectives one by one up to `single`, else by kind, axes, place, asker and reason.

    Of more than `limit` such groups the ones that send most are shown, in program order.
    """
    if len(collectives) <= single:
        return Entries(_without_echo([_entry((c,), report) for c in collectives]))
    alike: dict[Hashable, list[Collective]] = {}
    for collective in collectives:
        place = words.home(collective, report)
        line = (place.source, place.line) if place else None
        told = words.asked(collective), collective.reason, collective.full_remat
        where = line, words.like_module(collective), words.over(collective)
        alike.setdefault((collective.kind, where, told), []).append(collective)
    groups = [tuple(group) for group in alike.values()]
    order = sorted(range(len(groups)), key=lambda i: weight(groups[i]), reverse=True)
    left = [collective for i in order[limit:] for collective in groups[i]]
    shown = [_entry(groups[i], report) for i in sorted(order[:limit])]
    return Entries(_without_echo(shown), tuple(left))


def weight(collectives: Iterable[Collective]) -> int:
    """Give the bytes by which collectives are told first: of a run, or of one execution."""
    return sum(c.total_wire_bytes or c.wire_bytes for c in collectives)


def _without_echo(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """Write `as above` where an entry says all that the one before it says."""
    result: list[Entry] = []
    before: tuple[str, ...] = ()
    for entry in entries:
        sentences = (entry.because, *entry.further)
        new = tuple(sentence for sentence in entry.further if sentence not in before)
        echoes = bool(before) and set(before) <= set(sentences)
        result.append(replace(entry, because="as above.", further=new) if echoes else entry)
        before = sentences
    return tuple(result)


def _entry(group: tuple[Collective, ...], report: Report) -> Entry:
    first, alone = group[0], len(group) == 1
    place = words.home(first, report)
    phase = words.phase(first) if len({c.phase for c in group}) == 1 else ""
    number = first.kind if alone else f"{len(group):,} {plural(first.kind)}"
    arrays = set(map(words.array, group))
    reasons = dict.fromkeys(map(words.because, group))
    because = next(iter(reasons))
    fixes = dict.fromkeys(words.fix(edit) for c in group for edit in c.fixes or ())
    return Entry(
        members=group,
        name=f"{number}{words.over(first)}",
        array=arrays.pop() if len(arrays) == 1 else f"of {len(arrays):,} shapes",
        sends=words.sends(group),
        cause=words.cause(first),
        at=words.at(place, report) + words.inside(group) + phase,
        placed=place is not None,
        because=because if len(reasons) == 1 else f"for the first, {because}",
        further=words.further(first) if alone else _further(group),
        fixes=tuple(fixes)[:_FIXES],
    )


def _further(group: Sequence[Collective]) -> tuple[str, ...]:
    asker = ASKERS[words.asked(group[0])].sentence
    said = [asker.replace("it.", "them.").replace("it;", "them;")]
    if unknown := words.unknown(group):
        said.append(f"{unknown:,} of them run in loops whose trip count is not known.")
    if together := sum(bool(c.combined_with) for c in group):
        said.append(f"{together:,} of them are sent together with others.")
    return tuple(said)
