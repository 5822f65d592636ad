"""What is worth knowing of a program beside its collectives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from shardnb.terms.table import Term, terms

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


def _row(kind: FindingKind) -> str:
    match kind:
        case "replicated":
            return "a large input of which devices hold copies"
        case "silent replication":
            return "less sharded than the spec that you wrote"
        case "moved":
            return "an argument that is resharded at each call"
        case "donation":
            return "a donated input whose memory no result reuses"
        case "full rematerialisation":
            return "gathered in full, then sharded again"
        case "no partitioned form":
            return "an operation that runs on the full array"
        case "uneven":
            return "a dimension that is padded to be divisible"
        case "output spec":
            return "an output spec that undoes a sharding"
        case "loop condition":
            return "a collective in the condition of a loop"
        case "accumulation":
            return "a sum in a loop that one all-reduce after it would do"
        case "loop":
            return "a collective in a loop that gives the same in each step"
        case "out-of-memory":
            return "more than the memory of a device"


FINDINGS: Mapping[FindingKind, Term[FindingKind]] = terms(FindingKind, _row)
