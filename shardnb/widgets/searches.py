"""Searches for fixes and plans in a thread, with progress, that a front end can stop."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from shardnb.compiler import Program
from shardnb.progress import Progress, silent
from shardnb.report import Report
from shardnb.report.model import Spec
from shardnb.search.fixes import find_spec_fixes
from shardnb.search.plans import Budget, search_plans
from shardnb.views import searches as words
from shardnb.views.formatting import clean
from shardnb.widgets.exploration import Subject
from shardnb.widgets.latest_job import LatestJob
from shardnb.widgets.plan import MeshPlan, plan_of
from shardnb.worker.process import WORKER, Cancelled

Kind = Literal["fix", "plans"]
# Seconds between two messages to the front end.
_BETWEEN = 0.25
# Somebody waits: `sn.plan` looks at more. Estimates take milliseconds, a compile as long as the
# user's own.
_BUDGET = Budget(previews=100, compiles=12, in_text=False)


@dataclass(frozen=True)
class Found:
    """What a search found: a sentence, and rows with the plan that each leads to, if any does."""

    said: str
    rows: tuple[Mapping[str, Any], ...] = ()


class Searches:
    """Does one search at a time; `show` is called with what to show of it, in its thread."""

    def __init__(self, show: Callable[[dict[str, Any]], None]) -> None:
        """Begin without a search."""
        self._show = show
        self._worker = LatestJob()
        self._latest = self._shown = 0

    def begin(self, kind: Kind, number: int, search: Callable[[Progress], Found]) -> None:
        """Stop the present search and begin another; `number` is the message that asked for it."""
        self.stop()
        this = self._latest
        shown = {"number": number, "kind": kind}
        self._show({**shown, "state": "running", "said": "", "done": 0, "total": 0, "rows": []})

        def job() -> None:
            progress = _Telling(lambda data: self._show({**shown, **data, "rows": []}))

            def told(what: str, done: int, total: int) -> None:
                if this != self._latest:
                    raise KeyboardInterrupt  # as the searches hear of it in a cell
                progress(what, done, total)

            state = "done"
            try:
                with silent():
                    found = search(told)
            except (KeyboardInterrupt, Cancelled):
                found = Found(words.STOPPED)
            # Errors in a thread, bugs included, would be lost otherwise.
            except Exception as error:  # noqa: BLE001
                found, state = Found(words.failed(error)), "failed"
            if self._shown == number:
                self._show({**shown, "state": state, "said": found.said, "rows": list(found.rows)})

        self._shown = number
        self._worker.submit(job)

    def stop(self) -> None:
        """Stop the present search, which shows what it found."""
        self._latest += 1
        WORKER.cancel(self._worker.thread)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until all is done; returns whether it is."""
        return self._worker.wait(seconds)


class _Telling:
    """Hands progress on, not more often than anybody can read it."""

    def __init__(self, show: Callable[[dict[str, Any]], None]) -> None:
        self._show, self._last = show, 0.0

    def __call__(self, what: str, done: int, total: int) -> None:
        now = time.perf_counter()
        if now - self._last >= _BETWEEN:
            self._last = now
            said = words.progress_text(what, done, total)
            self._show({"state": "running", "said": said, "done": done, "total": total})


def fixes_for(
    plan: MeshPlan, compiled: Callable[[], tuple[Program, Report]], progress: Progress
) -> Found:
    """Search for fixes of a plan's program; those that change specs of inputs lead to a plan."""
    program, report = compiled()
    fixed, specs = find_spec_fixes(program, report, progress=progress)
    by_code = {clean(text): changed for text, changed in specs.items()}
    rows = words.fix_rows(fixed)
    return Found(
        words.fixes_said(report, fixed, rows),
        tuple(_row(row, _changed(plan, by_code.get(row[1]))) for row in rows),
    )


def plans_for(plan: MeshPlan, subject: Subject, progress: Progress) -> Found:
    """Search for plans on the mesh of a plan."""
    request = subject.replayed(plan)
    plans = search_plans(request, [request.grid], _BUDGET, progress)
    rows = (
        _row(words.plan_row(each), plan_of(plan.axes, subject.shapes, plans.in_specs(each)))
        for each in plans
    )
    return Found(words.plans_said(plans) if len(plans) else words.NO_PLAN, tuple(rows))


def _changed(plan: MeshPlan, specs: Mapping[str, Spec] | None) -> MeshPlan | None:
    if specs is None or not specs.keys() <= dict(plan.specs).keys():
        return None
    return MeshPlan(plan.axes, tuple({**dict(plan.specs), **specs}.items()))


def _row(row: words.Row, plan: MeshPlan | None) -> dict[str, Any]:
    about, code, effect = row
    return {
        "about": about,
        "code": code,
        "effect": effect,
        "plan": None if plan is None else plan.data,
    }
