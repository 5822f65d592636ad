"""Plans as a table, in text and HTML, and as a figure of memory against traffic or time."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from shardnb.report.plans import MOST_WORK, Layout, Plan, Plans
from shardnb.report.spec import spec_text
from shardnb.terms.recipes import RECIPES
from shardnb.views import markup
from shardnb.views.content import target_text
from shardnb.views.formatting import clean, columns, count, listed, seconds, size

if TYPE_CHECKING:
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

_LINE = "#9aa7b8"
_NAMED = 3
"""Patterns that a plan's name lists."""


def name_of(plan: Plan) -> str:
    """Name a plan after the recipes that it is nearest to.

    >>> layout_name({"data": "fsdp", "model": "fsdp"})
    'FSDP over data and model'
    """
    name = layout_name(plan.layout)
    if plan.otherwise:
        name = f"near {name}, with {_otherwise(plan)}"
    if plan.activations is not None:
        name = f"{name}, activations constrained to {spec_text(plan.activations)}"
    return clean(name)


def _otherwise(plan: Plan) -> str:
    others = [*plan.otherwise[:_NAMED], *(["others"] if len(plan.otherwise) > _NAMED else [])]
    return f"other specs for {listed(others)}"


def layout_name(layout: Layout) -> str:
    """Name recipes with their axes."""
    axes: dict[str, list[str]] = {}
    for axis, recipe in layout.items():
        axes.setdefault(RECIPES[recipe].prose, []).append(axis)
    parts = [f"{prose} over {listed(over)}" for prose, over in axes.items()]
    return ", ".join(parts) or "everything replicated"


def text(plans: Plans) -> str:
    """Write plans for a terminal: a row for each, with its name and what it shards below."""
    heads, *rows = columns(_table(plans))
    lines = [_summary(plans), *(["", heads] if rows else [])]
    for number, (plan, row) in enumerate(zip(plans.plans, rows, strict=True)):
        lines += [row, *(f"      {line}" for line in _about(plans, number, plan))]
    return "\n".join([*lines, "", *_beaten(plans), *_notes(plans)])


def _summary(plans: Plans) -> str:
    limit = f" in {size(plans.limit)} per device" if plans.limit is not None else ""
    found = count(len(plans.plans), "plan")
    looked = f"{plans.looked:,} shardings estimated"
    seeds = f" ({count(plans.recipes, 'product')} of recipes among them)" if plans.recipes else ""
    return clean(f"{found} for {plans.title}{limit}; {looked}{seeds}, {plans.compiled:,} compiled")


def _table(plans: Plans) -> list[list[str]]:
    """Return the heads and a row for each plan; meshes and fits where they tell plans apart."""
    meshes = len({plan.mesh for plan in plans.plans}) > 1
    fits = any(plan.fits is False for plan in plans.plans)
    heads = ["", "time", "memory", "fits", "sends", "work", "mesh", "recipes"]
    rows = [heads]
    for number, plan in enumerate(plans.plans):
        rows.append(
            [
                str(number),
                "not known" if plan.seconds is None else seconds(plan.seconds),
                size(plan.memory),
                {True: "yes", False: "no", None: "not known"}[plan.fits],
                f"{'at least ' if plan.untold else ''}{size(plan.wire_bytes)}",
                _work(plans, plan),
                clean(" x ".join(f"{axis.name}={axis.size}" for axis in plan.mesh.axes)),
                clean(layout_name(plan.layout)),
            ]
        )
    shown = {**dict.fromkeys(heads, True), "fits": fits, "mesh": meshes}
    return [[cell for head, cell in zip(heads, row, strict=True) if shown[head]] for row in rows]


def _work(plans: Plans, plan: Plan) -> str:
    work = plans.work(plan)
    return "not known" if work is None else f"{work:.1f}x"


def _about(plans: Plans, number: int, plan: Plan) -> Iterator[str]:
    """Say how a plan differs from its recipes, what it shards and what it sends."""
    work = plans.work(plan)
    if work is not None and work > MOST_WORK:
        yield f"devices repeat each other's work: {work:.1f}x the least"
    if plan.otherwise:
        yield clean(f"with {_otherwise(plan)}")
    if plan.activations is not None:
        spec = spec_text(plan.activations)
        yield clean(f"with constraints on activations in the model, {spec}: see diff({number})")
    yield from _split(plan)
    sent = ", ".join(f"{number} {name}" for name, number in plan.collectives.items())
    yield clean(f"collectives: {sent or 'none'}")


