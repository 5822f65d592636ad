"""Edits of the user's program: proposed ones, and compiled ones with what they change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from shardnb.report.places import Location, Spec

Changed = Literal["input", "result", "value", "argument"]
"""What gets another spec: an input, a result, the value that a line assigns, or an argument by a
constraint where the function begins.
"""


@dataclass(frozen=True)
class NewSpec:
    """Another spec of an array, by its name in the report, or in the finding's line."""

    of: Changed
    name: str
    spec: Spec


@dataclass(frozen=True)
class ProposedEdit:
    """An edit that is not compiled yet: as the user would write it, and the specs that it gives."""

    text: str
    specs: tuple[NewSpec, ...] = ()


@dataclass(frozen=True)
class Fix:
    """An edit that was compiled, and its effect: before and after, per device."""

    edit: str
    collectives: tuple[int, int]
    wire_bytes: tuple[int, int]
    memory_bytes: tuple[int, int]
    location: Location | None = None
