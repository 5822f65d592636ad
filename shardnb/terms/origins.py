"""Where the sharding of a value came from, and what stopped a mesh axis on its way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from shardnb.terms.table import Term, table, terms

OriginKind = Literal["input", "constraint", "output", "shard_map", "type", "unknown"]

Direction = Literal["forward", "backward", "sideways"]

Stop = Literal["reduction", "whole-axis", "conflict", "constraint", "reshape"]


@dataclass(frozen=True)
class OriginTerm:
    """Where a mesh axis came from: in a few words, and as what is said of the axis.

    In `clause`, `{name}` is that of the input or output, or the constraint's spec, `{at}` the line
    and `{way}` the operations that the axis travelled through.
    """

    name: OriginKind
    prose: str
    clause: str


def _origin(name: OriginKind) -> OriginTerm:
    match name:
        case "input":
            return OriginTerm(name, "the sharding of an input", "came from {name}{way}")
        case "constraint":
            clause = "came from the constraint {name}{at}{way}"
            return OriginTerm(name, "a sharding constraint", clause)
        case "output":
            clause = "came from the spec of the output {name}{way}"
            return OriginTerm(name, "the spec of an output", clause)
        case "shard_map":
            clause = "came from the specs of the shard_map{at}{way}"
            return OriginTerm(name, "the specs of a shard_map", clause)
        case "type":
            prose = "its type, as the mesh axis is Explicit"
            return OriginTerm(name, prose, "stands in its type (explicit)")
        case "unknown":
            return OriginTerm(name, "origin unknown", "came from a place that is not known")


ORIGINS: Mapping[OriginKind, OriginTerm] = table(OriginKind, _origin)
DIRECTIONS: Mapping[Direction, Term[Direction]] = terms(
    Direction,
    {
        "forward": "from an operand to the result",
        "backward": "from the result to an operand",
        "sideways": "from one operand to another",
    },
)
STOPS: Mapping[Stop, Term[Stop]] = terms(
    Stop,
    {
        "reduction": "the op sums over the dimension",
        "whole-axis": "the op needs the full dimension on each device",
        "conflict": "another axis, or another dimension, has its place",
        "constraint": "a constraint states the dimension",
        "reshape": "the reshape crosses shard boundaries",
    },
)
