"""What is said of errors, checks, annotations and comparisons, as pages."""

from __future__ import annotations

from collections.abc import Iterator
from functools import singledispatch
from typing import Any

from shardnb.report import Location, Mesh, Report, Source, Value
from shardnb.report.types import (
    Candidate,
    CheckStep,
    Column,
    Comparison,
    ErrorReport,
    ExplicitPlan,
    MissingCollective,
    ProgramDiff,
    Shard,
    ShardMapCheck,
    SpecProblem,
    TypedProgram,
)
from shardnb.views import page, text, typed
from shardnb.views.code import parts_of
from shardnb.views.content import mesh_text
from shardnb.views.formatting import count, dims, size
from shardnb.views.page import Block, Code, Columns, Drawn, Folded, Lead, Line, Listing, Say, Table

_DRAWN = 4

Explained = ErrorReport | ShardMapCheck | ExplicitPlan | Comparison | TypedProgram


def text_of(shown: Explained) -> str:
    """Write it for a terminal."""
    return page.text(_page(shown))


def html_of(shown: Explained, traceback: str = "") -> str:
    """Write it as an HTML fragment; a plain traceback stands under a summary at its end."""
    folded = [Folded("the plain traceback", traceback)] if traceback else []
    return page.html([*_page(shown), *folded])


def mimebundle(shown: Explained) -> dict[str, Any]:
    """Give it as text and as HTML."""
    return {"text/plain": text_of(shown), "text/html": html_of(shown)}


@singledispatch
def _page(shown: Explained) -> Iterator[Block]:
    raise NotImplementedError(type(shown))


# Errors


@_page.register
def _(report: ErrorReport) -> Iterator[Block]:
    yield Lead(report.error, report.sentence)
    yield from _place(report.location, report.sources, report.expression)
    yield Drawn(tuple(_drawn(report)))
    if report.cause:
        yield Say(report.cause)
    checked = "compiled: JAX takes it" if report.checked else ""
    fixes = report.fixes[:1] if report.candidates else report.fixes
    yield from (Code("write:", fix, checked) for fix in fixes)
    if report.candidates:
        rows = tuple(_candidate(candidate) for candidate in report.candidates)
        yield Table(("edit", "collectives", "sends", ""), rows, code=(0,))
    said = [problem.message for problem in report.problems]
    if said != [report.sentence]:
        yield from _problems(report.problems, report.sources)
    yield Folded(f"{report.error}, in JAX's own words", report.message)


def _drawn(report: ErrorReport) -> Iterator[tuple[Value, Mesh]]:
    """Give the arrays with the mesh of each: the last is on the other one, where there is one."""
    for number, value in enumerate(report.values):
        last = number == len(report.values) - 1
        mesh = report.other_mesh if last and report.other_mesh else report.mesh
        if mesh is not None:
            yield value, mesh


def _place(place: Location | None, sources: tuple[Source, ...], expression: str) -> Iterator[Block]:
    if place is None or not 0 <= place.source < len(sources):
        return
    source = sources[place.source]
    line = source.line(place.line)
    part = expression if expression and expression != line.strip() else ""
    beside = ((f"in {source.name}" + (f", at {part}" if part else ""), ""),)
    yield Listing((Line(place.line, line, beside),))


def _candidate(candidate: Candidate) -> tuple[str, ...]:
    sent = ", ".join(f"{kind}[{', '.join(axes)}]" for kind, axes in candidate.collectives)
    said = ["what Auto chooses"] if candidate.chosen else []
    said += [candidate.note] if candidate.note else []
    return candidate.edit, sent or "none", size(candidate.wire_bytes), "; ".join(said)


def _problems(problems: tuple[SpecProblem, ...], sources: tuple[Source, ...]) -> Iterator[Block]:
    if not problems:
        return
    yield Lead(f"{count(len(problems), 'spec')} to look at")
    for problem in problems:
        place = problem.location
        line = f" (line {place.line})" if place and place.source < len(sources) else ""
        yield Say(f"{problem.message}{line}")
        if problem.fix:
            yield Code("   ", problem.fix)


# The check of a shard_map

_VERDICT = {True: "ok", False: "refused", None: "not reached"}


@_page.register
def _(check: ShardMapCheck) -> Iterator[Block]:
    verdict = "accepted by JAX" if check.accepted else f"refused by JAX, {check.error}"
    yield Lead(f"shard_map {verdict}", mesh_text(check.mesh))
    yield Table(("check", "", ""), tuple(_step(step) for step in check.steps))
    shards = [("in", shard) for shard in check.inputs] + [("out", shard) for shard in check.outputs]
    head = ("", "name", "spec", "whole", "on one device", "varies over")
    yield Table(head, tuple(_shard(kind, shard) for kind, shard in shards), code=(1, 2))
    yield from (block for one in check.missing for block in _missing(one, check.sources))
    yield from _problems(check.problems, check.sources)
    if check.explained is not None:
        yield from _page(check.explained)
    if check.lines:
        yield Lead("The body, line by line")
        yield from typed.page(check.lines, check.sources)
    if check.report is not None:
        yield Say(text.render(check.report, "brief").rpartition("\n")[2])
    if check.message and check.explained is None:
        yield Folded(f"{check.error}, in JAX's own words", check.message)
    if check.region:
        yield Folded("what it lowers to", check.region)


