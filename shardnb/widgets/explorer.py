"""The explorer: choose a mesh and specs, see grids and collectives change, compare plans."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

import jax
import traitlets
from IPython import get_ipython

from shardnb.compiler import Program
from shardnb.compiler.call import read_call
from shardnb.compiler.collector import collector_paused
from shardnb.errors import failures
from shardnb.mesh import Grid, make_grid
from shardnb.progress import silent
from shardnb.report import Report
from shardnb.search.recipes import ProgramArrays
from shardnb.tracebacks import with_users_frames
from shardnb.views import live, still
from shardnb.views.formatting import seconds
from shardnb.views.questions import questions
from shardnb.views.searches import AUTO_ONLY
from shardnb.widgets.base import Live
from shardnb.widgets.codes import codes_of
from shardnb.widgets.compiled import (
    Compiled,
    controls,
    described,
    differences,
    no_preview,
    summary,
)
from shardnb.widgets.exploration import Subject, subject_of
from shardnb.widgets.latest_job import LatestJob
from shardnb.widgets.pins import pin_of, written_plan
from shardnb.widgets.plan import MeshPlan
from shardnb.widgets.plan_edits import PlanEdits, arrays_of_program
from shardnb.widgets.preview import Base, NoPreview, base_of
from shardnb.widgets.searches import Kind, Searches, fixes_for, plans_for
from shardnb.worker.process import WORKER

Tree = Any
Data = Mapping[str, Any]

_ABOUT_PLANS = ("preview", "compile", "edit", "fix", "plans")
# Answers after which the pictures belong to an earlier plan.
_NOT_SHOWN = ("refused", "failed")
_FIRST_MESH = "data=4,model=2"
# Reports to keep: the browser asks for a plan again as the user goes back and forth.
_KEPT = 16


@with_users_frames
def explore(
    fn_or_report: Callable[..., Tree] | Report,
    *args: Tree,
    mesh: Any = None,
    axes: str | None = None,
    on: str | None = None,
    in_specs: Tree = None,
    out_specs: Tree = None,
    **options: Any,
) -> Explorer:
    """Return a widget in which you choose the mesh and a spec for each input by clicks.

    The arguments are those of `explain`; only the shapes of arrays are kept. The first plan is
    compiled at once, on the mesh `data=4,model=2` if there is no other. Each click is answered
    first by a preview from Shardy, marked as such, and then by the compiled program. Recipes (data
    parallel, FSDP, tensor parallel) set the specs of many arrays at once, as starting points; a
    spec can be applied to all arrays alike, and those of the parameters to the optimizer state. A
    thread searches for fixes and for plans, which are taken over by a click. Plans can be pinned
    and compared, and their code copied. For a report alone it is the live view, with pins. Raises
    what JAX raises for the first plan.

    >>> import jax, jax.numpy as jnp
    >>> x = jax.ShapeDtypeStruct((256, 512), jnp.float32)
    >>> explorer = explore(jnp.tanh, x, mesh="data=4")
    >>> explorer.report.collectives
    ()
    >>> explorer.close()
    """
    if isinstance(fn_or_report, Report):
        if args or mesh is not None or in_specs is not None or options:
            raise ValueError("expected no further arguments with a report: sn.explore(report)")
        return Explorer(report=fn_or_report)
    call = read_call(fn_or_report, args, options)
    request = call.request(_grid(mesh, axes, on, call.placed), in_specs, out_specs)
    given = jax.tree_util.tree_leaves((call.args, dict(call.kwargs)))
    count = len(jax.tree_util.tree_leaves(request.arguments))
    subject = subject_of(request, statics=len(given) > count)
    try:
        with failures.explained(subject.requested(subject.first)):
            return Explorer(subject)
    except Exception as error:  # of any class: it is raised again
        failures.add_note(error)
        raise


def _grid(mesh: Any, axes: str | None, on: str | None, args: Tree) -> Grid:
    try:
        return make_grid(mesh, axes, on, args)
    except ValueError:
        if mesh is not None:
            raise
        return make_grid(_FIRST_MESH, axes, on)


class Explorer(Live):
    """A widget for the plans of a function; `report` is the program compiled last.

    The front end sends numbered questions: `preview` is answered in `answer`, at once, `edit` in
    `edited`, and `compile` in `compiled`, from a thread that keeps only the newest question;
    `fix` and `plans` in `search`, from a thread of their own.
    """

    subject = traitlets.Dict().tag(sync=True)
    plan = traitlets.Dict().tag(sync=True)
    answer = traitlets.Dict().tag(sync=True)
    compiled = traitlets.Dict().tag(sync=True)
    edited = traitlets.Dict().tag(sync=True)
    search = traitlets.Dict().tag(sync=True)
    pins: Any = traitlets.List().tag(sync=True)

    def __init__(self, subject: Subject | None = None, *, report: Report | None = None) -> None:
        """Compile the first plan of a subject, or show a report."""
        self._subject = subject
        self._worker = LatestJob()
        self._done: OrderedDict[MeshPlan, Compiled] = OrderedDict()
        self._searches = Searches(self._show_search)
        self._base: Base | None = None
        self._arrays = ProgramArrays(())
        self._last: tuple[MeshPlan, Program, Report] | None = None
        self._stopped = 0
        self._shown_plan: MeshPlan | None = None
        self._shell: Any = None
        if subject is not None:
            first = self._compile(subject.first, subject.traced(subject.first, quiet=False))
            self.report, self._shown_plan = first.report, subject.first
            start: dict[str, Any] = {
                "plan": first.plan.data,
                "compiled": {"number": 0, **first.data},
            }
            super().__init__(view="explorer", subject=described(subject, self._arrays), **start)
            self._shell = get_ipython()
            if self._shell is not None:  # else there are no cells to be interrupted
                self._shell.events.register("post_run_cell", self._after_cell)
        elif report is not None:
            self.report = report
            nothing: dict[str, Any] = {"number": 0, "plan": None, "specs": {}, "codes": []}
            asked = [asdict(question) for question in questions(report)]
            shown = {
                "report": live.to_json(report),
                "said": summary(report, ()),
                "questions": asked,
            }
            super().__init__(view="explorer", compiled={**nothing, **shown})
        self.listen(self._hear)

    def text(self) -> str:
        """Return the plan compiled last, its report and the pinned plans as text."""
        return still.explorer_text(*self._still)

    def html(self) -> str:
        """Return the same as HTML."""
        return still.explorer_html(*self._still)

    @property
    def _still(self) -> tuple[str, Report, str, list[list[str]]]:
        """What is shown where no widget is alive."""
        problem = self.answer.get("said", "") if self.answer.get("kind") in _NOT_SHOWN else ""
        is_newer = self.answer.get("number", 0) > self.compiled.get("number", 0)
        table = still.pins_table(self.pins)
        plan = self._shown_plan
        written = "" if plan is None else written_plan(plan, self._arrays.patterns)
        return written, self.report, problem if is_newer else "", table

    def stop(self) -> None:
        """Drop what waits to be compiled, and what is being compiled."""
        self._stopped += 1
        self._worker.stop()
        WORKER.cancel(self._worker.thread)
        self._searches.stop()

    def close(self) -> None:
        """Close the widget and stop its work."""
        self.stop()
        if self._shell is not None:
            self._shell.events.unregister("post_run_cell", self._after_cell)
            self._shell = None
        self._last = None
        super().close()

    def _after_cell(self, result: Any) -> None:
        if isinstance(getattr(result, "error_in_exec", None), KeyboardInterrupt):
            self.stop()

    # Questions from the front end

    def _hear(self, content: Data) -> None:
        kind, number = content.get("kind"), content.get("number", 0)
        if kind == "stop":
            self.stop()
        elif kind == "stop-search":
            self._searches.stop()
        elif kind == "unpin":
            self.pins = [pin for i, pin in enumerate(self.pins) if i != content.get("index")]
            self.keep()
        elif kind == "pin":
            self._pin(content.get("plan"))
        elif kind in _ABOUT_PLANS and self._subject is not None:
            self._about_plan(str(kind), number, content, self._subject)

    def _about_plan(self, kind: str, number: int, content: Data, subject: Subject) -> None:
        start = time.perf_counter()
        try:
            plan = MeshPlan.of(content["plan"])
            subject.check(plan)
            if kind == "edit":
                self._edit(number, content, plan)
                return
        # The front end may send data that is not a plan or an edit, or a plan that does not fit.
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            said = f"This plan does not fit: {error}"
            self.answer = {"number": number, "kind": "refused", "said": said}
            self.keep()
            return
        if kind in ("fix", "plans"):
            self._search("fix" if kind == "fix" else "plans", number, plan, subject)
            return
        if plan in self._done:
            self._show(number, self._done[plan])
        elif kind == "preview":
            self.answer = {"number": number, **self._previewed(plan, start)}
        else:
            self._submit(number, plan, subject)
        self.plan = plan.data

    def _edit(self, number: int, content: Data, plan: MeshPlan) -> None:
        try:
            with collector_paused():
                edited, note = PlanEdits(self._arrays, self._base).edited(content, plan)
        except NoPreview as error:
            self.edited = {
                "number": number,
                "refused": f"Recipes need a preview by Shardy: {error}.",
            }
            return
        shown = {"plan": edited.data, "note": note, **controls(edited)}
        self.edited = {"number": number, **shown}

    def _previewed(self, plan: MeshPlan, start: float) -> dict[str, Any]:
        if self._base is None:
            return no_preview("the first program left no Shardy module", plan)
        try:
            with collector_paused():
                report = self._base.preview(plan)
        except NoPreview as error:
            return no_preview(str(error), plan)
        took = seconds(time.perf_counter() - start)
        said = f"Preview by Shardy in {took}: shardings only. Compiling ..."
        answer = {"kind": "preview", "report": live.to_json(report)}
        return {**answer, "said": said, **controls(plan)}

    def _show(self, number: int, compiled: Compiled) -> None:
        self.report, self._shown_plan = compiled.report, compiled.plan
        self.compiled = {"number": number, **compiled.data}
        self.keep()

    # Compiles

    def _submit(self, number: int, plan: MeshPlan, subject: Subject) -> None:
        """Trace here, in the user's thread, and compile in the worker thread."""
        try:
            trace = subject.traced(plan)
        # The user's function may raise anything; the error is shown, as the front end waits.
        except Exception as error:  # noqa: BLE001
            self._fail(number, plan, error)
            return
        stopped = self._stopped

        def job() -> None:
            try:
                with silent():
                    compiled = self._done.get(plan) or self._compile(plan, trace)
            # XLA may raise anything too. Errors in a thread, bugs included, would be lost
            # otherwise.
            except Exception as error:  # noqa: BLE001
                if stopped == self._stopped:
                    self._fail(number, plan, error)
                return
            if stopped == self._stopped:
                self._show(number, compiled)

        self._worker.submit(job)

    def _compile(self, plan: MeshPlan, trace: Callable[[], Any]) -> Compiled:
        subject = self._subject
        if subject is None:
            raise ValueError("a report alone cannot be compiled again")
        program, report = subject.compiled(plan, trace)
        if self._last is None:
            self._arrays = arrays_of_program(subject, program)
        # For a search of fixes; those of earlier plans would fill the memory.
        self._last = plan, program, report
        if self._base is None or self._base.plan.axes != plan.axes:
            self._base = base_of(plan, program, report) or self._base
        codes = codes_of(subject, plan, program)
        compiled = Compiled(plan, report, codes, tuple(differences(self._base, plan, report)))
        # The texts of many programs would fill the kernel's memory.
        self._done[plan] = replace(compiled, report=replace(report, texts={}))
        while len(self._done) > _KEPT:
            self._done.popitem(last=False)
        return compiled

    def _fail(self, number: int, plan: MeshPlan, error: Exception) -> None:
        why = self._subject.explained(error, plan) if self._subject else str(error)
        said = f"JAX does not compile this plan. {why}"
        self.answer = {"number": number, "kind": "failed", "said": said}
        self.keep()

    # Searches

    def _search(self, kind: Kind, number: int, plan: MeshPlan, subject: Subject) -> None:
        """Begin a search; what has to be traced is traced here, in the user's thread."""
        if not plan.is_auto:
            self._show_search(
                {"number": number, "kind": kind, "state": "failed", "said": AUTO_ONLY, "rows": []}
            )
            return
        try:
            trace = subject.traced(plan)
        except Exception as error:  # noqa: BLE001 - as in `_submit`
            self._fail(number, plan, error)
            return
        last = self._last

        def compiled() -> tuple[Program, Report]:
            if last is not None and last[0] == plan:
                return last[1:]
            return subject.compiled(plan, trace)

        searches = {
            "fix": lambda progress: fixes_for(plan, compiled, progress),
            "plans": lambda progress: plans_for(plan, subject, progress),
        }
        self._searches.begin(kind, number, searches[kind])

    def _show_search(self, data: dict[str, Any]) -> None:
        self.search = data

    # Pins

    def _pin(self, data: Any) -> None:
        if data is None:
            self._add_pin(None, self.report)
            return
        compiled = self._done.get(MeshPlan.of(data))
        if compiled is not None:
            self._add_pin(compiled.plan, compiled.report)

    def _add_pin(self, plan: MeshPlan | None, report: Report) -> None:
        pin = pin_of(plan, report, self._arrays.patterns)
        if pin not in self.pins:
            self.pins = [*self.pins, pin]
            self.keep()
