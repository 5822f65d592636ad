"""Recipes for every axis of a mesh at once: the layouts that people know, to begin a search at."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import get_args

from shardnb.report import Axis
from shardnb.report.model import Spec
from shardnb.report.plans import Layout
from shardnb.search.recipes import ProgramArrays, applied
from shardnb.search.recipes.recipes import Carry
from shardnb.terms.recipes import Recipe

# Tensor parallelism follows the matrices, and the batch goes where it goes: what has a choice of
# dimensions, the shards of FSDP and ZeRO-1, comes last and takes one that is left.
_ORDER: tuple[Recipe, ...] = (
    "tensor-parallel",
    "expert-parallel",
    "sequence-parallel",
    "data-parallel",
    "zero-1",
    "fsdp",
)


def layouts(
    axes: Sequence[Axis], arrays: ProgramArrays, start: Mapping[str, Spec], carry: Carry
) -> Iterator[tuple[Layout, Mapping[str, Spec]]]:
    """Yield each product of recipes, one for each axis or none, with the specs by array.

    A recipe that shards nothing is left out: with it the product is another one. Products of few
    recipes come first: of three axes there are hundreds.
    """
    split = [axis.name for axis in axes if axis.size > 1]
    carried = _Carried(carry)
    choices: tuple[Recipe | None, ...] = (*get_args(Recipe), None)
    products = itertools.product(choices, repeat=len(split))
    for chosen in sorted(products, key=lambda recipes: len(set(recipes))):
        layout = {axis: recipe for axis, recipe in zip(split, chosen, strict=True) if recipe}
        specs: Mapping[str, Spec] = start
        shards = True
        for axis in sorted(layout, key=lambda axis: _ORDER.index(layout[axis])):
            alike = [other for other in layout if layout[other] == layout[axis] and other != axis]
            edited = applied(layout[axis], axis, specs, arrays, axes, carried, beside=alike)
            specs, shards = edited.specs, shards and _is_made(layout[axis], arrays, edited.placed)
        if shards:
            yield layout, specs


def _is_made(recipe: Recipe, arrays: ProgramArrays, placed: Collection[str]) -> bool:
    """Whether a recipe did what it is called after: it shards the batch, if that is its way."""
    if recipe not in ("data-parallel", "zero-1", "fsdp"):
        return bool(placed)
    return arrays.batch is not None and arrays.batch.name in placed


class _Carried:
    """What Shardy carries, asked once: most products ask for the same."""

    def __init__(self, carry: Carry) -> None:
        self._carry = carry
        self._known: dict[tuple[object, ...], Mapping[str, Spec]] = {}

    def __call__(self, specs: Mapping[str, Spec], free: Collection[str]) -> Mapping[str, Spec]:
        key = tuple(specs.items()), frozenset(free)
        if key not in self._known:
            self._known[key] = self._carry(specs, free)
        return self._known[key]
