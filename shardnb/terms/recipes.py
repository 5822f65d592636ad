"""Recipes for the specs of a program's arrays, and why a recipe does not shard an array."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from shardnb.terms.table import Term, table, terms

Recipe = Literal[
    "data-parallel", "zero-1", "fsdp", "tensor-parallel", "sequence-parallel", "expert-parallel"
]

LeftBecause = Literal[
    "key",
    "scalar",
    "copies",
    "not-batch",
    "not-parameter",
    "small",
    "not-multiplied",
    "not-sequence",
    "not-experts",
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
        case "zero-1":
            does = (
                "Each device has a part of the batch and of the optimizer state, and a copy of the "
                "parameters"
            )
            return RecipeTerm(name, "ZeRO-1", does)
        case "fsdp":
            does = "Each device has a part of the batch, the parameters and the optimizer state"
            return RecipeTerm(name, "FSDP", does)
        case "tensor-parallel":
            does = (
                "Matrices are sharded by their columns, or by their rows where Shardy carries the "
                "columns of the one before"
            )
            return RecipeTerm(name, "tensor parallel", does)
        case "sequence-parallel":
            does = "Each device has a part of each sequence and a copy of the parameters"
            return RecipeTerm(name, "sequence parallel", does)
        case "expert-parallel":
            does = "Each device has a part of the batch, and some of the experts"
            return RecipeTerm(name, "expert parallel", does)


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
        "not-sequence": "Shardy does not carry the sharding of the sequence to it",
        "not-experts": "no product takes it expert by expert",
        "not-divisible": "no suitable dimension is divisible by the devices along {axis}",
    },
)
