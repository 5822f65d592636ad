"""The checks that `jax.shard_map` makes, in its order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from shardnb.terms.table import table

Check = Literal[
    "structure",
    "unknown-axis",
    "axis-twice",
    "rank",
    "uneven",
    "type",
    "body",
    "out-structure",
    "out-rank",
    "replication",
    "lower",
]


@dataclass(frozen=True)
class CheckTerm:
    """A check: what is so where it passes, and whether it needs the results of the body."""

    name: Check
    prose: str
    of_body: bool = False


def _check(name: Check) -> CheckTerm:
    match name:
        case "structure":
            return CheckTerm(name, "in_specs fit the structure of the arguments")
        case "unknown-axis":
            return CheckTerm(name, "in_specs and out_specs name manual axes of the mesh")
        case "axis-twice":
            return CheckTerm(name, "no spec uses an axis twice")
        case "rank":
            return CheckTerm(name, "no entry of in_specs is longer than its argument's rank")
        case "uneven":
            return CheckTerm(name, "the mesh axes divide the arguments' dimensions")
        case "type":
            return CheckTerm(name, "in_specs match the arguments' own types (Explicit axes)")
        case "body":
            return CheckTerm(name, "the body traces on the shapes of one device", of_body=True)
        case "out-structure":
            return CheckTerm(name, "out_specs fit the structure of the results", of_body=True)
        case "out-rank":
            prose = "no entry of out_specs is longer than its result's rank"
            return CheckTerm(name, prose, of_body=True)
        case "replication":
            prose = "results are the same along the axes that out_specs omit"
            return CheckTerm(name, prose, of_body=True)
        case "lower":
            return CheckTerm(name, "the whole lowers to one program", of_body=True)


CHECKS: Mapping[Check, CheckTerm] = table(Check, _check)
