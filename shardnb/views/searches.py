"""What a search for fixes or plans found, in words, for the explorer."""

from __future__ import annotations

from collections.abc import Sequence

from shardnb.report import Report
from shardnb.report.plans import Plan, Plans
from shardnb.report.spec import spec_text
from shardnb.views.content import content_of
from shardnb.views.formatting import clean, count, seconds, size
from shardnb.views.plans import name_of

STOPPED = "Stopped before anything was compiled."
AUTO_ONLY = (
    "Fixes and plans are searched here on Auto axes only: with other axes the program itself "
    "states shardings. %%shard --fix takes any axes."
)
NO_PLAN = "No plan was compiled."
_NO_FIX = "No spec of an input or a result that was tried sends less."
_NONE_WANTED = "The compiler inserted no collective, so no fix was sought."
_IN_TEXT = "Edits of the text are not tried here: %%shard --fix tries them, too."
Row = tuple[str, str, str]
"""What it is about, the edit or the specs, and its effect."""


def progress_text(what: str, done: int, total: int) -> str:
    """Say how far a search is.

    >>> progress_text("edits tried", 3, 20)
    'edits tried: 3 of 20'
    """
    return clean(f"{what}: {done} of {total}")


def failed(error: Exception) -> str:
    """Say that a search failed, in the words of the error."""
    return f"The search failed. {type(error).__name__}: {clean(str(error))}"


def fix_rows(fixed: Report) -> list[Row]:
    """Return each compiled fix of a report, under what it is about."""
    rows = [
        (point.head, edit.code, edit.effect)
        for point in content_of(fixed).points
        for edit in point.edits
        if edit.compiled
    ]
    return list({row[1]: row for row in rows}.values())


def fixes_said(before: Report, fixed: Report, rows: Sequence[Row]) -> str:
    """Say how many fixes there are, and what the search left out."""
    wanted = any(c.asked_by != "called" for c in before.collectives)
    none = _NO_FIX if wanted or before.findings else _NONE_WANTED
    notes = [note for note in fixed.notes if note not in before.notes]
    parts = [f"{count(len(rows), 'compiled fix')}." if rows else none]
    parts += [f"{clean(note)[:1].upper()}{clean(note)[1:]}." for note in notes]
    return " ".join([*parts, *([_IN_TEXT] if wanted else [])])


def plan_row(plan: Plan) -> Row:
    """Return what a plan is called, holds and sends, and what it shards."""
    sends = f"{'at least ' * bool(plan.untold)}{size(plan.wire_bytes)}" if plan.wire_bytes else ""
    took = "" if plan.seconds is None else f", takes {seconds(plan.seconds)}"
    kinds = ", ".join(f"{number} {name}" for name, number in plan.collectives.items())
    head = f"{name_of(plan)}: holds {size(plan.memory)}, sends {sends or 'nothing'}{took}"
    specs = [f"{name}={spec_text(spec)}" for name, spec in plan.specs.items() if any(spec)]
    return head, clean("  ".join(specs) or "all replicated"), clean(kinds or "no collectives")


def plans_said(plans: Plans) -> str:
    """Say how many plans there are, and what was tried for them."""
    tried = f"{plans.looked:,} shardings estimated, {plans.compiled:,} compiled"
    number = count(len(plans), "plan")
    best = "no other compiled plan is faster or smaller" if len(plans) == 1 else ""
    best = best or "of the compiled plans no other one beats them in both memory and time"
    notes = [f"{clean(note)[:1].upper()}{clean(note)[1:]}." for note in plans.notes]
    return " ".join([f"{number}: {best} ({tried}).", *notes])
