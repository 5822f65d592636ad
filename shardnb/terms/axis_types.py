"""The types of mesh axes: who decides the shardings over them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from shardnb.terms.table import table

AxisType = Literal["auto", "explicit", "manual"]


@dataclass(frozen=True)
class AxisTypeTerm:
    """A type of mesh axes.

    `of_mesh` is the `jax.sharding.AxisType` that a mesh is made with: JAX makes an axis manual
    only inside a `shard_map`, and outside it is Auto.
    """

    name: AxisType
    of_mesh: Literal["Auto", "Explicit"]
    prose: str


def _row(name: AxisType) -> AxisTypeTerm:
    match name:
        case "auto":
            return AxisTypeTerm(name, "Auto", "the compiler propagates shardings")
        case "explicit":
            return AxisTypeTerm(name, "Explicit", "shardings are in the types of arrays")
        case "manual":
            return AxisTypeTerm(name, "Auto", "the program is written for one device")


AXIS_TYPES: Mapping[AxisType, AxisTypeTerm] = table(AxisType, _row)
