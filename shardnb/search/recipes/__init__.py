"""Specs of many arrays at once, as starting points: recipes, to all alike, to optimizer state."""

from shardnb.search.recipes.arrays import ProgramArrays, arrays_of, training_of
from shardnb.search.recipes.edits import Edited, Specs, alike, alike_to, mirrored
from shardnb.search.recipes.recipes import applied, axis_for

__all__ = [
    "Edited",
    "ProgramArrays",
    "Specs",
    "alike",
    "alike_to",
    "applied",
    "arrays_of",
    "axis_for",
    "mirrored",
    "training_of",
]
