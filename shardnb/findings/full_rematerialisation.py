"""Values that the compiler gathers in full only to shard them again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from shardnb.findings.evidence import Evidence, location_of
from shardnb.report.model import Collective, Finding, Mesh, Value
from shardnb.report.spec import placed_value, spec_text


def find(evidence: Evidence) -> Iterator[Finding]:
    """Find the full rematerialisations that the compiler itself warned of, counted by line."""
    groups: dict[tuple[object, ...], list[Collective]] = defaultdict(list)
    for one in evidence.collectives:
        if one.full_remat:
            groups[one.producer, one.producer_spec, one.needed_spec, location_of(one)].append(one)
    for members in groups.values():
        one = members[0]
        times = f" ({len(members)} collectives)" if len(members) > 1 else ""
        yield Finding(
            "full rematerialisation",
            f"{one.producer or 'a value'} goes from {spec_text(one.producer_spec)} to "
            f"{spec_text(one.needed_spec)}, and the compiler found no better way than to gather "
            f"it in full on each device first{times}",
            location=location_of(one),
            collectives=tuple(member.id for member in members),
            values=tuple(_both_ends(one, evidence.mesh)),
        )


def _both_ends(one: Collective, mesh: Mesh) -> Iterator[Value]:
    """Return the moved array with its sharding, and with the needed one, if known."""
    for name, spec in (
        (f"{one.producer}, as it is sharded", one.producer_spec),
        (f"{one.producer}, as it is needed", one.needed_spec),
    ):
        if one.producer_shape is not None and spec is not None:
            yield placed_value(name, one.dtype, one.producer_shape, spec, mesh)
