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
    "annotation",
    "out-of-memory",
]


FINDINGS: Mapping[FindingKind, Term[FindingKind]] = terms(
    FindingKind,
    {
        "replicated": "large input replicated",
        "lost sharding": "sharding lost",
        "state unlike parameters": "sharded unlike the parameters",
        "returned otherwise": "state returned with another sharding",
        "repeated gather": "parameter gathered more than once",
        "activation gather": "activation gathered in full",
        "silent replication": "less sharded than the spec that you wrote",
        "moved": "argument resharded in each call",
        "donation": "donated input not reused",
        "full rematerialisation": "full rematerialization",
        "no partitioned form": "operation that the partitioner does not shard",
        "uneven": "dimension padded to be divisible",
        "output spec": "gathered for a sharding that you wrote",
        "loop condition": "collective in a loop condition",
        "accumulation": "summed in each iteration of a loop",
        "loop": "same collective in each iteration of a loop",
        "annotation": "sharding annotation",
        "out-of-memory": "out of memory",
    },
)
"""The headline of each finding."""
