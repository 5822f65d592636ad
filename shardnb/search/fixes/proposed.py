"""The edits that findings propose, compiled: what each of them would change."""

from __future__ import annotations

from collections.abc import Iterator

from shardnb.bugs import Inconclusive, contained
from shardnb.compiler import Program
from shardnb.report.edits import Fix, ProposedEdit
from shardnb.report.model import Finding, Report
from shardnb.rewrite.program_edits import ArgumentEdit, ConstraintEdit, Edit, SpecsEdit
from shardnb.rewrite.source_units import units_of
from shardnb.search.fixes.candidates import locate, seen_points
from shardnb.search.trial import Outcome, aborts_noted, compile_trial


def fixes_of(
    program: Program, report: Report, finding: Finding, before: Outcome, notes: list[str]
) -> tuple[Fix, ...]:
    """Compile the edits that a finding proposes, and return those that fix it.

    State that is returned with another sharding costs the next call, so each edit that has it
    returned alike counts; of the others, those with which a device sends or holds less.
    """
    fixes = []
    for proposed in finding.edits:
        with contained(f"whether this edit is a fix: {proposed.text}"):
            edit = _edit(program, report, finding, proposed)
            with aborts_noted(notes, f"the edit {edit.text}"):
                after = compile_trial(edit.lowered(program), report.mesh, whole=True)
            less = after.beats(before) or 0 < after.memory_bytes < before.memory_bytes
            if less or finding.kind == "returned otherwise":
                fixes.append(fix_of(edit, before, after))
    return tuple(fixes)


def fix_of(edit: Edit, before: Outcome, after: Outcome) -> Fix:
    """Return an edit with what it was seen to change."""
    return Fix(
        edit=edit.text,
        collectives=(before.count, after.count),
        wire_bytes=(before.wire_bytes, after.wire_bytes),
        memory_bytes=(before.memory_bytes, after.memory_bytes),
        location=edit.location,
    )


def _edit(program: Program, report: Report, finding: Finding, proposed: ProposedEdit) -> Edit:
    """Return the edit of the program; raises `Inconclusive` where its place is not there."""
    of = {new.of for new in proposed.specs}
    if of == {"argument"}:
        return ArgumentEdit(proposed.text, {new.name: new.spec for new in proposed.specs})
    if of == {"value"}:
        edit = next(_constraints(program, report, finding, proposed), None)
        if edit is None:
            raise Inconclusive(proposed.text)
        return edit
    inputs = {new.name: new.spec for new in proposed.specs if new.of == "input"}
    named = {new.name: new.spec for new in proposed.specs if new.of == "result"}
    numbered = ((number, value.name) for number, value in enumerate(report.outputs))
    results = {number: named[name] for number, name in numbered if name in named}
    return SpecsEdit(proposed.text, inputs, results)


def _constraints(
    program: Program, report: Report, finding: Finding, proposed: ProposedEdit
) -> Iterator[ConstraintEdit]:
    """Yield the constraint at the finding's line on the value that the edit names."""
    (new,), at = proposed.specs, finding.location
    if at is None:
        return
    for seen in seen_points(program, units_of(program, report.sources)):
        place = locate(seen.unit, seen.point, report)
        is_there = place is not None and place.source == at.source
        is_there = is_there and seen.point.line <= at.line <= seen.point.last_line
        if is_there and seen.point.name == new.name and len(new.spec) == len(seen.shape):
            yield ConstraintEdit(seen.unit, seen.point, new.spec, explicit=False, location=place)
