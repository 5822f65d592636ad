"""Who asked for a collective, why it is there, and in which pass of a training step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from shardnb.terms.table import Term, table, terms

AskedBy = Literal["called", "requested", "inferred"]

Unknown = Literal["made by the partitioner", "asker unknown"]
"""The words for an unknown origin."""

Asker = Literal[AskedBy, "autodiff", Unknown]

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
    """Who asked: in a few words, and in a sentence; `explains` where this is also why."""

    name: Asker
    prose: str
    sentence: str
    explains: bool = False


@dataclass(frozen=True)
class ReasonTerm:
    """Why a collective is there: in a few words, and in a clause.

    `reshards` says that it moves data to another sharding: a partial sum is the operation's own
    result.
    """

    name: Reason
    prose: str
    clause: str
    reshards: bool = True


def _asker(name: Asker) -> AskerTerm:
    match name:
        case "called":
            prose = "you called this collective"
            return AskerTerm(name, prose, "You called this collective.", explains=True)
        case "autodiff":
            sentence = "Autodiff added this."
            return AskerTerm(name, "autodiff added this", sentence, explains=True)
        case "requested":
            prose = "a sharding that you wrote requires it"
            sentence = "A sharding that you wrote requires it."
            return AskerTerm(name, prose, sentence, explains=True)
        case "inferred":
            sentence = "The compiler inserted this; nothing in your code asks for it."
            return AskerTerm(name, "inserted by the compiler", sentence)
        case "made by the partitioner":
            prose = "inserted by the compiler, origin unknown"
            sentence = "The compiler inserted this; whether your code asks for it is not known."
            return AskerTerm(name, prose, sentence)
        case "asker unknown":
            sentence = "Whether you or the compiler asked for it is not known."
            return AskerTerm(name, "origin unknown", sentence)


def _reason(name: Reason) -> ReasonTerm:
    match name:
        case "partial-sum":
            clause = "each device has only a partial result, so the devices combine theirs"
            return ReasonTerm(name, "completes a partial sum", clause, reshards=False)
        case "conflict":
            clause = "the operands are sharded differently, so one of them is resharded"
            return ReasonTerm(name, "operands are sharded differently", clause)
        case "output-spec":
            clause = "a sharding that you wrote differs from the sharding of the value"
            return ReasonTerm(name, "resharded to a sharding that you wrote", clause)
        case "whole-axis":
            prose = "the operation needs the full dimension on each device"
            return ReasonTerm(name, prose, prose)
        case "reshape":
            clause = "the reshape crosses shard boundaries"
            return ReasonTerm(name, clause, clause)
        case "uneven":
            clause = "the size is not divisible by the number of devices"
            return ReasonTerm(name, "the size is not divisible", clause)
        case "halo":
            clause = "the operation reads elements that neighbouring devices hold"
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
        "rematerialised": "recomputed in the backward pass",
    },
)


def _detail(name: Detail) -> Term[Detail]:
    match name:
        case "operands disagree":
            return Term(name, "operands disagree")
        case "two dimensions":
            return Term(name, "one mesh axis shards two dimensions")
        case "elsewhere":
            return Term(name, "the result has another sharding")
        case "loop carry":
            return Term(name, "the loop carries it with another sharding")
        case "branches":
            return Term(name, "the branches return it with another sharding")
        case "no split form":
            return Term(name, "no sharded implementation of this operation")
        case "on one device":
            return Term(name, "only one device holds it")
        case "in blocks":
            return Term(name, "the compiler computes it in steps on blocks")


DETAILS: Mapping[Detail, Term[Detail]] = table(Detail, _detail)
