"""What bounds a step, as a figure: its place under the roofs, and the seconds of each part."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from shardnb.report import Report
from shardnb.report.cost import Cost
from shardnb.views import words
from shardnb.views.formatting import clean, seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_COMPUTE, _MEMORY, _SENT = "#3b6fb6", "#7a7a7a", "#c2571a"
_HATCHES = ("//", "\\\\", "xx", "..", "++")


def draw(report: Report) -> Figure:
    """Draw the roofline of a step beside its seconds, on the hardware of `report.cost`.

    Raises `ValueError` where the report has no seconds.
    """
    from shardnb.views.drawing import Drawing

    cost = report.cost
    if cost is None:
        raise ValueError(
            "the report has no seconds: its devices are emulated or unknown; "
            "report.on_hardware('v5e') gives a copy that has them"
        )
    figure = Drawing(figsize=(11, 4.4), layout="constrained")
    figure.suptitle(clean(words.bound(cost)), fontsize=11, parse_math=False)
    roofs, parts = figure.subplots(1, 2)
    _roofs(roofs, report, cost)
    _parts(parts, cost)
    return figure


class _Roof(NamedTuple):
    """What moves bytes, how many in a step, and how many a second."""

    name: str
    moved: float
    speed: float
    colour: str
    marker: str


def _roofs(axes: Axes, report: Report, cost: Cost) -> None:
    """Draw what the step could compute each second, by the bytes that it moves for it."""
    work, peak = report.work, cost.peak_flops
    roofs = []
    if work and (took := cost.memory_seconds):
        moved = work.accessed_bytes
        roofs.append(_Roof("memory", moved, moved / took, _MEMORY, "o"))
    if (took := cost.communication_seconds) and (moved := report.wire_bytes):
        roofs.append(_Roof("communication", moved, moved / took, _SENT, "s"))
    if work is None or not peak or not work.flops or not roofs:
        axes.set_axis_off()
        axes.text(0.5, 0.5, "the work is not known", ha="center")
        return
    places = [work.flops / roof.moved for roof in roofs]
    # Computing takes longest from so many operations for each byte.
    ridges = [peak / roof.speed for roof in roofs]
    low, high = min(*places, *ridges) / 10, max(*places, *ridges) * 10
    axes.plot([low, high], [peak, peak], color=_COMPUTE, label=f"peak: {peak / 1e12:.3g} TFLOP/s")
    for roof, place, ridge in zip(roofs, places, ridges, strict=True):
        label = f"{roof.name}: {roof.speed / 1e9:,.3g} GB/s"
        axes.plot([low, ridge], [low * roof.speed, peak], color=roof.colour, label=label)
        reached = min(peak, place * roof.speed)
        look = {"color": roof.colour, "marker": roof.marker, "markersize": 9, "linestyle": "none"}
        axes.plot([place], [reached], label=f"this step, {roof.name}", **look)  # type: ignore[arg-type]
    axes.set(xscale="log", yscale="log", xlabel="operations per byte moved")
    axes.set(ylabel="operations per second per device")
    axes.legend(fontsize=8)
    axes.grid(visible=True, which="major", linewidth=0.4)


def _parts(axes: Axes, cost: Cost) -> None:
    """Draw the seconds of each part, those of communication by axis."""
    known = {"communication": cost.communication_seconds, **cost.parts}
    names = [name for name in ("communication", "memory", "compute") if name in known]
    colours = {"communication": _SENT, "memory": _MEMORY, "compute": _COMPUTE}
    longest = max(known.values()) or 1.0
    for row, name in enumerate(names):
        total = known[name]
        least = cost.memory_least_seconds if name == "memory" else None
        if least is not None:
            # From its least, which is certain, to its most, which is drawn paler.
            axes.barh(row, least, color=colours[name])
            axes.barh(row, total - least, left=least, color=colours[name], alpha=0.35)
        elif name != "communication" or not cost.by_axis:
            axes.barh(row, total, color=colours[name])
        left = 0.0
        for number, (axis, part) in enumerate(cost.by_axis.items() if row == 0 else ()):
            hatch = _HATCHES[number % len(_HATCHES)]
            axes.barh(row, part, left=left, color=_SENT, hatch=hatch, edgecolor="white")
            if part > longest / 12:
                label = axes.text(left + part / 2, row, axis, ha="center", va="center", fontsize=8)
                label.set(bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5})
            left += part
        took = seconds(total) if not least else f"{seconds(least)} to {seconds(total)}"
        axes.text(total + longest / 60, row, took, va="center", fontsize=9)
    ranged = cost.memory_least_seconds
    limits = {"memory": "memory" if ranged else "memory (at most)", "compute": "compute (at least)"}
    axes.set_yticks(range(len(names)), [limits.get(name, name) for name in names])
    axes.set(xlim=(0, longest * 1.35), xlabel="time per run")
    axes.locator_params(axis="x", nbins=4)
    axes.xaxis.set_major_formatter(lambda value, _: seconds(value) if value else "0")
    axes.spines[["top", "right"]].set_visible(False)
