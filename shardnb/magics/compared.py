"""`--compare`: a cell compiled for several axis types or targets, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from IPython.display import display

from shardnb.compiler import Program
from shardnb.compiler.comparison import compare
from shardnb.errors import failures
from shardnb.magics import options
from shardnb.magics.options import MagicLine
from shardnb.magics.prepared import Prepared
from shardnb.magics.session import ProgramText, Session
from shardnb.mesh import is_target
from shardnb.report import Report
from shardnb.report.types import Column, Comparison, ExplicitPlan

ANNOTATED = "explicit, annotated"


def run_compared(session: Session, text: ProgramText, line: MagicLine, *, run: bool) -> Any:
    """Compile a text for each axis type or target, show the programs, and run the first.

    If Explicit axes reject what Auto axes accept, the missing annotations are searched for. Returns
    the value of the last expression; raises what the first axis type raises.
    """
    with session.errors(text.file):
        modes = line.words(options.COMPARE)
        targets = is_target(modes[0])
        if targets and line.has(options.ON):
            raise options.OptionError("--compare names the targets, so leave out --on")
        if targets and line.has(options.HARDWARE):
            raise options.OptionError("--compare prices each target as itself: no --hardware")
        tries = [_tried(session, text, line, mode, run=run and mode == modes[0]) for mode in modes]
        columns = tuple(attempt.column for attempt in tries)
        _show(session, line, Comparison(columns, targets=True) if targets else _comparison(tries))
        first = tries[0]
        if first.error is not None:
            raise first.error
        if first.program is None or first.report is None:
            return None
        unsaved = _without_save(line)
        report = session.keep(unsaved, first.report, [])
        session.forbid(unsaved, report)
        return session.executed(unsaved, first.prepared, first.program, report)[0] if run else None


def _without_save(line: MagicLine) -> MagicLine:
    """Return the line without `--save`, whose name already holds the comparison."""
    return replace(line, values={k: v for k, v in line.values.items() if k != options.SAVE.name})


@dataclass(frozen=True)
class _Try:
    """A cell with one axis type, or for one target: its program and report, or its error."""

    mode: str
    prepared: Prepared
    program: Program | None = None
    report: Report | None = None
    error: Exception | None = None

    @property
    def column(self) -> Column:
        if self.error is None:
            return Column(self.mode, self.report)
        return Column(self.mode, error=failures.report_or_words(self.error))


def _tried(session: Session, text: ProgramText, line: MagicLine, mode: str, *, run: bool) -> _Try:
    if is_target(mode):
        line = replace(line, values={**line.values, options.ON.name: mode})
    axes = None if is_target(mode) else mode
    prepared = session.prepared(text, line, run=run, axes=axes)
    try:
        program, report = prepared.compiled()
    # The cell, JAX and XLA may raise anything; the error is shown instead of the program.
    except Exception as error:  # noqa: BLE001
        return _Try(mode, prepared, error=error)
    return _Try(mode, prepared, program, report)


def _comparison(tries: Sequence[_Try]) -> Comparison:
    plan = _plan(tries)
    columns = [attempt.column for attempt in tries]
    if plan is not None and plan.explicit is not None:
        columns.append(Column(ANNOTATED, plan.explicit))
    return replace(compare(columns), plan=plan)


def _plan(tries: Sequence[_Try]) -> ExplicitPlan | None:
    """Search for the annotations if the cell compiles with Auto axes but not with Explicit axes."""
    by_mode = {attempt.mode: attempt for attempt in tries}
    auto, explicit = by_mode.get("auto"), by_mode.get("explicit")
    if auto is None or explicit is None or auto.error is not None or explicit.error is None:
        return None
    return explicit.prepared.to_explicit()


def _show(session: Session, line: MagicLine, comparison: Comparison) -> None:
    name = line.text(options.SAVE)
    if name is not None:
        session.namespace[name] = comparison
    if line.text(options.VIEW) != "none":
        display(comparison)
