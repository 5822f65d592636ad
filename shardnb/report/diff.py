"""What changed between two reports: bytes sent, bytes held, shardings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shardnb.report.model import Collective, Report, Value
from shardnb.report.spec import type_text


@dataclass(frozen=True)
class Change:
    """One figure or sharding that differs; None if one of the reports does not have it."""

    name: str
    before: str | None
    after: str | None

    def __str__(self) -> str:
        """Write the change in a line."""
        if self.before is None:
            return f"+ {self.name}: {self.after}"
        if self.after is None:
            return f"- {self.name}: {self.before}"
        return f"  {self.name}: {self.before} -> {self.after}"


@dataclass(frozen=True)
class Diff:
    """The changes from one report to another; empty if they agree."""

    changes: tuple[Change, ...]

    def __bool__(self) -> bool:
        """Whether anything changed."""
        return bool(self.changes)

    def __str__(self) -> str:
        """Write a line for each change."""
        return "\n".join(map(str, self.changes)) or "no difference"


def diff(before: Report, after: Report) -> Diff:
    """Compare two reports; ids, numbering, seconds and texts are left out."""
    return Diff(
        (
            *_pair("mesh", _mesh(before), _mesh(after)),
            *_values("input", before.inputs, after.inputs),
            *_values("output", before.outputs, after.outputs),
            *_collectives(before.collectives, after.collectives),
            *_pair("bytes sent per device", str(before.wire_bytes), str(after.wire_bytes)),
            *_pair("bytes held per device", _memory(before), _memory(after)),
        )
    )


def _pair(name: str, before: str | None, after: str | None) -> Iterator[Change]:
    if before != after:
        yield Change(name, before, after)


def _mesh(report: Report) -> str:
    return ", ".join(f"{axis.name}={axis.size}:{axis.type}" for axis in report.mesh.axes)


def _memory(report: Report) -> str | None:
    return None if report.memory is None else str(report.memory.total)


def _values(kind: str, before: Sequence[Value], after: Sequence[Value]) -> Iterator[Change]:
    old = {value.name: type_text(value) for value in before}
    new = {value.name: type_text(value) for value in after}
    for name in dict.fromkeys((*old, *new)):
        yield from _pair(f"{kind} {name}", old.get(name), new.get(name))


def _collectives(before: Sequence[Collective], after: Sequence[Collective]) -> Iterator[Change]:
    old, new = Counter(map(_said, before)), Counter(map(_said, after))
    for said in dict.fromkeys((*old, *new)):
        if old[said] != new[said]:
            yield Change(said, _times(old[said]), _times(new[said]))


def _times(count: int) -> str | None:
    return f"x{count}" if count else None


def _said(collective: Collective) -> str:
    axes = "?" if collective.axes is None else ", ".join(collective.axes)
    dims = ", ".join(map(str, collective.shape))
    trips = "" if collective.trips == 1 else f" trips {collective.trips or '?'}"
    why = ", ".join(filter(None, (collective.asked_by, collective.reason)))
    text = f"{collective.kind}[{axes}] {collective.dtype}[{dims}]{trips}"
    return f"{text} ({why})" if why else text
