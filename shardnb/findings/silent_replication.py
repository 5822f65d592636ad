"""Results that are less sharded than the spec that was stated for them."""

from __future__ import annotations

import math
from collections.abc import Iterator

from shardnb.findings.evidence import Evidence
from shardnb.report.model import Finding, Mesh, Value
from shardnb.report.spec import axes_in, spec_text


def find(evidence: Evidence) -> Iterator[Finding]:
    """Find results that are less split than the spec that was stated for them."""
    mesh = evidence.mesh
    for value in evidence.outputs:
        if value.requested is None or value.spec is None:
            continue
        lost = axes_in(value.requested) - axes_in(value.spec)
        if lost:
            parts = math.prod(mesh.shape[axis] for axis in lost if axis in mesh.shape)
            yield Finding(
                "silent replication",
                f"{value.name} was asked to be {spec_text(value.requested)} and is "
                f"{spec_text(value.spec)}{_uneven(value, mesh)}",
                location=value.location,
                wasted_bytes=value.shard_bytes - -(-value.shard_bytes // parts),
            )


def _uneven(value: Value, mesh: Mesh) -> str:
    for size, axes in zip(value.shape, value.requested or (), strict=False):
        parts = math.prod(mesh.shape.get(axis, 1) for axis in axes)
        if size % parts:
            return f": {size} is not divisible by {parts}"
    return ""
