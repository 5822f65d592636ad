"""What is said of errors, checks, annotations and comparisons, as pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import singledispatch
from typing import Any

from shardnb.report import Location, Report, Source
from shardnb.report.types import (
    Column,
    Comparison,
    ErrorReport,
    ExplicitPlan,
    Shard,
    ShardMapCheck,
    SpecProblem,
    TypedProgram,
)
from shardnb.views import compared_targets, page, phrases, typed, words
from shardnb.views.code import CodePart, parts_of
from shardnb.views.content import mesh_text
from shardnb.views.formatting import count, dims, size
from shardnb.views.page import (
    Block,
    Code,
    Columns,
    Drawn,
    Folded,
    Lead,
    ListedLine,
    Listing,
    Say,
    Table,
)
from shardnb.views.verdict import verdict

# Inputs, and outputs, of each program that are drawn side by side.
_DRAWN = 4
# Collectives of each program that are named in the summary.
_NAMED = 8

Explained = ErrorReport | ShardMapCheck | ExplicitPlan | Comparison | TypedProgram


def text_of(shown: Explained) -> str:
    """Write it for a terminal."""
    return page.text(_page(shown))


def html_of(shown: Explained, traceback: str = "") -> str:
    """Write it as an HTML fragment; a plain traceback stands under a summary at its end."""
    folded = [Folded("the plain traceback", traceback)] if traceback else []
    return page.html([*_page(shown), *folded])


def mimebundle(shown: Explained) -> dict[str, Any]:
    """Return it as text and as HTML."""
    return {"text/plain": text_of(shown), "text/html": html_of(shown)}


@singledispatch
def _page(shown: Explained) -> Iterator[Block]:
    raise NotImplementedError(type(shown))


# Errors


@_page.register
def _(report: ErrorReport) -> Iterator[Block]:
    yield Lead(report.error, report.sentence)
    yield from _place(report.location, report.sources, report.expression)
    # The last array is on the other mesh, where there is one.
    meshes = [report.mesh] * len(report.values)
    if report.other_mesh and meshes:
        meshes[-1] = report.other_mesh
    placed = zip(report.values, meshes, strict=True)
    yield Drawn(tuple((value, mesh) for value, mesh in placed if mesh is not None))
    if report.cause:
        yield Say(report.cause)
    checked = "compiled" if report.checked else ""
    fixes = report.fixes[:1] if report.candidates else report.fixes
    yield from (Code(phrases.FIX, fix, checked) for fix in fixes)
    if report.candidates:
        rows = tuple(
            (
                candidate.edit,
                ", ".join(f"{kind}[{', '.join(axes)}]" for kind, axes in candidate.collectives)
                or "none",
                size(candidate.wire_bytes),
                "; ".join(filter(None, ("what Auto chooses" * candidate.chosen, candidate.note))),
            )
            for candidate in report.candidates
        )
        yield Table(("edit", "collectives", "sends", ""), rows, code=(0,))
    if [problem.message for problem in report.problems] != [report.sentence]:
        yield from _problems(report.problems, report.sources)
    yield Folded(f"{report.error}, JAX's message", report.message)


def _place(place: Location | None, sources: tuple[Source, ...], expression: str) -> Iterator[Block]:
    source = typed.source_at(place, sources)
    if source is None or place is None:
        return
    line = source.line(place.line)
    part = f", at {expression}" if expression and expression != line.strip() else ""
    yield Listing((ListedLine(place.line, line, ((f"in {source.name}{part}", ""),)),))


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
    answer = "accepted by JAX" if check.accepted else f"refused by JAX, {check.error}"
    yield Lead(f"shard_map {answer}", mesh_text(check.mesh))
    steps = []
    for step in check.steps:
        not_made = step.passed is None and step.message
        passed = "not checked" if not_made else _VERDICT[step.passed]
        steps.append((step.name, passed, step.message))
    yield Table(("check", "", ""), tuple(steps))
    shards = [("in", shard) for shard in check.inputs] + [("out", shard) for shard in check.outputs]
    head = ("", "name", "spec", "global", "per device", "varies over")
    yield Table(head, tuple(_shard(kind, shard) for kind, shard in shards), code=(1, 2))
    for missing in check.missing:
        collective = missing.collective or "a collective"
        yield Lead(f"missing: {collective} over {', '.join(missing.axes)}", missing.why)
        yield from _place(missing.location, check.sources, missing.expression)
        yield Code(phrases.FIX, missing.fix)
        if missing.other_fix:
            yield Code("or:", missing.other_fix)
    yield from _problems(check.problems, check.sources)
    if check.explained is not None:
        yield from _page(check.explained)
    if check.lines:
        yield Lead("The body, line by line")
        yield from typed.page(check.lines, check.sources)
    if check.report is not None:
        yield Say(" ".join(verdict(check.report)))
    if check.message and check.explained is None:
        yield Folded(f"{check.error}, JAX's message", check.message)
    if check.region:
        yield Folded("the module that it lowers to", check.region)


def _shard(kind: str, shard: Shard) -> tuple[str, ...]:
    shapes = shard.shape, shard.local_shape
    whole, local = ("not known" if shape is None else dims(shape) for shape in shapes)
    varying = "not tracked" if shard.varying is None else ", ".join(shard.varying) or "nothing"
    return kind, shard.name, shard.spec, whole, local, varying


# From Auto to Explicit


@_page.register
def _(plan: ExplicitPlan) -> Iterator[Block]:
    number = count(len(plan.annotations), "annotation")
    if plan.unresolved is not None:
        lead = f"{number} found; one place is not resolved"
    elif not plan.annotations:
        lead = "It compiles on Explicit axes as it is"
    else:
        same = "the same collectives as" if plan.same_collectives else "other collectives than"
        lead = f"{number} for Explicit axes; with them it compiles to {same} with Auto axes"
    yield Lead(lead)
    listed = []
    for annotation in plan.annotations:
        source = "as Auto chooses" if annotation.from_auto else "sends least"
        line = annotation.location.line if annotation.location else None
        beside = ((f"{phrases.FIX} {annotation.after}", source),)
        listed.append(ListedLine(line, annotation.before, beside))
    yield Listing(tuple(listed))
    if plan.diff is not None:
        yield Say(f"Auto and Explicit: {plan.diff.sentence}.")
    if plan.unresolved is not None:
        yield Lead("Not resolved")
        yield from _page(plan.unresolved)
    yield from (Folded(f"{source.name}, annotated", source.text) for source in plan.texts)


# Side by side


@_page.register
def _(comparison: Comparison) -> Iterator[Block]:
    columns = comparison.columns
    if comparison.targets:
        yield from compared_targets.page(columns)
        yield from _refusals(columns)
        return
    yield Lead(" | ".join(column.name for column in columns))
    rows = tuple(_summary(column) for column in columns)
    yield Table(("axes", "collectives", "sends", "memory per device"), rows)
    pairs = [(diff, f"{diff.left} and {diff.right}") for diff in comparison.diffs]
    yield from (Say(f"{pair}: {diff.sentence}.") for diff, pair in pairs)
    for diff, pair in pairs:
        if not diff.identical:
            yield Folded(f"{pair}: what differs", "\n".join(diff.instructions))
    if comparison.plan is not None:
        yield from _page(comparison.plan)
    reports = [(column.name, column.report) for column in columns if column.report is not None]
    if len(reports) > 1:
        yield _beside(reports)
        yield from _arrays(reports)
    yield from _refusals(columns)


def _refusals(columns: Sequence[Column]) -> Iterator[Block]:
    """Explain the errors of what did not compile."""
    for column in columns:
        if column.error is not None:
            yield Lead(column.name)
            yield from _page(column.error)


def _summary(column: Column) -> tuple[str, ...]:
    report = column.report
    if report is None:
        error = column.error.error if column.error else "no program"
        return column.name, f"refused: {error}", "", ""
    sent = ", ".join(f"{c.kind}[{', '.join(c.axes or ())}]" for c in report.collectives[:_NAMED])
    left = len(report.collectives) - _NAMED
    sent += f" and {left} more" if left > 0 else ""
    memory = size(report.memory.total) if report.memory else "not known"
    return column.name, sent or "none", words.sent(report.collectives), memory


def _beside(reports: list[tuple[str, Report]]) -> Block:
    """Return the lines of the first program's text with what each program sends there."""
    sources = [next(iter(parts_of(report)), CodePart("", ())) for _, report in reports]
    badges = [
        {
            line.number: "; ".join(f"{row.head} {row.cause}" for row in line.rows)
            for line in source.lines
        }
        for source in sources
    ]
    rows = tuple(
        (str(line.number), line.text, *(by_line.get(line.number, "") for by_line in badges))
        for line in sources[0].lines
        if line.number is not None
    )
    return Table(("", "", *(name for name, _ in reports)), rows, code=(1,))


def _arrays(reports: list[tuple[str, Report]]) -> Iterator[Block]:
    """Draw the arrays of each program, or once if all have the same shardings."""
    drawn, placements = [], []
    for name, report in reports:
        values = (*report.inputs[:_DRAWN], *report.outputs[:_DRAWN])
        drawn.append((name, Drawn(tuple((value, report.mesh) for value in values))))
        placements.append([(v.name, v.shape, v.spec, v.unreduced) for v in values])
    if all(placed == placements[0] for placed in placements):
        yield Say("All of them have the same input and output shardings.")
        yield drawn[0][1]
    else:
        yield Columns(tuple((name, (arrays,)) for name, arrays in drawn))


# Types


@_page.register
def _(program: TypedProgram) -> Iterator[Block]:
    yield from typed.page(program.lines, program.sources)
