"""Golden reports: what of a report is kept, and what changed, in words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from shardnb.report import Collective, Location, Report
from shardnb.report.golden import Entry, EntryChange, Golden, Key, changes
from shardnb.report.op_names import joined_names
from shardnb.views import words
from shardnb.views.formatting import clean, size


def golden_of(report: Report) -> Golden:
    """Return what a test keeps of a report."""
    groups: dict[Key, list[Entry]] = defaultdict(list)
    for collective in report.collectives:
        entry = entry_of(collective, report)
        groups[entry.key].append(entry)
    mesh = ",".join(f"{axis.name}={axis.size}" for axis in report.mesh.axes)
    entries = sorted(map(_joined, groups.values()), key=lambda entry: entry.key)
    return Golden(mesh or f"{report.mesh.size} devices", tuple(entries))


def entry_of(collective: Collective, report: Report) -> Entry:
    """Return one collective as an entry, with its place and its cause for a reader."""
    at = words.innermost(collective, report)
    axes = (words.grouping(collective),) if collective.axes is None else collective.axes
    return Entry(
        line=words.code_at(at, report),
        op=_operation(collective),
        kind=collective.kind,
        axes=tuple(map(clean, axes)),
        wire_bytes=collective.total_wire_bytes,
        place=_place(at, report),
        why=_why(collective),
    )


def _place(at: Location | None, report: Report) -> str:
    """Name a line: `model.py:214`, or `line 3 of layer` in a function or cell."""
    if at is None:
        return ""
    name = report.sources[at.source].name if at.source < len(report.sources) else ""
    if name.endswith(".py"):
        return clean(f"{name}:{at.line}")
    return clean(f"line {at.line}{f' of {name}' if name else ''}")


def _why(collective: Collective) -> str:
    clause = words.clause(collective)
    return f"because {clause}" if clause else words.because(collective)


def _operation(collective: Collective) -> str:
    """Return JAX's name of the operation; "" where the name is that of a parameter.

    Collectives that are sent together have one name, of all of them in the order of their ids.
    """
    name = collective.op_name
    if members := joined_names(name):
        ids = sorted({collective.id, *collective.combined_with})
        if len(ids) != len(members):
            return ""
        name = members[ids.index(collective.id)]
    return clean(name.rpartition("/")[2].partition("[")[0]) if "/" in name else ""


def _joined(entries: Sequence[Entry]) -> Entry:
    first = entries[0]
    sent = [entry.wire_bytes for entry in entries]
    known = None if None in sent else sum(each or 0 for each in sent)
    return Entry(*first.key, len(entries), known, first.place, first.why)  # type: ignore[arg-type]


def differences(before: Golden, after: Golden) -> list[str]:
    """Say what changed, each in one or more lines with its place and its cause."""
    mesh = [f"the mesh is {clean(after.mesh)} instead of {clean(before.mesh)}"]
    lines = mesh if before.mesh != after.mesh else []
    return [*lines, *("\n".join(_lines(change)) for change in changes(before, after))]


def differs(title: str, name: str, lines: Sequence[str]) -> str:
    """Say that a program differs from its golden report, and what to do if that is meant."""
    body = "\n".join(f"  {line}" for text in lines for line in text.splitlines())
    return (
        f"{clean(title)} differs from its golden report {clean(name)}:\n{body}\n"
        "If that is meant: pytest --shardnb-update writes the golden report again."
    )


def missing(title: str, name: str) -> str:
    """Say that there is no golden report yet, and how it is written."""
    return (
        f"{clean(title)} does not have a golden report {clean(name)} yet: "
        "pytest --shardnb-update writes it"
    )


def headline(change: EntryChange) -> tuple[str, str]:
    """Name what changed and what it sends: `+1 all-gather[fsdp]` and `1.2 GiB per run`."""
    entry, (before, after) = change.entry, change.wire_bytes
    axes = f"[{', '.join(map(clean, entry.axes))}]" if entry.axes else ""
    number = f"{change.number:+,} " if change.number else f"{entry.number:,} "
    if change.number < 0 and after == 0:
        sends = _sent(before)
    elif change.number and before == 0:
        sends = _sent(after)
    else:
        sends = f"{_sent(after)} instead of {_sent(before)}"
    return f"{number}{entry.kind}{axes}", sends


def _sent(count: int | None) -> str:
    return "unknown bytes per run" if count is None else f"{size(count)} per run"


def _lines(change: EntryChange) -> Iterator[str]:
    entry = change.entry
    what, sends = headline(change)
    place = f" at {clean(entry.place)}" if entry.place else ""
    line = f": {clean(entry.line)}" if entry.line else ""
    yield f"{what}, {sends}{place}{line}"
    if entry.why:
        yield f"  {clean(entry.why)}"
