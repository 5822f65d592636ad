"""What is worth knowing of a program beside its collectives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from shardnb.terms.table import table

FindingKind = Literal[
    "replicated",
    "silent replication",
    "moved",
    "donation",
    "full rematerialisation",
    "no partitioned form",
    "uneven",
    "output spec",
    "loop condition",
    "accumulation",
    "loop",
    "out-of-memory",
]


@dataclass(frozen=True)
class FindingTerm:
    """A kind of finding, in a few words."""

    name: FindingKind
    prose: str


def _row(kind: FindingKind) -> FindingTerm:
    match kind:
        case "replicated":
            return FindingTerm(kind, "a large input of which devices hold copies")
        case "silent replication":
            return FindingTerm(kind, "less sharded than the spec that you wrote")
        case "moved":
            return FindingTerm(kind, "an argument that is resharded at each call")
        case "donation":
            return FindingTerm(kind, "a donated input whose memory no result reuses")
        case "full rematerialisation":
            return FindingTerm(kind, "gathered in full, then sharded again")
        case "no partitioned form":
            return FindingTerm(kind, "an operation that runs on the full array")
        case "uneven":
            return FindingTerm(kind, "a dimension that is padded to be divisible")
        case "output spec":
            return FindingTerm(kind, "an output spec that undoes a sharding")
        case "loop condition":
            return FindingTerm(kind, "a collective in the condition of a loop")
        case "accumulation":
            return FindingTerm(kind, "a sum in a loop that one all-reduce after it would do")
        case "loop":
            return FindingTerm(kind, "a collective in a loop that gives the same in each step")
        case "out-of-memory":
            return FindingTerm(kind, "more than the memory of a device")


FINDINGS: Mapping[FindingKind, FindingTerm] = table(FindingKind, _row)
