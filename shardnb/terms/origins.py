"""Where the sharding of a value came from, and what stopped a mesh axis on its way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from shardnb.terms.table import Term, terms

OriginKind = Literal["input", "constraint", "output", "shard_map", "type", "unknown"]

Direction = Literal["forward", "backward", "sideways"]

Stop = Literal["reduction", "whole-axis", "conflict", "constraint", "reshape"]


ORIGINS: Mapping[OriginKind, Term[OriginKind]] = terms(
    OriginKind,
    {
        "input": "the sharding of an input",
        "constraint": "a sharding constraint",
        "output": "the spec of an output",
        "shard_map": "the specs of a shard_map",
        "type": "its type, as the mesh axis is Explicit",
        "unknown": "origin unknown",
    },
)
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
