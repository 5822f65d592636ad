"""What a collective does for the user, and which strategy such collectives are typical of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from shardnb.terms.table import table

Role = Literal[
    "gradient",
    "gradient-scatter",
    "gradient-reshard",
    "parameter-gather",
    "parameter-update",
    "optimizer-state",
    "tensor-parallel-sum",
    "softmax",
    "gradient-norm",
    "loss",
    "requested-reshard",
    "called",
]

GRADIENTS: frozenset[Role] = frozenset({"gradient", "gradient-scatter", "gradient-reshard"})
"""The roles of what moves the gradient of a parameter."""

Strategy = Literal[
    "data parallelism",
    "FSDP",
    "weight-update sharding (ZeRO)",
    "tensor parallelism",
    "every strategy",
]


@dataclass(frozen=True)
class RoleTerm:
    """A role: in a few words with the name of what it is about as `{of}`, and without one.

    `typical` is the strategy that sends such collectives when all is as it should be, None where
    no strategy needs them.
    """

    name: Role
    prose: str
    unnamed: str
    typical: Strategy | None = None

    def of(self, name: str) -> str:
        """Return the role in words, with the name of what it is about, "" where it has none.

        >>> ROLES["gradient"].of("params['w1']"), ROLES["gradient"].of("")
        ("gradient of params['w1']", 'gradient')
        """
        return self.prose.format(of=name) if name else self.unnamed


def _role(name: Role) -> RoleTerm:
    match name:
        case "gradient":
            return RoleTerm(name, "gradient of {of}", "gradient", "data parallelism")
        case "gradient-scatter":
            prose = "gradient of {of}, of which each device keeps its shard"
            unnamed = "gradient, of which each device keeps its shard"
            return RoleTerm(name, prose, unnamed, "FSDP")
        case "gradient-reshard":
            return RoleTerm(name, "reshard of the gradient of {of}", "reshard of a gradient")
        case "parameter-gather":
            return RoleTerm(name, "gather of the parameter {of}", "gather of a parameter", "FSDP")
        case "parameter-update":
            zero: Strategy = "weight-update sharding (ZeRO)"
            return RoleTerm(name, "update of {of}", "update of a parameter", zero)
        case "optimizer-state":
            return RoleTerm(name, "optimizer state {of}", "optimizer state")
        case "tensor-parallel-sum":
            prose, unnamed = "sum over the shards of {of}", "sum over the shards of a parameter"
            return RoleTerm(name, prose, unnamed, "tensor parallelism")
        case "softmax":
            prose = "softmax over the shards of {of}"
            return RoleTerm(name, prose, "softmax over a sharded dimension", "tensor parallelism")
        case "gradient-norm":
            prose = "norm of the gradient of {of}"
            return RoleTerm(name, prose, "norm of gradients", "FSDP")
        case "loss":
            prose, unnamed = "returned sum {of} (loss or metric)", "returned sum (loss or metric)"
            return RoleTerm(name, prose, unnamed, "every strategy")
        case "requested-reshard":
            prose = "reshard of {of} that you wrote"
            return RoleTerm(name, prose, "reshard that you wrote")
        case "called":
            return RoleTerm(
                name, "collective of {of} that you called", "collective that you called"
            )


ROLES: Mapping[Role, RoleTerm] = table(Role, _role)
