"""Plans as a table, in text and HTML, and as a figure of memory against traffic or time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from shardnb.report.plans import Plan, Plans
from shardnb.report.spec import spec_text
from shardnb.views import markup
from shardnb.views.formatting import clean, columns, count, seconds, size

if TYPE_CHECKING:
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure


def text(plans: Plans) -> str:
    """Write plans for a terminal: a row for each, with what it shards below."""
    heads, *rows = columns(_table(plans))
    lines = [_summary(plans), *(["", heads] if rows else [])]
    for plan, row in zip(plans.plans, rows, strict=True):
        lines += [row, *(f"      {line}" for line in _split(plan))]
    return "\n".join([*lines, "", *_notes(plans)])


def _summary(plans: Plans) -> str:
    limit = f" in {size(plans.limit)} per device" if plans.limit is not None else ""
    found = count(len(plans.plans), "plan")
    looked = f"{plans.looked:,} shardings estimated, {plans.compiled:,} compiled"
    return clean(f"{found} for {plans.title}{limit}; {looked}")


def _table(plans: Plans) -> list[list[str]]:
    """Return the heads and a row for each plan; times and meshes where they tell plans apart."""
    timed = any(plan.seconds is not None for plan in plans.plans)
    meshes = len({plan.mesh for plan in plans.plans}) > 1
    least = min((plan.flops for plan in plans.plans if plan.flops), default=None)
    heads = ["", "memory", "sends", "time", "work", "mesh", "collectives"]
    rows = [heads]
    for number, plan in enumerate(plans.plans):
        sent = ", ".join(f"{number} {name}" for name, number in plan.collectives.items())
        rows.append(
            [
                str(number),
                size(plan.memory),
                f"{'at least ' if plan.untold else ''}{size(plan.wire_bytes)}",
                "not known" if plan.seconds is None else seconds(plan.seconds),
                f"{plan.flops / least:.1f}x" if plan.flops and least else "not known",
                clean(" x ".join(f"{axis.name}={axis.size}" for axis in plan.mesh.axes)),
                clean(sent or "none"),
            ]
        )
    shown = {**dict.fromkeys(heads, True), "time": timed, "mesh": meshes}
    return [[cell for head, cell in zip(heads, row, strict=True) if shown[head]] for row in rows]


def _split(plan: Plan) -> list[str]:
    """Say what a plan shards, one line for each pattern; the rest is replicated."""
    split = {name: spec for name, spec in plan.specs.items() if any(spec)}
    width = max(map(len, split), default=0)
    lines = [clean(f"{name:<{width}}  {spec_text(spec)}") for name, spec in split.items()]
    whole = len(plan.specs) - len(split)
    return [*lines, *([f"{count(whole, 'pattern')} replicated"] if whole else [])]


def _notes(plans: Plans) -> Iterator[str]:
    yield from map(clean, plans.notes)
    if not plans.plans:
        return
    yield "memory, sends and work are per device; work is relative to the plan that computes least"
    costs = [plan.cost for plan in plans.plans if plan.cost]
    if costs:
        yield f"time: compute, then communication, estimated for {clean(costs[0].hardware)}"
    emulated = ". Emulated on CPU: the compiler for another device may choose otherwise"
    is_emulated = any(plan.mesh.emulated for plan in plans.plans)
    yield f"Bytes are estimated with the ring algorithm{emulated if is_emulated else ''}."


def html(plans: Plans) -> str:
    """Write plans as an HTML table: a row for each; what it shards is folded."""
    heads, *cells = _table(plans)
    rows = [markup.row(markup.cell(markup.tag("b", markup.text(head))) for head in heads)]
    for plan, (*first, last) in zip(plans.plans, cells, strict=True):
        inside = markup.details(markup.text(last), markup.code("\n".join(_split(plan))))
        rows.append(markup.row(map(markup.cell, (*map(markup.text, first), inside))))
    notes = "".join(markup.block(markup.text(note), markup.FAINT) for note in _notes(plans))
    body = markup.block(markup.tag("b", markup.text(_summary(plans))))
    table = markup.table(rows) if plans.plans else ""
    return markup.fragment(body + table + notes)


def draw(plans: Plans) -> Figure:
    """Draw memory against what is sent, or the seconds; the line is what no plan beats."""
    from shardnb.views.drawing import Drawing

    figure = Drawing(figsize=(7.5, 4.5), layout="constrained")
    axes = figure.subplots()
    timed = all(plan.seconds is not None for plan in plans.plans)
    memory = [plan.memory for plan in plans.plans]
    price = [(plan.seconds or 0.0) if timed else plan.wire_bytes for plan in plans.plans]
    axes.step(memory, price, where="post", color="#9aa7b8")
    axes.plot(memory, price, "o", color="#3b6fb6")
    for number, point in enumerate(zip(memory, price, strict=True)):
        axes.annotate(str(number), point, (5, 5), textcoords="offset points", fontsize=9)
    if plans.limit is not None:
        axes.axvline(plans.limit, color="#c2571a", linestyle="--")
        axes.annotate(
            "memory allowed",
            (plans.limit, 0.98),
            (-4, 0),
            va="top",
            ha="right",
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            fontsize=9,
        )
    axes.set(xlabel="memory per device", ylabel="time per run" if timed else "sent per device")
    _in_bytes(axes.xaxis, max(memory, default=0))
    if timed:
        axes.yaxis.set_major_formatter(lambda value, _: seconds(value) if value > 0 else "0")
    else:
        _in_bytes(axes.yaxis, max(price, default=0))
    axes.set_title(_summary(plans), fontsize=10, parse_math=False)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def _in_bytes(axis: Axis, most: float) -> None:
    """Put the ticks at powers of two."""
    from matplotlib.ticker import MultipleLocator

    step = 2 ** math.ceil(math.log2(max(most, 8) / 5))
    axis.set_major_locator(MultipleLocator(step))
    axis.set_major_formatter(lambda value, _: size(int(value)) if value >= 0 else "")
