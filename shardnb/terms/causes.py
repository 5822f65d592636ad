"""Who asked for a collective, why it is there, and in which pass of a training step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from shardnb.terms.table import Term, table, terms

AskedBy = Literal["called", "requested", "inferred"]

Unknown = Literal["made by the partitioner", "asker unknown"]
"""What is said where nobody knows who asked."""

Asker = Literal[AskedBy, Unknown]

Reason = Literal[
    "partial-sum",
    "conflict",
    "output-spec",
    "whole-axis",
    "reshape",
    "uneven",
    "halo",
    "unknown",
]

Phase = Literal["forward", "backward", "rematerialised"]

Detail = Literal[
    "operands disagree",
    "two dimensions",
    "elsewhere",
    "loop carry",
    "branches",
    "no split form",
    "on one device",
    "in blocks",
]
"""What is known of a conflict, or of an operation that needs a full dimension."""


@dataclass(frozen=True)
class AskerTerm:
    """Who asked: in a few words, in a sentence, and the ground and text colours of its label."""

    name: Asker
    prose: str
    sentence: str
    colours: tuple[str, str] | None = None


@dataclass(frozen=True)
class ReasonTerm:
    """Why a collective is there: in a few words, and in a clause."""

    name: Reason
    prose: str
    clause: str


def _asker(name: Asker) -> AskerTerm:
    match name:
        case "called":
            prose, sentence = "you called this collective", "The program calls it."
            return AskerTerm(name, prose, sentence, ("#cfe2ff", "#0b2e66"))
        case "requested":
            prose = "a sharding that you wrote requires it"
            sentence = "A sharding that you wrote asks for it."
            return AskerTerm(name, prose, sentence, ("#fde7b0", "#4a3800"))
        case "inferred":
            prose, sentence = "inserted by the compiler", "Asked by nobody."
            return AskerTerm(name, prose, sentence, ("#f9d2cf", "#651410"))
        case "made by the partitioner":
            sentence = "The partitioner made it; who asked for it is not known."
            return AskerTerm(name, "inserted by the compiler, origin unknown", sentence)
        case "asker unknown":
            return AskerTerm(name, "origin unknown", "Who asked for it is not known.")


def _reason(name: Reason) -> ReasonTerm:
    match name:
        case "partial-sum":
            clause = "each device has only a partial result, and these are combined"
            return ReasonTerm(name, "completes a partial sum", clause)
        case "conflict":
            clause = "two placements disagree, so one side is moved"
            return ReasonTerm(name, "operands are sharded differently", clause)
        case "output-spec":
            clause = "a stated placement wants the data elsewhere"
            return ReasonTerm(name, "resharded to a sharding that you wrote", clause)
        case "whole-axis":
            prose = "the operation needs the full dimension on each device"
            return ReasonTerm(name, prose, "the operation needs the whole dimension on one device")
        case "reshape":
            clause = "the reshape joins or cuts a dimension that is split"
            return ReasonTerm(name, "the reshape crosses shard boundaries", clause)
        case "uneven":
            clause = "the sizes do not divide by the devices"
            return ReasonTerm(name, "the size is not divisible", clause)
        case "halo":
            clause = "devices exchange elements with others along a split dimension"
            return ReasonTerm(name, "neighbouring devices exchange edges", clause)
        case "unknown":
            return ReasonTerm(name, "cause unknown", "why it is there is not known")


ASKERS: Mapping[Asker, AskerTerm] = table(Asker, _asker)
REASONS: Mapping[Reason, ReasonTerm] = table(Reason, _reason)
PHASES: Mapping[Phase, Term[Phase]] = terms(
    Phase,
    {
        "forward": "the forward pass",
        "backward": "the backward pass",
        "rematerialised": "computed again in the backward pass",
    },
)


def _detail(name: Detail) -> Term[Detail]:
    match name:
        case "operands disagree":
            return Term(name, "operands disagree")
        case "two dimensions":
            return Term(name, "one axis is wanted by two dimensions")
        case "elsewhere":
            return Term(name, "the result must be elsewhere")
        case "loop carry":
            return Term(name, "the loop carries it in another placement")
        case "branches":
            return Term(name, "the branches return it in another placement")
        case "no split form":
            return Term(name, "no split form of this operation")
        case "on one device":
            return Term(name, "one device only holds it")
        case "in blocks":
            return Term(name, "the compiler computes it in steps on blocks")


DETAILS: Mapping[Detail, Term[Detail]] = table(Detail, _detail)
