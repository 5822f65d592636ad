"""Several edits at once: specs of inputs and results, and changes of values in the user's texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from shardnb.compiler import Program, Request
from shardnb.report.model import Location, Spec
from shardnb.rewrite.products import ProductEdit
from shardnb.rewrite.program_edits import (
    ConstraintEdit,
    Edit,
    InputEdit,
    OutputEdit,
    PointEdit,
    SpecsEdit,
    lowered_with,
    respecified,
    with_specs,
)

Part = InputEdit | OutputEdit | SpecsEdit | ConstraintEdit | ProductEdit


@dataclass(frozen=True)
class ComposedEdit:
    """Edits that are made together; each changes something else (see `compose`)."""

    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """Return the edits as the user would write them, one below the other."""
        return "\n".join(part.text for part in self.parts)

    @property
    def location(self) -> Location | None:
        """Return where the first of them that has a line goes."""
        return next((part.location for part in self.parts if part.location), None)

    @property
    def size(self) -> int:
        """Return how many things the user would have to change."""
        return sum(part.size for part in self.parts)

    @cached_property
    def points(self) -> tuple[PointEdit, ...]:
        """The parts that change values in the user's texts."""
        return tuple(part for part in self.parts if isinstance(part, ConstraintEdit | ProductEdit))

    @cached_property
    def inputs(self) -> dict[str, Spec]:
        """The new specs of inputs by their names."""
        specs: dict[str, Spec] = {}
        for part in self.parts:
            if isinstance(part, InputEdit):
                specs |= {name: spec for _, names, spec in part.specs for name in names}
            elif isinstance(part, SpecsEdit):
                specs |= part.inputs
        return specs

    @cached_property
    def results(self) -> dict[int, Spec]:
        """The new specs of results by their numbers."""
        specs: dict[int, Spec] = {}
        for part in self.parts:
            if isinstance(part, SpecsEdit):
                specs |= part.results
            elif isinstance(part, OutputEdit):
                specs[part.number] = part.spec
        return specs

    def lowered(self, program: Program) -> Any:
        """Lower the program with all of them; the user's Python runs where a text is edited."""
        if not self.points:
            return with_specs(program, self.inputs, self.results)
        return lowered_with(self.points, self.request(program))

    def request(self, program: Program) -> Request:
        """Return the program's request with the new specs."""
        return respecified(program, self.inputs, self.results)


def compose(edits: Iterable[Edit]) -> ComposedEdit | None:
    """Return edits as one, in their order; None where two change the same thing.

    An array that a function closes over is placed by a trace of its own, and is not composed.
    """
    parts: list[Part] = []
    for edit in edits:
        if isinstance(edit, ComposedEdit):
            parts += edit.parts
        elif isinstance(edit, Part):
            parts.append(edit)
        else:
            return None
    changed = [thing for part in parts for thing in _changed(part)]
    return ComposedEdit(tuple(parts)) if len(set(changed)) == len(changed) else None


def _changed(part: Part) -> Sequence[object]:
    """Return what an edit changes: names of inputs, numbers of results, points of a text."""
    match part:
        case InputEdit():
            return [name for _, names, _ in part.specs for name in names]
        case SpecsEdit():
            return [*part.inputs, *part.results]
        case OutputEdit():
            return [part.number]
        case _:
            return [(id(part.unit), part.point.number)]