def _step(step: CheckStep) -> tuple[str, ...]:
    not_made = step.passed is None and step.message
    return step.name, "not checked" if not_made else _VERDICT[step.passed], step.message


def _shard(kind: str, shard: Shard) -> tuple[str, ...]:
    whole, local = (
        "not known" if shape is None else dims(shape) for shape in (shard.shape, shard.local_shape)
    )
    varying = "not tracked" if shard.varying is None else ", ".join(shard.varying) or "nothing"
    return kind, shard.name, shard.spec, whole, local, varying


def _missing(one: MissingCollective, sources: tuple[Source, ...]) -> Iterator[Block]:
    yield Lead(f"missing: {one.collective or 'a collective'} over {', '.join(one.axes)}", one.why)
    yield from _place(one.location, sources, one.expression)
    yield Code("write:", one.fix)
    if one.other_fix:
        yield Code("or:", one.other_fix)


# From Auto to Explicit


@_page.register
def _(plan: ExplicitPlan) -> Iterator[Block]:
    yield Lead(_plan_sentence(plan))
    yield Listing(
        tuple(
            Line(
                one.location.line if one.location else None,
                one.before,
                ((f"write: {one.after}", "as Auto chose" if one.from_auto else "sends least"),),
            )
            for one in plan.annotations
        )
    )
    if plan.diff is not None:
        yield Say(f"Auto and Explicit: {plan.diff.sentence}.")
    if plan.unresolved is not None:
        yield Lead("Not resolved")
        yield from _page(plan.unresolved)
    yield from (Folded(f"{source.name}, annotated", source.text) for source in plan.texts)


def _plan_sentence(plan: ExplicitPlan) -> str:
    number = count(len(plan.annotations), "annotation")
    if plan.unresolved is not None:
        return f"{number} found, and one place is left that nothing helped"
    if not plan.annotations:
        return "Explicit axes accept it as it is"
    same = "the same collectives as" if plan.same_collectives else "other collectives than"
    return f"{number} for Explicit axes; with them it compiles to {same} with Auto ones"


# Side by side


@_page.register
def _(comparison: Comparison) -> Iterator[Block]:
    columns = comparison.columns
    yield Lead(" | ".join(column.name for column in columns))
    rows = tuple(_summary(column) for column in columns)
    yield Table(("axes", "collectives", "sends", "memory a device"), rows)
    yield from (Say(f"{diff.left} and {diff.right}: {diff.sentence}.") for diff in comparison.diffs)
    yield from (_folded(diff) for diff in comparison.diffs if not diff.identical)
    if comparison.plan is not None:
        yield from _page(comparison.plan)
    reports = [(column.name, column.report) for column in columns if column.report is not None]
    if len(reports) > 1:
        yield _beside(reports)
        yield from _arrays(reports)
    for column in columns:
        if column.error is not None:
            yield Lead(column.name)
            yield from _page(column.error)


def _folded(diff: ProgramDiff) -> Block:
    return Folded(f"{diff.left} and {diff.right}: what differs", "\n".join(diff.instructions))


def _summary(column: Column) -> tuple[str, ...]:
    report = column.report
    if report is None:
        said = column.error.error if column.error else "no program"
        return column.name, f"refused: {said}", "", ""
    sent = ", ".join(f"{c.kind}[{', '.join(c.axes or ())}]" for c in report.collectives[:8])
    left = len(report.collectives) - 8
    sent += f" and {left} more" if left > 0 else ""
    memory = size(report.memory.total) if report.memory else "not known"
    return column.name, sent or "none", size(report.wire_bytes), memory


def _beside(reports: list[tuple[str, Report]]) -> Block:
    """Give the lines of the first program's text with what each program sends there."""
    led = [_led(report) for _, report in reports]
    first = next(iter(parts_of(reports[0][1])), None)
    lines = [line for line in first.lines if line.number is not None] if first else []
    rows = tuple(
        (str(line.number), line.text, *(by_line.get(line.number, "") for by_line in led))
        for line in lines
    )
    return Table(("", "", *(name for name, _ in reports)), rows, code=(1,))


def _led(report: Report) -> dict[int | None, str]:
    part = next(iter(parts_of(report)), None)
    lines = part.lines if part else ()
    return {
        line.number: "; ".join(f"{entry.head} {entry.cause}" for entry in line.entries.shown)
        for line in lines
    }


def _arrays(reports: list[tuple[str, Report]]) -> Iterator[Block]:
    """Draw the arrays of each program, or once where they lie alike in all."""
    drawn = [(name, _values(report)) for name, report in reports]
    alike = all(_lie(values) == _lie(drawn[0][1]) for _, values in drawn)
    if alike:
        yield Say("The inputs and outputs lie alike in all of them.")
        yield Drawn(drawn[0][1])
    else:
        yield Columns(tuple((name, (Drawn(values),)) for name, values in drawn))


def _values(report: Report) -> tuple[tuple[Value, Mesh], ...]:
    arrays = (*report.inputs[:_DRAWN], *report.outputs[:_DRAWN])
    return tuple((value, report.mesh) for value in arrays)


def _lie(values: tuple[tuple[Value, Mesh], ...]) -> list[tuple[object, ...]]:
    return [(value.name, value.shape, value.spec, value.unreduced) for value, _ in values]


# Types


@_page.register
def _(program: TypedProgram) -> Iterator[Block]:
    yield from typed.page(program.lines, program.sources)
