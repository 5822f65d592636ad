"""What a compiled plan costs, in the numbers by which plans are compared."""

from __future__ import annotations

from collections import Counter
from typing import Any

from shardnb.report import Report


def cost_of(report: Report) -> dict[str, Any]:
    """Give memory and traffic of one device, its collectives by kind, and seconds where known.

    `seconds` are those of the collectives of one run, None unless the hardware's are known.
    """
    memory = report.memory
    return {
        "memory": memory.total if memory else None,
        "arguments": memory.arguments if memory else None,
        "temporaries": memory.temporaries if memory else None,
        "wire_bytes": report.wire_bytes,
        "untold": sum(c.trips is None for c in report.collectives),
        "kinds": dict(Counter(c.kind for c in report.collectives)),
        "seconds": _seconds(report),
    }


def _seconds(report: Report) -> float | None:
    cost = report.cost
    return None if cost is None or cost.unpriced else cost.communication_seconds
