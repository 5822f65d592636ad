"""Constraints that the mesh axes do not divide, so that XLA pads."""

from __future__ import annotations

import math
from collections.abc import Iterator

from shardnb.compiler import divisibility
from shardnb.compiler.constraints import constraints
from shardnb.findings.evidence import Evidence, location_of
from shardnb.report.model import Finding, Location


def find(evidence: Evidence) -> Iterator[Finding]:
    """Find the constraints that XLA pads, at lines where no collective tells of it already."""
    if evidence.jaxpr is None:
        return
    sizes = evidence.mesh.shape
    told = {_line(location_of(one)) for one in evidence.collectives if one.reason == "uneven"}
    for stated in constraints(evidence.jaxpr, evidence.sources):
        blocks = math.prod(sizes.get(axis, 1) for axes in stated.entries for axis in axes)
        for problem in divisibility.check([stated], sizes):
            if problem.kind == "uneven" and _line(problem.location) not in told:
                share = -(-(problem.padded_bytes or 0) // blocks)
                yield Finding("uneven", problem.message, problem.location, wasted_bytes=share)


def _line(place: Location | None) -> tuple[int, int] | None:
    return None if place is None else (place.source, place.line)
