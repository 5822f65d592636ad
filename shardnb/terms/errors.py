"""What can be wrong with a program that JAX refuses, and how a sharding is written for Explicit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from shardnb.terms.table import Term, table

SpecProblemKind = Literal[
    "uneven",
    "rank",
    "unknown-axis",
    "axis-twice",
    "no-spec",
    "mesh",
    "device",
    "committed",
]
"""What a check of the specs finds, before anything is compiled."""

ShardMapErrorKind = Literal[
    "in-specs",
    "missing-collective",
    "carry",
    "branches",
    "unbound-axis",
    "not-varying",
    "unreduced-spec",
    "rewritten-body",
]

ErrorKind = Literal[
    SpecProblemKind,
    ShardMapErrorKind,
    "unreduced",
    "gather",
    "scatter",
    "reshape",
    "ambiguous-contraction",
    "batch",
    "no-rule",
    "conflict",
    "whole-axis",
    "constraint",
    "devices",
    "devices-missing",
    "memory-kind",
    "loop-over-sharded",
    "custom-partitioning",
    "traced-value",
    "other",
]

AnnotationKind = Literal["out_sharding", "reshard", "auto_axes"]


def _spec_problem(name: SpecProblemKind) -> Term[ErrorKind]:
    match name:
        case "uneven":
            return Term(name, "a dimension that is not divisible by the devices along its axes")
        case "rank":
            return Term(name, "a spec with more entries than the array has dimensions")
        case "unknown-axis":
            return Term(name, "a spec with an axis that its mesh does not have")
        case "axis-twice":
            return Term(name, "a mesh axis that would shard two dimensions of one array")
        case "no-spec":
            return Term(name, "something in the place of a spec that is not one")
        case "mesh":
            return Term(name, "arrays or shardings on different meshes")
        case "device":
            return Term(name, "an argument on other devices than the program")
        case "committed":
            return Term(name, "an argument with another sharding than in_shardings")


def _of_shard_map(name: ShardMapErrorKind) -> Term[ErrorKind]:
    match name:
        case "in-specs":
            return Term(name, "in_specs that differ from the sharding in an Explicit type")
        case "missing-collective":
            return Term(name, "a result that may differ along an axis that its out_spec omits")
        case "carry":
            return Term(name, "a loop whose carry changes its type")
        case "branches":
            return Term(name, "branches whose results have different types")
        case "unbound-axis":
            return Term(name, "a collective over an axis that is not a manual one")
        case "not-varying":
            return Term(name, "a collective over an axis along which its operand is the same")
        case "unreduced-spec":
            return Term(name, "a spec with other partial sums than its value has")
        case "rewritten-body":
            return Term(name, "a transformation that rewrites the body of a shard_map")


def _error(name: ErrorKind) -> Term[ErrorKind]:
    match name:
        case (
            "uneven"
            | "rank"
            | "unknown-axis"
            | "axis-twice"
            | "no-spec"
            | "mesh"
            | "device"
            | "committed"
        ):
            return _spec_problem(name)
        case (
            "in-specs"
            | "missing-collective"
            | "carry"
            | "branches"
            | "unbound-axis"
            | "not-varying"
            | "unreduced-spec"
            | "rewritten-body"
        ):
            return _of_shard_map(name)
        case "unreduced":
            return Term(name, "an operation on a partial sum")
        case "gather":
            return Term(name, "a gather whose result has no sharding stated")
        case "scatter":
            return Term(name, "a scatter whose result has no sharding stated")
        case "reshape":
            return Term(name, "a reshape that would divide each device's block")
        case "ambiguous-contraction":
            return Term(name, "a contracting dimension that is sharded in both operands")
        case "batch":
            return Term(name, "a batch dimension that is sharded differently in both operands")
        case "no-rule":
            return Term(name, "an operation for which JAX has no sharding rule")
        case "conflict":
            return Term(name, "operands that are sharded differently")
        case "whole-axis":
            return Term(name, "an operation that needs a full dimension on each device")
        case "constraint":
            return Term(name, "a constraint that differs from the sharding in an Explicit type")
        case "devices":
            return Term(name, "arguments on different devices, or on the same in another order")
        case "devices-missing":
            return Term(name, "a mesh of more devices than the machine has")
        case "memory-kind":
            return Term(name, "operands in host and in device memory")
        case "loop-over-sharded":
            return Term(name, "a loop over a sharded dimension")
        case "custom-partitioning":
            return Term(name, "a sharding that custom_partitioning hands to XLA too late")
        case "traced-value":
            return Term(name, "a Python value that is needed while the program is traced")
        case "other":
            return Term(name, "any other error")


def _annotation(name: AnnotationKind) -> Term[AnnotationKind]:
    match name:
        case "out_sharding":
            return Term(name, "states the sharding of an operation's result")
        case "reshard":
            return Term(name, "moves a value to another sharding")
        case "auto_axes":
            return Term(name, "leaves a function to propagation, but for its result")


SPEC_PROBLEMS: Mapping[SpecProblemKind, Term[ErrorKind]] = table(SpecProblemKind, _spec_problem)
ERRORS: Mapping[ErrorKind, Term[ErrorKind]] = table(ErrorKind, _error)
ANNOTATIONS: Mapping[AnnotationKind, Term[AnnotationKind]] = table(AnnotationKind, _annotation)
