"""What a report says, part by part, before it becomes text or HTML: so that all say the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from shardnb.report import Mesh, Report, Value
from shardnb.report.why import explain
from shardnb.views import arrays, measured, words
from shardnb.views.arrays import ArrayRow
from shardnb.views.changes import since_last_run
from shardnb.views.code import CodePart, parts_of
from shardnb.views.formatting import clean, count, seconds
from shardnb.views.memory import PeakTable, memory_parts, peak_table
from shardnb.views.points import MOST, Point, points_of
from shardnb.views.sent import Row, rows_of
from shardnb.views.verdict import outcomes, verdict

_REASONS = 40


@dataclass(frozen=True)
class Arrays:
    """The inputs, outputs or values: a line on all of them, and their rows."""

    label: str
    noun: str
    summary: str
    rows: tuple[ArrayRow, ...] = ()


@dataclass(frozen=True)
class Content:
    """Everything that a view shows, in its order."""

    header: tuple[str, ...]
    verdict: tuple[str, ...]
    outcomes: tuple[tuple[str, bool | None], ...]
    changed: str
    points: tuple[Point, ...]
    rows: tuple[Row, ...]
    code: tuple[CodePart, ...]
    memory: tuple[str, ...]
    peak: PeakTable | None
    inputs: Arrays
    outputs: Arrays
    values: Arrays
    reasons: tuple[str, ...]
    measured: tuple[str, ...]
    cost: str
    over_both: str
    assumptions: tuple[str, ...]
    notes: tuple[str, ...]
    about: tuple[str, ...]


def content_of(report: Report) -> Content:
    """Put a report into words."""
    rows = rows_of(report.collectives, report)
    points = points_of(report, rows)
    return Content(
        header=header(report),
        verdict=verdict(report),
        outcomes=outcomes(report),
        changed=since_last_run(report),
        points=points,
        rows=tuple(_referring(rows, points)),
        code=parts_of(report),
        memory=memory_parts(report.memory, len(report.outputs)),
        peak=peak_table(report),
        inputs=_edge("Inputs", "input", report.inputs, report),
        outputs=_edge("Outputs", "output", report.outputs, report),
        values=_arrays("Values inside the program", "value", report.values, report.mesh),
        reasons=_reasons(report),
        measured=measured.facts(report),
        cost=words.bound(report.cost) if report.cost else "",
        over_both=words.over_both(report.cost),
        assumptions=words.estimated(report.cost) if report.cost else (),
        notes=tuple(map(clean, report.notes)),
        about=about(report),
    )


def _referring(rows: Sequence[Row], points: Sequence[Point]) -> Iterator[Row]:
    """Refer from a row to the finding that tells of it."""
    seen = {
        number: place
        for place, point in enumerate(points[:MOST], 1)
        if point.finding >= 0
        for number in point.collectives
    }
    for row in rows:
        place = seen.get(row.first.id)
        yield row if place is None else replace(row, cause=f"{row.cause} (see {place})")


def header(report: Report) -> tuple[str, ...]:
    """Say what the program ran or would run on, part by part."""
    run, version = report.run, report.versions.get("jax")
    parts = [mesh_text(report.mesh), devices_text(report.mesh)]
    if version:
        parts.append(f"jax {clean(version)}")
    if run.compile_seconds is not None:
        parts.append(f"compiled in {seconds(run.compile_seconds)}")
    if run.run_seconds is not None:
        parts.append(f"ran in {seconds(run.run_seconds)}")
    return tuple(parts)


def mesh_text(mesh: Mesh) -> str:
    """Write a mesh: `mesh data=4 x model=2 (Auto)`."""
    if not mesh.axes:
        return "no mesh"
    sizes = " x ".join(f"{axis.name}={axis.size}" for axis in mesh.axes)
    types = [axis.type.capitalize() for axis in mesh.axes]
    of_all = types[:1] if len(set(types)) == 1 else types
    return clean(f"mesh {sizes} ({', '.join(of_all)})")


def devices_text(mesh: Mesh) -> str:
    """Write the devices: `8 emulated CPU devices`, `8 TPU v5 lite devices (v5e:2x4)`."""
    if mesh.kind == "unknown":
        return count(mesh.size, "device")
    kind = "CPU" if mesh.kind == "cpu" else mesh.kind
    emulated = "emulated " if mesh.emulated else ""
    return clean(f"{count(mesh.size, f'{emulated}{kind} device')}{target_text(mesh)}")


def target_text(mesh: Mesh) -> str:
    """Write the slice or cluster that is compiled for: ` (v5e:2x4)`, "" where it is not one."""
    return "" if mesh.target in ("cpu", "attached", mesh.kind) else f" ({mesh.target})"


def _edge(label: str, noun: str, values: Sequence[Value], report: Report) -> Arrays:
    """Tell of inputs or outputs; a text alone knows only those whose sharding it states."""
    known = report.complete and (report.inputs or report.outputs)
    if not values:
        return Arrays(label, noun, "none" if known else arrays.NOT_KNOWN)
    return _arrays(label, noun, values, report.mesh)


def _arrays(label: str, noun: str, values: Sequence[Value], mesh: Mesh) -> Arrays:
    return Arrays(label, noun, arrays.total(values, noun), arrays.array_rows(values, mesh))


def _reasons(report: Report) -> tuple[str, ...]:
    """Say why each value has its sharding, the first of them where they are many."""
    if not report.values:
        return ()
    said = [f"{clean(line)}." for line in explain(report).splitlines()]
    left = len(said) - _REASONS
    more = (f"and {count(left, 'more value')}: report.why() explains all",) if left > 0 else ()
    return (*said[:_REASONS], *more)


def about(report: Report) -> tuple[str, ...]:
    """Say what holds of all numbers of a report."""
    said = []
    if report.collectives:
        said.append("Bytes are estimated with the ring algorithm.")
    if report.mesh.emulated:
        said.append("Emulated on CPU: the compiler for another device may choose otherwise.")
    said += words.elsewhere(report.collectives)
    if report.mesh.device_ids != tuple(range(report.mesh.size)):
        said.append("Pictures show device ids; HLO counts positions in the mesh.")
    return tuple(said)
