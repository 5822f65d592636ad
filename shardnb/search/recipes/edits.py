"""Edits of the specs of many arrays at once: to all alike, and from parameters to their state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from shardnb.report.model import Spec
from shardnb.search.recipes.arrays import ProgramArrays
from shardnb.terms.recipes import LeftBecause

Specs = Mapping[str, Spec]
"""A spec for each array by its name."""


@dataclass(frozen=True)
class Edited:
    """The specs after an edit, the names of the arrays that it set, and why it left others."""

    specs: Specs
    placed: tuple[str, ...]
    left: Mapping[str, LeftBecause] = field(default_factory=dict)


def alike(specs: Specs, arrays: ProgramArrays, name: str) -> Edited:
    """Give the spec of an array to all that are alike, such as the kernels of all layers.

    Raises `ValueError` for a name that no array has.

    Alike are arrays of one shape and dtype that are the same to the program (parameters, optimizer
    state, data) and whose paths differ in numbers only, or end with the same name.
    """
    names = alike_to(arrays, name)
    return Edited({**specs, **dict.fromkeys(names, specs[name])}, names)


def alike_to(arrays: ProgramArrays, name: str) -> tuple[str, ...]:
    """Return the names of the arrays that are alike, without its own."""
    chosen = arrays.by_name.get(name)
    if chosen is None:
        raise ValueError(f"expected the name of an array of the arguments, got {name!r}")
    return tuple(
        other.name
        for other in arrays.arrays
        if other.name != name
        and (other.shape, other.dtype) == (chosen.shape, chosen.dtype)
        and arrays.part(other.name) == arrays.part(name)
        and (
            other.pattern == chosen.pattern
            or (bool(chosen.steps) and other.steps[-1:] == chosen.steps[-1:])
        )
    )


def mirrored(specs: Specs, arrays: ProgramArrays) -> Edited:
    """Give each array of the optimizer state the spec of its parameter."""
    changed = {name: specs[owner] for name, owner in arrays.owners.items()}
    return Edited({**specs, **changed}, tuple(changed))
