"""The plans that were pinned, with the figures by which they are compared."""

from __future__ import annotations

from collections import Counter
from typing import Any

from shardnb.report import Report
from shardnb.report.spec import spec_text
from shardnb.views import words
from shardnb.views.formatting import clean, count, seconds, size
from shardnb.widgets.plan import MeshPlan

Figure = dict[str, Any]


def pin_of(plan: MeshPlan | None, report: Report) -> dict[str, Any]:
    """Give a pin: a plan, how it is written, and its figures."""
    if plan is None:
        return {"plan": None, "text": clean(report.title), "figures": figures_of(report)}
    # Replicated inputs go without saying.
    specs = [f"{name}={spec_text(spec)}" for name, spec in plan.specs if any(spec)]
    text = clean("  ".join([plan.mesh, *(specs or ["all whole"])]))
    return {"plan": plan.data, "text": text, "figures": figures_of(report)}


def figures_of(report: Report) -> list[Figure]:
    """Give memory and traffic of one device, seconds where known, and collectives by kind.

    Each has its name, its text, and a value to compare by, None where that is not known.
    """
    held = None if report.memory is None else report.memory.total
    sent = None if words.unknown(report.collectives) else report.wire_bytes
    cost = report.cost
    took = None if cost is None or cost.unpriced else cost.communication_seconds
    kinds = Counter(collective.kind for collective in report.collectives)
    by_kind = ", ".join(count(number, clean(kind)) for kind, number in kinds.items())
    return [
        _figure("memory a device", "not known" if held is None else size(held), held),
        _figure("sends a run", words.sent(report.collectives), sent),
        *([] if took is None else [_figure("seconds sending", seconds(took), took)]),
        _figure("collectives", by_kind or "none", kinds.total()),
    ]


def _figure(name: str, text: str, value: float | None) -> Figure:
    return {"name": name, "text": text, "value": value}
