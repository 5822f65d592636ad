"""Failures of a program: JAX's error explained, and every spec that does not fit."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from shardnb.bugs import contained
from shardnb.compiler import Request, placement
from shardnb.errors import NAMES, explain_error
from shardnb.errors.precheck import precheck
from shardnb.report.types import ErrorReport, SpecProblem
from shardnb.rewrite.retrace import quiet_retrace


@contextmanager
def explained(request: Request) -> Iterator[None]:
    """Attach an explanation to an exception of the block; `report_of` returns it.

    The block compiles the request. The exception itself is raised again.
    """
    try:
        yield
    except Exception as error:  # of any class: it is raised again
        report = explain_error(error, texts=request.texts, grid=request.grid)
        frames = traceback.extract_tb(error.__traceback__)
        # If a check of specs raised, there may be more specs that do not fit.
        if report is not None or (frames and frames[-1].filename == placement.__file__):
            report = _with_problems(request, error, report)
        if report is not None:
            error.__shardnb__ = report  # type: ignore[attr-defined]
        vars(error).pop(NAMES, None)
        raise


def report_of(error: BaseException) -> ErrorReport | None:
    """Return the explanation attached to an exception, or None."""
    report: ErrorReport | None = getattr(error, "__shardnb__", None)
    return report


def add_note(error: BaseException) -> None:
    """Add the explanation of an exception below its traceback."""
    report = report_of(error)
    if report is not None:
        error.add_note(str(report))


def report_or_words(error: BaseException) -> ErrorReport:
    """Return the explanation attached to an exception, or its own message."""
    words = str(error).partition("\n")[0] or type(error).__name__
    return report_of(error) or ErrorReport("other", type(error).__name__, str(error), words)


def _with_problems(
    request: Request, error: Exception, report: ErrorReport | None
) -> ErrorReport | None:
    """Add the problems with specs if there are more than the one that the error names."""
    if isinstance(error, placement.SpecStructureError):
        return report  # the other checks need specs that fit the structure
    located = request.texts.located()
    problems: tuple[SpecProblem, ...] = ()
    with contained("what is wrong with the specs"), quiet_retrace():
        problems = tuple(problem for problem in precheck(request, located) if problem.fatal)
    if len(problems) < 2:
        return report
    if report is not None:
        return replace(report, problems=problems)
    return ErrorReport(
        kind=problems[0].kind,
        error=type(error).__name__,
        message=str(error),
        sentence=f"{len(problems)} specs do not fit",
        sources=located.texts(),
        problems=problems,
    )
