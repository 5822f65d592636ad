"""Where the sharding of a value came from, and what stopped a mesh axis on its way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from shardnb.terms.table import table

OriginKind = Literal["input", "constraint", "output", "shard_map", "type", "unknown"]

Direction = Literal["forward", "backward", "sideways"]

Stop = Literal["reduction", "whole-axis", "conflict", "constraint", "reshape"]


@dataclass(frozen=True)
class OriginTerm:
    """What put a mesh axis on a value."""

    name: OriginKind
    prose: str


@dataclass(frozen=True)
class DirectionTerm:
    """Which way an op handed a mesh axis on."""

    name: Direction
    prose: str


@dataclass(frozen=True)
class StopTerm:
    """Why a mesh axis of an operand did not reach the result of the op."""

    name: Stop
    prose: str


def _origin(name: OriginKind) -> OriginTerm:
    match name:
        case "input":
            return OriginTerm(name, "the sharding of an input")
        case "constraint":
            return OriginTerm(name, "a sharding constraint")
        case "output":
            return OriginTerm(name, "the spec of an output")
        case "shard_map":
            return OriginTerm(name, "the specs of a shard_map")
        case "type":
            return OriginTerm(name, "its type, as the mesh axis is Explicit")
        case "unknown":
            return OriginTerm(name, "origin unknown")


def _direction(name: Direction) -> DirectionTerm:
    match name:
        case "forward":
            return DirectionTerm(name, "from an operand to the result")
        case "backward":
            return DirectionTerm(name, "from the result to an operand")
        case "sideways":
            return DirectionTerm(name, "from one operand to another")


def _stop(name: Stop) -> StopTerm:
    match name:
        case "reduction":
            return StopTerm(name, "the op sums over the dimension")
        case "whole-axis":
            return StopTerm(name, "the op needs the full dimension on each device")
        case "conflict":
            return StopTerm(name, "another axis, or another dimension, has its place")
        case "constraint":
            return StopTerm(name, "a constraint states the dimension")
        case "reshape":
            return StopTerm(name, "the reshape crosses shard boundaries")


ORIGINS: Mapping[OriginKind, OriginTerm] = table(OriginKind, _origin)
DIRECTIONS: Mapping[Direction, DirectionTerm] = table(Direction, _direction)
STOPS: Mapping[Stop, StopTerm] = table(Stop, _stop)
