"""Where the sharding of a value came from, and what stopped a mesh axis on its way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from shardnb.terms.table import Term, terms

OriginKind = Literal["input", "constraint", "output", "shard_map", "type", "unknown"]

Direction = Literal["forward", "backward", "sideways"]

Stop = Literal["reduction", "whole-axis", "conflict", "constraint", "reshape"]


def _origin(name: OriginKind) -> str:
    match name:
        case "input":
            return "the sharding of an input"
        case "constraint":
            return "a sharding constraint"
        case "output":
            return "the spec of an output"
        case "shard_map":
            return "the specs of a shard_map"
        case "type":
            return "its type, as the mesh axis is Explicit"
        case "unknown":
            return "origin unknown"


def _direction(name: Direction) -> str:
    match name:
        case "forward":
            return "from an operand to the result"
        case "backward":
            return "from the result to an operand"
        case "sideways":
            return "from one operand to another"


def _stop(name: Stop) -> str:
    match name:
        case "reduction":
            return "the op sums over the dimension"
        case "whole-axis":
            return "the op needs the full dimension on each device"
        case "conflict":
            return "another axis, or another dimension, has its place"
        case "constraint":
            return "a constraint states the dimension"
        case "reshape":
            return "the reshape crosses shard boundaries"


ORIGINS: Mapping[OriginKind, Term[OriginKind]] = terms(OriginKind, _origin)
DIRECTIONS: Mapping[Direction, Term[Direction]] = terms(Direction, _direction)
STOPS: Mapping[Stop, Term[Stop]] = terms(Stop, _stop)
