"""What a report says, part by part, before it becomes text or HTML: so that both say the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

from shardnb.report import Finding, Memory, Mesh, Report, Value
from shardnb.report.model import UNUSED
from shardnb.report.spec import spec_text, type_text
from shardnb.report.why import explain
from shardnb.terms.causes import ASKERS, AskedBy
from shardnb.views import words
from shardnb.views.code import CodePart, parts_of
from shardnb.views.entries import Entries, tell
from shardnb.views.formatting import clean, clean_lines, count, dims, names, seconds, size
from shardnb.views.layout import copies, layout_of

# How much a reader takes in at once. Collectives: each of so many, else so many groups of them.
_SINGLE = 24
_GROUPS = 8
# Arrays: each of so many, else so many rows of those that lie alike.
_SINGLE_ROWS = 12
_ROWS = 16
_FINDINGS = 40
_REASONS = 40

NOTHING = "no communication"
NOT_PARTITIONED = "communication not known: the program is not partitioned yet"


@dataclass(frozen=True)
class ArrayRow:
    """An array, or arrays that lie alike: name, type with the placement, block on a device."""

    name: str
    type: str
    shard: str
    size: str
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class ArrayTable:
    """The arrays that are shown, and a sentence on those that are not."""

    rows: tuple[ArrayRow, ...]
    rest: str = ""


_NOT_KNOWN = ArrayTable((), "not known")


@dataclass(frozen=True)
class Remark:
    """A finding: `head` names it with its line, `text` says it, `details` is for a second look.

    `values` are the arrays to draw beside it.
    """

    head: str
    text: str
    details: str = ""
    values: tuple[Value, ...] = ()


@dataclass(frozen=True)
class Content:
    """Everything that a view shows, in its order."""

    header: tuple[str, ...]
    code: tuple[CodePart, ...]
    summary: str
    entries: Entries
    inputs: ArrayTable
    outputs: ArrayTable
    values: ArrayTable
    reasons: tuple[str, ...]
    memory: str
    cost: str
    assumptions: tuple[str, ...]
    findings: tuple[Remark, ...]
    notes: tuple[str, ...]
    about: tuple[str, ...]


def content_of(report: Report) -> Content:
    """Put a report into words."""
    # A report of a text alone has neither inputs nor outputs: it does not know them.
    known = report.inputs or report.outputs
    shown = [finding(each, report) for each in report.findings[:_FINDINGS]]
    if left := len(report.findings) - len(shown):
        more = count(left, "more finding")
        shown.append(Remark("", f"and {more}: all are in report.findings"))
    return Content(
        header=header(report),
        code=parts_of(report),
        summary=summary(report),
        entries=tell(report.collectives, report, single=_SINGLE, limit=_GROUPS),
        inputs=_table(report.inputs, report.mesh, "input") if known else _NOT_KNOWN,
        outputs=_table(report.outputs, report.mesh, "output") if known else _NOT_KNOWN,
        values=_table(report.values, report.mesh, "value"),
        reasons=_reasons(report),
        memory=", ".join(memory_parts(report.memory, len(report.outputs))),
        cost=words.bound(report.cost) if report.cost else "",
        assumptions=words.estimated(report.cost) if report.cost else (),
        findings=tuple(shown),
        notes=tuple(map(clean, report.notes)),
        about=about(report),
    )


def header(report: Report) -> tuple[str, ...]:
    """Say what the program ran or would run on, part by part."""
    run, version = report.run, report.versions.get("jax")
    parts = [mesh_text(report.mesh), devices_text(report.mesh)]
    if version:
        parts.append(f"jax {clean(version)}")
    if run.compile_seconds is not None:
        parts.append(f"compiled {seconds(run.compile_seconds)}")
    if run.run_seconds is not None:
        parts.append(f"ran {seconds(run.run_seconds)}")
    return tuple(parts)


def mesh_text(mesh: Mesh) -> str:
    """Write a mesh: `mesh data=4 x model=2 (auto, auto)`."""
    if not mesh.axes:
        return "no mesh"
    sizes = " x ".join(f"{axis.name}={axis.size}" for axis in mesh.axes)
    return clean(f"mesh {sizes} ({', '.join(axis.type for axis in mesh.axes)})")


def devices_text(mesh: Mesh) -> str:
    """Write the devices: `8 emulated cpu devices`, `8 TPU v5 lite devices (v5e:2x4)`."""
    if mesh.kind == "unknown":
        return count(mesh.size, "device")
    kind = f"{'emulated ' if mesh.emulated else ''}{mesh.kind}"
    target = "" if mesh.target in ("cpu", "attached", mesh.kind) else f" ({mesh.target})"
    return clean(f"{count(mesh.size, f'{kind} device')}{target}")


def summary(report: Report) -> str:
    """Say what is sent and who asked, in one line."""
    collectives = report.collectives
    if not report.partitioned:
        called = f"; it calls {count(len(collectives), 'collective')} itself" if collectives else ""
        return f"{NOT_PARTITIONED}{called}"
    if not collectives:
        return NOTHING
    unknown = words.unknown(collectives)
    branched = sum("conditional" in c.within for c in collectives)
    least = "at least " if unknown else "at most " if branched else ""
    who = Counter(map(words.asked, collectives))
    always = get_args(AskedBy)
    parts = [f"{who[asker]:,} {asker}" for asker in ASKERS if asker in always or who[asker]]
    sent = f"{least}{size(report.wire_bytes)} sent by each device a run"
    loops = f"; {unknown:,} in loops whose trip count is not known" if unknown else ""
    loops += f"; {branched:,} in branches of which one runs, each counted" if branched else ""
    return f"{count(len(collectives), 'collective')}: {sent}; {', '.join(parts)}{loops}"


def _edge(report: Report, values: Sequence[Value], noun: str) -> ArrayTable:
    """Tell of inputs or outputs; a text alone knows only those whose sharding it states."""
    if values or (report.complete and (report.inputs or report.outputs)):
        return _table(values, report.mesh, noun)
    return ArrayTable((), "not known")


def _table(values: Sequence[Value], mesh: Mesh, noun: str) -> ArrayTable:
    """Tell arrays one by one while they are few, else those together that lie alike."""
    groups = [[value] for value in values]
    if len(values) > _SINGLE_ROWS:
        alike: dict[tuple[object, ...], list[Value]] = {}
        for value in values:
            like = type_text(value), value.shard_shape, copies(value, mesh), *remarks(value, mesh)
            alike.setdefault(like, []).append(value)
        groups = list(alike.values())
    held = [sum(value.shard_bytes for value in group) for group in groups]
    heavy = sorted(range(len(groups)), key=lambda i: -held[i])
    rows = tuple(_row(groups[i], mesh) for i in sorted(heavy[:_ROWS]))
    left = heavy[_ROWS:]
    if not left:
        return ArrayTable(rows)
    number = sum(len(groups[i]) for i in left)
    return ArrayTable(rows, smaller(number, sum(held[i] for i in left), noun))


def smaller(number: int, held: int, noun: str) -> str:
    """Say what is not shown: `and 3 smaller inputs, 12 KiB a device`."""
    return f"and {count(number, f'smaller {noun}')}, {size(held)} a device"


def _row(alike: Sequence[Value], mesh: Mesh) -> ArrayRow:
    value = alike[0]
    number = f"{len(alike)} x " if len(alike) > 1 else ""
    return ArrayRow(
        name=clean(names([like.name for like in alike], limit=1)),
        type=clean(type_text(value)),
        shard=f"{dims(value.shard_shape)} a device",
        size=f"{number}{size(value.shard_bytes)}",
        remarks=tuple(filter(None, (clean(copies(value, mesh)), *remarks(value, mesh)))),
    )


def remarks(value: Value, mesh: Mesh) -> list[str]:
    """Say what else holds of an array: partial sums, what was asked for."""
    said = []
    if value.manual:
        said.append(f"one device's, in a shard_map over {', '.join(value.manual)}")
    if value.unreduced:
        said.append(f"partial sums over {', '.join(value.unreduced)}")
    if value.spec is None:
        known = layout_of(value, mesh) is not None
        said.append("no mesh axes say where it lies" if known else "where it lies is not known")
    if value.requested is not None and value.requested != value.spec:
        said.append(f"you asked for {spec_text(value.requested)}")
    if value.memory:
        said.append(f"in {value.memory} memory")
    if value.closed_over:
        said.append("closed over")
    if value.details == UNUSED:
        said.append(UNUSED)
    return list(map(clean, said))


def _reasons(report: Report) -> tuple[str, ...]:
    """Say why each value lies as it does, the first of them where they are many."""
    if not report.values:
        return ()
    said = [f"{clean(line)}." for line in explain(report).splitlines()]
    left = len(said) - _REASONS
    more = (f"and {count(left, 'more value')}: report.why() says all",) if left > 0 else ()
    return (*said[:_REASONS], *more)


def memory_parts(memory: Memory | None, outputs: int) -> tuple[str, ...]:
    """Say what one device holds at once, part by part."""
    if memory is None:
        return ("not known: the compiler gave no analysis",)
    noun = "output" if outputs == 1 else "outputs"
    reused = f"; {size(memory.aliased)} of it reused from donated inputs" if memory.aliased else ""
    closed = f" ({size(memory.constants)} of it closed over)" if memory.constants else ""
    host = f"; {size(memory.host)} more on its host" if memory.host else ""
    return (
        f"{size(memory.arguments)} arguments{closed}",
        f"{size(memory.outputs)} {noun}",
        f"{size(memory.temporaries)} temporaries a device{reused}{host}",
    )


def finding(found: Finding, report: Report) -> Remark:
    """Put a finding into words, with its line and its price."""
    place = f" {words.at(found.location, report)}" if found.location else ""
    price = (
        "" if found.wasted_bytes is None else f"  ({size(found.wasted_bytes)} wasted per device)"
    )
    said = clean(found.message) + price
    return Remark(clean(found.kind) + place, said, clean_lines(found.details), found.values)


def about(report: Report) -> tuple[str, ...]:
    """Say what holds of all numbers of a report."""
    said = []
    if report.collectives:
        said.append("Bytes sent are by the ring formula; what the hardware does may differ.")
    if report.mesh.emulated:
        said.append("Emulated on CPU: the compiler for another device may choose otherwise.")
    if report.mesh.device_ids != tuple(range(report.mesh.size)):
        said.append("Pictures show device ids; HLO counts the positions of the mesh.")
    return tuple(said)
