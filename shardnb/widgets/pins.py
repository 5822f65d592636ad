"""Pinned plans, with the figures that they are compared by."""

from __future__ import annotations

from collections import Counter
from typing import Any

from shardnb.report import Report
from shardnb.report.spec import spec_text
from shardnb.views import words
from shardnb.views.formatting import clean, count, seconds, size
from shardnb.views.recipes import Patterns
from shardnb.widgets.plan import MeshPlan

Figure = dict[str, Any]
# A line of more is not read.
_SPECS = 12


def pin_of(plan: MeshPlan | None, report: Report, patterns: Patterns) -> dict[str, Any]:
    """Return a pin: a plan, its specs as text, and its figures."""
    if plan is None:
        return {"plan": None, "text": clean(report.title), "figures": figures_of(report)}
    return {"plan": plan.data, "text": written_plan(plan, patterns), "figures": figures_of(report)}


def written_plan(plan: MeshPlan, patterns: Patterns) -> str:
    """Write a plan on a line, arrays of one pattern and spec together.

    Replicated is the default for inputs.
    """
    groups: dict[tuple[str, str], list[str]] = {}
    for name, spec in plan.specs:
        if any(spec):
            groups.setdefault((patterns.get(name, name), spec_text(spec)), []).append(name)
    specs = [
        f"{names[0] if len(names) == 1 else f'{pattern} ({len(names)})'}={spec}"
        for (pattern, spec), names in groups.items()
    ]
    more = [f"and {count(len(specs) - _SPECS, 'more pattern')}"] if len(specs) > _SPECS else []
    return clean("  ".join([plan.mesh, *(specs[:_SPECS] or ["all replicated"]), *more]))


def figures_of(report: Report) -> list[Figure]:
    """Return memory and traffic per device, seconds if known, and collectives by kind.

    Each has its name, its text, and a value to compare by, None if unknown.
    """
    held = None if report.memory is None else report.memory.total
    sent = None if words.unknown(report.collectives) else report.wire_bytes
    cost = report.cost
    took = None if cost is None or cost.unpriced else cost.communication_seconds
    kinds = Counter(collective.kind for collective in report.collectives)
    by_kind = ", ".join(count(number, clean(kind)) for kind, number in kinds.items())
    return [
        _figure("memory per device", "unknown" if held is None else size(held), held),
        _figure("sent per run", words.sent(report.collectives), sent),
        *([] if took is None else [_figure("seconds sending", seconds(took), took)]),
        _figure("collectives", by_kind or "none", kinds.total()),
    ]


def _figure(name: str, text: str, value: float | None) -> Figure:
    return {"name": name, "text": text, "value": value}
