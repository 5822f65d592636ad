"""Constraints that the mesh axes do not divide, so that XLA pads."""

from __future__ import annotations

from collections.abc import Iterator

from shardnb.compiler import divisibility
from shardnb.compiler.constraints import constraints
from shardnb.findings.evidence import Evidence, location_of
from shardnb.report.model import Finding, Location


def find(evidence: Evidence) -> Iterator[Finding]:
    """Find the constraints that XLA pads, at lines where no collective tells of it already."""
    if evidence.jaxpr is None:
        return
    stated = list(constraints(evidence.jaxpr, evidence.sources))
    told = {_line(location_of(one)) for one in evidence.collectives if one.reason == "uneven"}
    for one in divisibility.check(stated, evidence.mesh.shape):
        if one.kind == "uneven" and _line(one.location) not in told:
            yield Finding("uneven", one.message, one.location, wasted_bytes=one.padded_bytes)


def _line(place: Location | None) -> tuple[int, int] | None:
    return None if place is None else (place.source, place.line)
