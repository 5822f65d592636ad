"""Large inputs of which devices hold copies."""

from __future__ import annotations

import math
from collections.abc import Iterator

from shardnb.findings.evidence import Evidence
from shardnb.report.model import UNUSED, Finding, Mesh, Value
from shardnb.report.spec import axes_in, grid_of

_LARGE = 1 << 20


def find(evidence: Evidence) -> Iterator[Finding]:
    """Find inputs of 1 MiB or more, and of half of all inputs, of which devices hold copies.

    One that is closed over counts whatever its share: its spec cannot be stated.
    """
    mesh = evidence.mesh
    used = [value for value in evidence.inputs if value.details != UNUSED]
    total = sum(value.shard_bytes for value in used)
    for value in used:
        constant = value.closed_over and evidence.constants
        heavy = constant or 2 * value.shard_bytes >= total
        large = value.shard_bytes >= _LARGE and heavy
        copies = mesh.size // max(1, math.prod(grid_of(value, mesh)))
        if large and copies > 1:
            message = f"each block of {value.name} is on {copies} devices{_along(value, mesh)}"
            if value.shard_shape == value.shape:
                message = f"{value.name} is whole on each of {mesh.size} devices"
            if constant:
                message += (
                    ", because jax.jit makes a constant of an array that the function closes over: "
                    "pass it as an argument, with a spec"
                )
            yield Finding(
                "replicated",
                message,
                wasted_bytes=value.shard_bytes * (mesh.size - mesh.size // copies),
            )


def _along(value: Value, mesh: Mesh) -> str:
    """Say along which axes an array is copied, where whole axes say it."""
    if value.spec is None or any(":(" in axis for entry in value.spec for axis in entry):
        return ""
    used = axes_in(value.spec)
    free = [axis.name for axis in mesh.axes if axis.size > 1 and axis.name not in used]
    return f" along {', '.join(free)}"
