"""Edits of a plan that the explorer's front end asks for: recipes, to all alike, mirrored state."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, get_args

from shardnb.bugs import contained
from shardnb.compiler import Program
from shardnb.report import Axis
from shardnb.report.spec import axes_in
from shardnb.search import recipes
from shardnb.search.recipes import ProgramArrays
from shardnb.terms.recipes import Recipe
from shardnb.views import recipes as words
from shardnb.widgets.exploration import Subject
from shardnb.widgets.plan import MeshPlan
from shardnb.widgets.preview import Base, NoPreview

Data = Mapping[str, Any]


def offered(axes: Sequence[Axis]) -> list[dict[str, str]]:
    """Return the recipes for a mesh, each with the axis that it is about, for buttons."""
    names: tuple[Recipe, ...] = get_args(Recipe)
    chosen = [(name, recipes.axis_for(name, axes)) for name in names]
    return [
        {"name": name, "axis": axis, "label": words.recipe_label(name, axis)}
        for name, axis in chosen
    ]


def arrays_of_program(subject: Subject, program: Program) -> ProgramArrays:
    """Return what the arrays of a compiled program's arguments are to it."""
    with contained("which arrays are parameters"):
        return recipes.arrays_of(subject.shapes, recipes.training_of(program))
    return recipes.arrays_of(subject.shapes, None)


@dataclass(frozen=True)
class PlanEdits:
    """Edits plans of a program by what its arrays are, and by what Shardy carries."""

    arrays: ProgramArrays
    base: Base | None

    def edited(self, content: Data, plan: MeshPlan) -> tuple[MeshPlan, dict[str, Any]]:
        """Return the plan after the edit that a message asks for, and what is said of it.

        Raises `ValueError` and `KeyError` for what is not an edit, and `NoPreview` where Shardy is
        needed and cannot say.
        """
        kind, specs = content["edit"], dict(plan.specs)
        if kind == "recipe":
            edited, note = self._recipe(content["name"], plan)
        elif kind == "mirror":
            edited = recipes.mirrored(specs, self.arrays)
            note = words.mirror_note(edited.specs, edited.placed, self.arrays.patterns)
        else:
            name = str(content["name"])
            edited = recipes.alike(specs, self.arrays, name)
            note = words.alike_note(name, specs[name], edited.placed, self.arrays.patterns)
        return MeshPlan(plan.axes, tuple(edited.specs.items())), asdict(note)

    def _recipe(self, name: Recipe, plan: MeshPlan) -> tuple[recipes.Edited, words.SpecNote]:
        if self.base is None:
            raise NoPreview("the first program left no Shardy module")
        base, arrays = self.base, self.arrays
        axis = recipes.axis_for(name, plan.axes)

        def carry(specs: recipes.Specs, free: Collection[str]) -> recipes.Specs:
            return base.carried(MeshPlan(plan.axes, tuple(specs.items())), free)

        edited = recipes.applied(name, axis, dict(plan.specs), arrays, plan.axes, carry)
        used = {name for spec in edited.specs.values() for name in axes_in(spec)}
        idle = [each.name for each in plan.axes if each.size > 1 and each.name not in used]
        taken = [each.name for each in arrays.arrays if each.name in arrays.parameters]
        note = words.SpecNote(
            words.recipe_label(name, axis),
            words.recipe_notes(name, len(edited.placed), taken if arrays.assumed else [], idle),
            words.placed_rows(edited.specs, edited.placed, self.arrays.patterns),
            words.left_rows(edited.left, axis, self.arrays.patterns),
        )
        return edited, note