def _split(plan: Plan) -> list[str]:
    """Say what a plan shards: the patterns of each spec in a line; the rest is replicated."""
    split: dict[str, list[str]] = {}
    for name, spec in plan.specs.items():
        if any(spec):
            split.setdefault(spec_text(spec), []).append(name)
    width = max(map(len, split), default=0)
    lines = [clean(f"{spec:<{width}}  {', '.join(_alike(of))}") for spec, of in split.items()]
    whole = len(plan.specs) - sum(map(len, split.values()))
    return [*lines, *([f"{count(whole, 'pattern')} replicated"] if whole else [])]


def _alike(names: list[str]) -> list[str]:
    """Name patterns once where others have the same keys: a parameter, and its state.

    >>> _alike(["params['w']", "state.mu['w']", "state.nu['w']", "x"])
    ["params['w'] and 2 alike", 'x']
    """
    ends = {name: re.sub(r"^\w*([^']*(?=\['))?", "", name) for name in names}
    shown: dict[str, int] = {}
    for name in names:
        first = next((one for one in shown if ends[one] and name.endswith(ends[one])), None)
        shown[first or name] = shown.get(first or name, -1) + 1
    return [f"{name} and {more} alike" if more else name for name, more in shown.items()]


def _beaten(plans: Plans) -> Iterator[str]:
    """List the recipes that were compiled and that a plan above beats."""
    if not plans.beaten:
        return
    yield "also compiled, slower and no smaller than a plan above, or repeating work:"
    rows = [
        [
            "",
            "not known" if plan.seconds is None else seconds(plan.seconds),
            size(plan.memory),
            f"{_work(plans, plan)} work",
            clean(layout_name(plan.layout)),
        ]
        for plan in plans.beaten
    ]
    yield from columns(rows)
    yield ""


def _notes(plans: Plans) -> Iterator[str]:
    yield from map(clean, plans.notes)
    if not plans.plans:
        return
    yield "memory, sends and work are per device; work is relative to the plan that computes least"
    priced = [(plan.cost, plan.mesh) for plan in plans.plans if plan.cost]
    if priced:
        cost, mesh = priced[0]
        target = "" if cost.assumed else target_text(mesh)
        yield (
            f"time, estimated for {clean(cost.hardware + target)}: the longer of computing at the "
            "peak rate and of reading and writing arguments and results, then communication"
        )
    emulated = ". Emulated on CPU: the compiler for another device may choose otherwise"
    is_emulated = any(plan.mesh.emulated for plan in plans.plans)
    yield f"Bytes are estimated with the ring algorithm{emulated if is_emulated else ''}."


def html(plans: Plans) -> str:
    """Write plans as an HTML table: a row for each; what it shards is folded."""
    heads, *cells = _table(plans)
    rows = [markup.row(markup.cell(markup.tag("b", markup.text(head))) for head in heads)]
    for number, (plan, (*first, last)) in enumerate(zip(plans.plans, cells, strict=True)):
        about = "\n".join(_about(plans, number, plan))
        inside = markup.details(markup.text(last), markup.code(about))
        rows.append(markup.row(map(markup.cell, (*map(markup.text, first), inside))))
    head, *beaten = [*_beaten(plans)] or [""]
    folded = markup.details(markup.text(head), markup.code("\n".join(beaten))) if head else ""
    notes = "".join(markup.block(markup.text(note), markup.FAINT) for note in _notes(plans))
    body = markup.block(markup.tag("b", markup.text(_summary(plans))))
    table = markup.table(rows) if plans.plans else ""
    return markup.fragment(body + table + folded + notes)


def draw(plans: Plans) -> Figure:
    """Draw memory against what is sent, or the seconds; the line is what no plan beats."""
    from shardnb.views.drawing import Drawing

    figure = Drawing(figsize=(7.5, 4.5), layout="constrained")
    axes = figure.subplots()
    timed = all(plan.seconds is not None for plan in plans.plans)
    memory = [plan.memory for plan in plans.plans]
    price = [(plan.seconds or 0.0) if timed else plan.wire_bytes for plan in plans.plans]
    if memory:
        axes.step(
            *zip(*sorted(zip(memory, price, strict=True)), strict=True), where="post", color=_LINE
        )
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
