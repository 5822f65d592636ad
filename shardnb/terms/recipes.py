"""Recipes for the specs of a program's arrays, and why a recipe does not shard an array."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from shardnb.terms.table import Term, table, terms

Recipe = Literal["data-parallel", "fsdp", "tensor-parallel"]

LeftBecause = Literal[
    "key",
    "scalar",
    "copies",
    "not-batch",
    "not-parameter",
    "small",
    "not-multiplied",
    "not-divisible",
]


@dataclass(frozen=True)
class RecipeTerm:
    """A recipe: in words, and what each device has after it, or how arrays are sharded."""

    name: Recipe
    prose: str
    does: str


def _recipe(name: Recipe) -> RecipeTerm:
    match name:
        case "data-parallel":
            does = "Each device has a part of the batch and a copy of the parameters"
            return RecipeTerm(name, "data parallel", does)
        case "fsdp":
            does = "Each device has a part of the batch, the parameters and the optimizer state"
            return RecipeTerm(name, "FSDP", does)
        case "tensor-parallel":
            does = (
                "Matrices are sharded by their columns, or by their rows where Shardy carries the "
                "columns of the one before"
            )
            return RecipeTerm(name, "tensor parallel", does)


RECIPES: Mapping[Recipe, RecipeTerm] = table(Recipe, _recipe)
# What is said of arrays that a recipe leaves without its axis; `{axis}` is that axis.
LEFT: Mapping[LeftBecause, Term[LeftBecause]] = terms(
    LeftBecause,
    {
        "key": "a random key",
        "scalar": "a scalar",
        "copies": "each device keeps a copy",
        "not-batch": "Shardy does not carry the sharding of the batch to it",
        "not-parameter": "not a parameter",
        "small": "a vector with less than 0.2% of the parameters' bytes",
        "not-multiplied": (
            "no matrix product or look-up takes it, and Shardy does not carry {axis} to it"
        ),
        "not-divisible": "no suitable dimension is divisible by the devices along {axis}",
    },
)
