"""The search for edits that send less: look at many, compile the best, keep what was found."""

from __future__ import annotations

import itertools
import math
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any

from shardnb.bugs import Inconclusive, contained
from shardnb.compiler import Program
from shardnb.progress import Progress
from shardnb.report.edits import Fix, ProposedEdit
from shardnb.report.model import Collective, Finding, Report, Spec
from shardnb.rewrite.program_edits import Edit, InputEdit
from shardnb.rewrite.source_units import units_of
from shardnb.search.fixes.candidates import (
    Ranked,
    closure_edits,
    constraint_edits,
    input_edits,
    output_edits,
    pairs,
    product_edits,
    seen_points,
    together,
)
from shardnb.search.fixes.proposed import fix_of, fixes_of
from shardnb.search.trial import Outcome, aborts_noted, compile_trial
from shardnb.worker.process import WORKER

# As long as one waits for a cell that shows how far it is; a note says what was not tried
# (test_a_time_limit_is_kept_and_said).
SECONDS = 20.0
# A person chooses among a few: less sent, less memory, or fewer words to write.
_SHOWN = 3
# With every input replicated nothing is sent, and each device repeats the work of all others:
# test_no_device_repeats_the_work_of_another. So a fix may add only a tenth of the program's work
# (test_a_small_product_beside_a_large_one_may_be_repeated), or 16 operations for each byte that is
# no longer sent, such as `x * 2` on a replicated `x` (test_a_cell_is_edited_in_its_own_text):
# an accelerator does hundreds of operations in the time in which it sends a byte.
_MORE_WORK = 0.1
_WORK_PER_BYTE = 16
# Two specs may help only together (test_a_partial_sum_is_avoided_by_splitting_columns). Of n edits
# there are n (n - 1) / 2 pairs: 120.
_PAIRED = 16
# Edits of any kind are combined, too, and each is one more trace where it is in the text: 15 pairs
# of those that send least, and the best fix with each of the others that help
# (test_constraints_at_two_lines_are_composed).
_COMBINED, _STACKED = 6, 8
# A whole compile takes longer than a look, so it waits until all were looked at. An edit that sends
# a tenth less than the best so far has it at once, so that an interrupt keeps the best
# (test_an_interrupt_keeps_what_was_found).
_MUCH = 0.9
_STOPPED = "the search for fixes {}: {} of {} edits were tried"
_UNWEIGHED = "the search for fixes ran out of time: not all that may help were compiled"
_NO_TEXT = "no edit of the text was tried: tracing it again raised {}: {}"


def find_fixes(
    program: Program,
    report: Report,
    *,
    collectives: Collection[int] | None = None,
    seconds: float = SECONDS,
    progress: Progress | None = None,
) -> Report:
    """Look for edits that make inferred collectives go away or send less; gives a new report.

    In it `c.fixes` holds for each collective that was searched the edits that change it, best
    first; `()` says that none was found, None that none was sought. `f.fixes` holds those that a
    finding proposed, which are compiled first. Every edit was compiled, as the user would write
    it, and nothing was run. `collectives` are the ids to look at (None: all that the compiler
    inserted). After `seconds`, or at an interrupt, the fixes found so far are kept, and a note says
    so. `progress` is called before each look.

    An edit of the text traces the user's Python once more (see `rewrite.retrace`).
    """
    wanted = [c for c in _inserted(report) if collectives is None or c.id in collectives]
    return _searched(Search(program, report, wanted, time.perf_counter() + seconds, progress))


def find_spec_fixes(
    program: Program, report: Report, *, seconds: float = SECONDS, progress: Progress | None = None
) -> tuple[Report, Mapping[str, Mapping[str, Spec]]]:
    """Look for fixes without the user's Python, as `find_fixes` does otherwise.

    So a thread may look: of the edits of the text none is tried. Also gives for each edit that
    changes specs of inputs alone, by its text, these specs by the names of the arrays.
    """
    deadline = time.perf_counter() + seconds
    search = Search(program, report, _inserted(report), deadline, progress, in_text=False)
    return _searched(search), search.input_specs


def _inserted(report: Report) -> list[Collective]:
    return [
        c
        for c in report.collectives
        if c.asked_by == "inferred" or (c.asked_by is None and c.generated)
    ]


def _searched(search: Search) -> Report:
    report = search.report
    if report.memory is None or not (search.wanted or any(f.edits for f in report.findings)):
        return report
    WORKER.prepare()
    with contained("what the search for fixes would have found"):
        search.run()
    notes = (*report.notes, *search.notes)
    fixes = search.fixes()
    fixed = tuple(replace(c, fixes=fixes.get(c.id, c.fixes)) for c in report.collectives)
    return replace(report, notes=notes, collectives=fixed, findings=tuple(search.findings))


