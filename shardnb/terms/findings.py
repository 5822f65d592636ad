"""What is worth knowing of a program beside its collectives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from shardnb.terms.table import Term, terms

FindingKind = Literal[
    "replicated",
    "lost sharding",
    "state unlike parameters",
    "returned otherwise",
    "repeated gather",
    "activation gather",
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


FINDINGS: Mapping[FindingKind, Term[FindingKind]] = terms(
    FindingKind,
    {
        "replicated": "a large input of which devices hold copies",
        "lost sharding": "an axis that shards an array and no longer what is computed from it",
        "state unlike parameters": "optimizer state or gradients sharded unlike their parameters",
        "returned otherwise": "state that comes out with another sharding than it went in with",
        "repeated gather": "a parameter that is gathered more than once in the forward pass",
        "activation gather": "an activation that is gathered in full",
        "silent replication": "less sharded than the spec that you wrote",
        "moved": "an argument that is resharded at each call",
        "donation": "a donated input whose memory no result reuses",
        "full rematerialisation": "gathered in full, then sharded again",
        "no partitioned form": "an operation that needs a full dimension on each device",
        "uneven": "a dimension that is padded to be divisible",
        "output spec": "a sharding that you wrote and that undoes another",
        "loop condition": "a collective in the condition of a loop",
        "accumulation": "a sum in a loop that one all-reduce after it would do",
        "loop": "a collective in a loop that gives the same in each step",
        "out-of-memory": "more than the memory of a device",
    },
)
