"""What changed between two reports: bytes sent, bytes held, shardings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence

from shardnb.report.bytes_sent import most_sent
from shardnb.report.changes import Change, Diff, KindChange
from shardnb.report.model import Collective, Report, Value
from shardnb.report.spec import type_text
from shardnb.terms.collectives import Kind


def diff(before: Report, after: Report) -> Diff:
    """Compare two reports; ids, numbering, seconds and texts are left out."""
    known = before.memory is not None and after.memory is not None
    return Diff(
        changes=(
            *_pair("mesh", _mesh(before), _mesh(after)),
            *_values("input", before.inputs, after.inputs),
            *_values("output", before.outputs, after.outputs),
            *_collectives(before.collectives, after.collectives),
            *_pair("bytes sent per device", str(before.wire_bytes), str(after.wire_bytes)),
            *_pair("bytes held per device", _memory(before), _memory(after)),
        ),
        kinds=tuple(_kinds(before.collectives, after.collectives)),
        wire_bytes=(before.wire_bytes, after.wire_bytes),
        memory=(_held(before), _held(after)) if known else None,
    )


def _pair(name: str, before: str | None, after: str | None) -> Iterator[Change]:
    if before != after:
        yield Change(name, before, after)


def _mesh(report: Report) -> str:
    return ", ".join(f"{axis.name}={axis.size}:{axis.type}" for axis in report.mesh.axes)


def _memory(report: Report) -> str | None:
    return None if report.memory is None else str(report.memory.total)


def _held(report: Report) -> int:
    return 0 if report.memory is None else report.memory.total


def _kinds(before: Sequence[Collective], after: Sequence[Collective]) -> Iterator[KindChange]:
    """Count those that only one of the reports has: what went by kind, then what came."""
    old, new = Counter(map(_sent, before)), Counter(map(_sent, after))
    for sign, collectives, left in ((-1, before, old - new), (1, after, new - old)):
        by_kind: dict[Kind, list[Collective]] = {}
        for collective in collectives:
            if left[_sent(collective)] > 0:
                left[_sent(collective)] -= 1
                by_kind.setdefault(collective.kind, []).append(collective)
        changes = [
            KindChange(
                kind,
                sign * len(alike),
                most_sent(alike),
                any(c.trips is None for c in alike),
            )
            for kind, alike in by_kind.items()
        ]
        yield from sorted(changes, key=lambda change: -change.wire_bytes)


def _sent(c: Collective) -> Hashable:
    return c.kind, c.axes, c.dtype, c.shape, c.trips, c.wire_bytes


def _values(kind: str, before: Sequence[Value], after: Sequence[Value]) -> Iterator[Change]:
    old = {value.name: type_text(value) for value in before}
    new = {value.name: type_text(value) for value in after}
    for name in dict.fromkeys((*old, *new)):
        yield from _pair(f"{kind} {name}", old.get(name), new.get(name))


def _collectives(before: Sequence[Collective], after: Sequence[Collective]) -> Iterator[Change]:
    old, new = Counter(map(_text, before)), Counter(map(_text, after))
    for text in dict.fromkeys((*old, *new)):
        if old[text] != new[text]:
            yield Change(text, _times(old[text]), _times(new[text]))


def _times(count: int) -> str | None:
    return f"x{count}" if count else None


def _text(collective: Collective) -> str:
    axes = "?" if collective.axes is None else ", ".join(collective.axes)
    dims = ", ".join(map(str, collective.shape))
    trips = "" if collective.trips == 1 else f" trips {collective.trips or '?'}"
    why = ", ".join(filter(None, (collective.asked_by, collective.reason)))
    text = f"{collective.kind}[{axes}] {collective.dtype}[{dims}]{trips}"
    return f"{text} ({why})" if why else text