@dataclass
class Trial:
    """An edit with what it was seen to do; `lowered` is kept until it is compiled whole."""

    edit: Edit
    outcome: Outcome
    lowered: Any = None

    @property
    def price(self) -> tuple[int, int, int, int]:
        """What it costs: an edit with more in none of these and less in one is better."""
        outcome = self.outcome
        return outcome.wire_bytes, outcome.memory_bytes, outcome.count, self.edit.size


@dataclass
class Search:
    """Looks at edits until the time is over; at those of the text only where `in_text`."""

    program: Program
    report: Report
    wanted: list[Collective]
    deadline: float
    progress: Progress | None = None
    in_text: bool = True
    done: int = 0
    total: int = 0
    looked: list[Trial] = field(default_factory=list)
    weighed: list[Trial] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    findings: list[Finding] = field(init=False)

    def __post_init__(self) -> None:
        """Take the program as it stands for the measure."""
        report = self.report
        self.before = Outcome(report.collectives, report.memory, report.work)
        self.findings = list(report.findings)
        self._seen: set[str] = set()
        self._longest = 0.0

    def run(self) -> None:
        """Look at every edit in turn; a note says where it stopped early."""
        try:
            complete = self._proposed()
            if self.wanted:
                complete &= self._looks(self._first()) and self._stack()
                complete &= complete and self._looks(list(self._paired()))
            weighed = self._weigh_rest()
            self._report_progress()
        except KeyboardInterrupt:
            self.notes.append(_STOPPED.format("was interrupted", self.done, self.total))
            return
        if not complete:
            self.notes.append(_STOPPED.format("ran out of time", self.done, self.total))
        elif not weighed:
            self.notes.append(_UNWEIGHED)

    def _proposed(self) -> bool:
        """Compile what findings propose: it is the least to do, and the likeliest to help."""
        for at, finding in enumerate(self.findings):
            tried = tuple(e for e in finding.edits if self.in_text or not _is_in_text(e))
            if not tried:
                continue
            self.total += len(tried)
            if time.perf_counter() + self.program.compile_seconds > self.deadline:
                return False
            self._report_progress()
            trying = replace(finding, edits=tried)
            fixes = fixes_of(self.program, self.report, trying, self.before, self.notes)
            self.done += len(tried)
            left = tuple(edit for edit in finding.edits if edit not in tried)
            self.findings[at] = replace(finding, fixes=fixes, edits=left)
        return True

    def _first(self) -> list[Edit]:
        ranked = [*input_edits(self.report, self.wanted), *output_edits(self.report, self.wanted)]
        texts: list[Ranked] = []
        if self.in_text:
            with contained("a fix in the text of the program"):
                texts.extend(self._of_text())
        return [
            edit
            for wave in sorted({r.wave for r in (*ranked, *texts)})
            for turn in itertools.zip_longest(
                [r.edit for r in texts if r.wave == wave],
                [r.edit for r in ranked if r.wave == wave],
            )
            for edit in turn
            if edit is not None
        ]

    def _of_text(self) -> Iterator[Ranked]:
        try:
            units = units_of(self.program, self.report.sources)
            yield from closure_edits(self.program, self.report, self.wanted, units)
            yield from product_edits(self.program, self.report, self.wanted, units)
            points = seen_points(self.program, units)
            yield from constraint_edits(self.program, self.report, self.wanted, points)
        except Inconclusive as refusal:
            error = refusal.__cause__
            self.notes.append(_NO_TEXT.format(type(error).__name__, error))

    def _paired(self) -> Iterator[Edit]:
        looked = sorted(self.looked, key=lambda trial: trial.outcome.wire_bytes)
        singles = [trial.edit for trial in looked if isinstance(trial.edit, InputEdit)]
        yield from pairs(singles[:_PAIRED])
        yield from pairs([trial.edit for trial in looked[:_COMBINED]])

    def _stack(self) -> bool:
        """Add to the best fix, one after the other, the edits that help and help beside it."""
        best = min(self._good(), key=lambda trial: trial.outcome.wire_bytes, default=None)
        if best is None:
            return True
        helping = [trial for trial in self.looked if trial.outcome.beats(self.before)]
        helping.sort(key=lambda trial: (trial.outcome.wire_bytes, trial.edit.size))
        for trial in helping[:_STACKED]:
            both = together(best.edit, trial.edit)
            if both is None or both.text in self._seen:
                continue
            if not self._looks([both]):
                return False
            after = next((t for t in self.looked if t.edit is both), None)
            if after is not None and after.outcome.beats(best.outcome):
                best = after
        return True

    def _looks(self, edits: Sequence[Edit]) -> bool:
        fresh: dict[str, Edit] = {}
        for edit in edits:
            if edit.text not in self._seen:
                fresh.setdefault(edit.text, edit)
        self._seen.update(fresh)
        self.total += len(fresh)
        for edit in fresh.values():
            if time.perf_counter() + self._longest > self.deadline:
                return False
            self._report_progress()
            start = time.perf_counter()
            self._look(edit)
            self.done += 1
            self._longest = max(self._longest, time.perf_counter() - start)
        return True

    def _look(self, edit: Edit) -> None:
        with contained(f"whether this edit is a fix: {edit.text}"), self._noted(edit):
            lowered = edit.lowered(self.program)
            outcome = compile_trial(lowered, self.report.mesh, whole=False)
            better = outcome.beats(self.before)
            self.looked.append(Trial(edit, outcome, lowered if better else None))
            best = min((t.outcome.wire_bytes for t in self.weighed), default=math.inf)
            if better and outcome.wire_bytes < _MUCH * best:
                self._weigh(self.looked[-1])

    def _weigh(self, trial: Trial) -> None:
        lowered, trial.lowered = trial.lowered, None
        edit = trial.edit
        with contained(f"whether this edit is a fix: {edit.text}"), self._noted(edit):
            outcome = compile_trial(lowered, self.report.mesh, whole=True)
            self.weighed.append(Trial(edit, outcome))

    def _noted(self, edit: Edit) -> AbstractContextManager[None]:
        return aborts_noted(self.notes, f"the edit {edit.text}")

    def _weigh_rest(self) -> bool:
        rest = [trial for trial in self.looked if trial.lowered is not None]
        for trial in sorted(rest, key=lambda t: (t.outcome.wire_bytes, t.outcome.count)):
            if time.perf_counter() + self.program.compile_seconds > self.deadline:
                return False
            self._weigh(trial)
        return True

    def _report_progress(self) -> None:
        if self.progress is not None:
            what, before = "edits tried", self.before.wire_bytes
            if before and (good := self._good()):
                best = min(trial.outcome.wire_bytes for trial in good)
                what += f", the best sends {100 * best / before:.0f}% of the bytes"
            self.progress(what, self.done, self.total)

    def _good(self) -> list[Trial]:
        return [trial for trial in self.weighed if self._is_fix(trial.outcome)]

    def _is_fix(self, outcome: Outcome) -> bool:
        """Whether it sends less, and devices do not repeat each other's work for it."""
        if not outcome.beats(self.before) or outcome.memory is None:
            return False
        if outcome.work is None or self.before.work is None:
            return True
        before = self.before.work.flops
        saved = self.before.wire_bytes - outcome.wire_bytes
        return outcome.work.flops - before <= max(_MORE_WORK * before, _WORK_PER_BYTE * saved)

    def fixes(self) -> dict[int, tuple[Fix, ...]]:
        """Return for each collective that was searched the best edits that change it."""
        good = self._good()
        before = Counter(map(_signature, self.before.collectives))
        gone = [before - Counter(map(_signature, trial.outcome.collectives)) for trial in good]
        return {
            c.id: self._best([t for t, left in zip(good, gone, strict=True) if left[_signature(c)]])
            for c in self.wanted
        }

    @property
    def input_specs(self) -> dict[str, dict[str, Spec]]:
        """The specs of inputs that edits change that change nothing else, by the edits' texts."""
        proposed = [edit for finding in self.report.findings for edit in finding.edits]
        found = {
            edit.text: {new.name: new.spec for new in edit.specs}
            for edit in proposed
            if edit.specs and all(new.of == "input" for new in edit.specs)
        }
        for trial in self.weighed:
            if isinstance(trial.edit, InputEdit):
                specs = trial.edit.specs
                found[trial.edit.text] = {name: spec for _, names, spec in specs for name in names}
        return found

    def _best(self, trials: list[Trial]) -> tuple[Fix, ...]:
        kept = [t for t in trials if not any(_dominates(other, t) for other in trials)]
        kept.sort(key=lambda t: (t.outcome.wire_bytes, t.outcome.memory_bytes, len(t.edit.text)))
        shown: dict[tuple[int, ...], Trial] = {}
        for trial in kept:
            shown.setdefault(trial.price[:3], trial)
        best = list(shown.values())[:_SHOWN]
        # What sends least may change a spec of each array; the fix that changes one is shown, too
        # (test_a_fix_splits_the_rows_of_the_second_kernel).
        least = min(kept, key=lambda t: (t.edit.size, t.outcome.wire_bytes), default=None)
        if least is not None and all(trial.edit.size > least.edit.size for trial in best):
            best = [*best[: _SHOWN - 1], least]
        return tuple(fix_of(trial.edit, self.before, trial.outcome) for trial in best)


def _is_in_text(edit: ProposedEdit) -> bool:
    """Whether an edit stands at a line of the text, so that it has to be traced again."""
    return any(new.of == "value" for new in edit.specs)


def _signature(collective: Collective) -> tuple[Any, ...]:
    c = collective
    return c.kind, c.axes, c.dtype, c.shape, c.trips


def _dominates(trial: Trial, other: Trial) -> bool:
    prices = zip(trial.price, other.price, strict=True)
    return trial.price != other.price and all(own <= others for own, others in prices)
