"""What an edit of many specs set and what it left, in words, grouped by pattern."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from shardnb.report.model import Spec
from shardnb.report.spec import spec_text
from shardnb.terms.recipes import LEFT, RECIPES, LeftBecause, Recipe
from shardnb.views.formatting import clean, count, listed

COSTS = "This is a starting point: the compiled program below shows what it costs."
MIRRORED = "Optimizer state"
ALIKE = "Arrays alike"
NO_STATE = (
    "No array belongs to a parameter: none has a path that ends as a parameter's does, and its "
    "shape."
)
NO_PARAMETERS = "The program's dataflow does not show which arrays are parameters."
_NAMED = 4
"""Assumed parameters that are named."""


@dataclass(frozen=True)
class SpecNote:
    """What an edit did: its name, sentences, what it set and what it left.

    In `placed` and `left` the spec or the reason comes before the names of the arrays.
    """

    title: str
    notes: tuple[str, ...] = ()
    placed: tuple[tuple[str, str], ...] = ()
    left: tuple[tuple[str, str], ...] = ()


Patterns = Mapping[str, str]
"""The pattern of each array by its name."""


def recipe_label(recipe: Recipe, axis: str) -> str:
    """Write a recipe's button.

    >>> recipe_label("fsdp", "data")
    'FSDP over data'
    """
    return clean(f"{RECIPES[recipe].prose} over {axis}")


def recipe_notes(
    recipe: Recipe, placed: int, assumed: Sequence[str], idle: Sequence[str]
) -> tuple[str, ...]:
    """Say what a recipe does and to how many arrays.

    Names the arrays that were `assumed` to be parameters, and the mesh axes that shard no input.
    """
    if not placed:
        return ("It shards no array of this program.",)
    notes = [f"{RECIPES[recipe].does}. {count(placed, 'array')} sharded."]
    if idle:
        notes.append(f"No input is sharded over {listed(idle)}.")
    if assumed:
        names = listed([*assumed[:_NAMED], *(["others"] if len(assumed) > _NAMED else [])])
        notes.append(f"{NO_PARAMETERS} Taken for parameters, as x @ W takes W: {names}.")
    notes.append(COSTS)
    return tuple(map(clean, notes))


def left_rows(
    left: Mapping[str, LeftBecause], axis: str, patterns: Patterns
) -> tuple[tuple[str, str], ...]:
    """Write the arrays that a recipe did not shard, with the reason."""
    because: dict[LeftBecause, list[str]] = {}
    for name, why in left.items():
        because.setdefault(why, []).append(name)
    return tuple(
        (clean(LEFT[why].prose.format(axis=axis)), _counted(names, patterns))
        for why, names in because.items()
    )


def mirror_note(specs: Mapping[str, Spec], placed: Sequence[str], patterns: Patterns) -> SpecNote:
    """Say which arrays of the optimizer state got the specs of their parameters."""
    if not placed:
        return SpecNote(MIRRORED, (NO_STATE,))
    said = f"{count(len(placed), 'array')}, each with the spec of its parameter."
    return SpecNote(MIRRORED, (said,), placed_rows(specs, placed, patterns))


def alike_note(name: str, spec: Spec, placed: Sequence[str], patterns: Patterns) -> SpecNote:
    """Say which arrays got the spec of an array that is like them."""
    said = f"{spec_text(spec)}, as {name} has, for {count(len(placed), 'array')}."
    rows = placed_rows(dict.fromkeys(placed, spec), placed, patterns)
    return SpecNote(ALIKE, (clean(said),), rows)


def placed_rows(
    specs: Mapping[str, Spec], names: Iterable[str], patterns: Patterns
) -> tuple[tuple[str, str], ...]:
    """Write arrays with their specs, those of one pattern and spec in one row."""
    rows: dict[str, list[str]] = {}
    for name in names:
        rows.setdefault(spec_text(specs[name]), []).append(name)
    return tuple((clean(spec), _counted(group, patterns)) for spec, group in rows.items())


def _counted(names: Iterable[str], patterns: Patterns) -> str:
    """List patterns, each with its number of arrays.

    >>> _counted(["w[0]", "w[1]", "x"], {"w[0]": "w[*]", "w[1]": "w[*]", "x": "x"})
    'w[*] (2), x'
    """
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(patterns[name], []).append(name)
    written = (
        f"{pattern} ({len(group)})" if len(group) > 1 else group[0]
        for pattern, group in groups.items()
    )
    return clean(", ".join(written))
