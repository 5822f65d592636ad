"""Compiled plans, previews and the subject of an explorer, as its front end reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from shardnb.report import Report
from shardnb.report.spec import spec_text
from shardnb.search.recipes import ProgramArrays, alike_to
from shardnb.terms.axis_types import AXIS_TYPES
from shardnb.views import live
from shardnb.views.formatting import clean, size
from shardnb.views.questions import questions
from shardnb.views.verdict import verdict
from shardnb.widgets.exploration import Subject
from shardnb.widgets.plan import MeshPlan
from shardnb.widgets.plan_edits import offered
from shardnb.widgets.preview import Base, NoPreview

# The most differences on one line of text.
_LISTED = 6


@dataclass(frozen=True)
class Compiled:
    """A compiled plan, with its report and its code."""

    plan: MeshPlan
    report: Report
    codes: tuple[dict[str, str], ...]
    differs: tuple[str, ...] = ()

    @property
    def data(self) -> dict[str, Any]:
        """Return it as the front end reads it."""
        return {
            "plan": self.plan.data,
            "report": live.to_json(self.report),
            "codes": list(self.codes),
            "questions": [asdict(question) for question in questions(self.report)],
            **controls(self.plan),
            "said": summary(self.report, self.differs),
        }


def written_specs(plan: MeshPlan) -> dict[str, str]:
    """Return the specs of a plan as text."""
    return {name: clean(spec_text(spec)) for name, spec in plan.specs}


def no_preview(why: str, plan: MeshPlan) -> dict[str, Any]:
    """Return the answer that there is no preview, and why."""
    said = f"No preview: {why}. Compiling ..."
    return {"kind": "none", "said": said, **controls(plan)}


def controls(plan: MeshPlan) -> dict[str, Any]:
    """Return what the controls of a plan show: its specs as text, and the recipes for its mesh."""
    return {"specs": written_specs(plan), "recipes": offered(plan.axes)}


def summary(report: Report, differs: Sequence[str]) -> str:
    """Say what a device sends and holds, in a line, and what the preview had otherwise."""
    held = f" It holds {size(report.memory.total)}." if report.memory else ""
    other = f" The preview differed: {'; '.join(differs)}." if differs else ""
    return f"{verdict(report)[0]}{held}{other}"


def differences(base: Base | None, plan: MeshPlan, report: Report) -> list[str]:
    """List the results that the compiled program shards otherwise than the preview."""
    try:
        preview = base.preview(plan) if base is not None else None
    except NoPreview:
        return []
    differing = [
        f"{after.name}: Shardy {spec_text(before.spec)}, compiled {spec_text(after.spec)}"
        for before, after in zip(preview.outputs if preview else (), report.outputs, strict=False)
        if before.spec != after.spec
    ]
    more = [f"and {len(differing) - _LISTED} more"] if len(differing) > _LISTED else []
    return [*differing[:_LISTED], *more]


def described(subject: Subject, arrays: ProgramArrays) -> dict[str, Any]:
    """Return the pickers' data: arrays of one pattern, shape and dtype share a picker.

    `alike` are the names of the arrays to which a picker's spec can be applied.
    """
    families: dict[tuple[str, tuple[int, ...], str], list[str]] = {}
    # What is changed first comes first: the batch, then the parameters. Scalars have no choices.
    parts = ("data", "parameter", "state")
    order = sorted(arrays.arrays, key=lambda a: (not a.shape, parts.index(arrays.part(a.name))))
    for array in order:
        families.setdefault((array.pattern, array.shape, array.dtype), []).append(array.name)
    return {
        "title": subject.request.texts.title,
        "types": list(AXIS_TYPES),
        "target": subject.request.grid.target,
        "state": bool(arrays.owners),
        "inputs": [
            {
                "pattern": pattern,
                "names": names,
                "shape": list(shape),
                "dtype": dtype,
                "alike": list(alike_to(arrays, names[0])),
            }
            for (pattern, shape, dtype), names in families.items()
        ],
    }
