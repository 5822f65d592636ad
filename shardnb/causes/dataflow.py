"""What the causes of a program's collectives left for its findings."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from shardnb.causes.batch_dimensions import BatchDimensions
from shardnb.causes.rule_factors import Factors
from shardnb.causes.training import Training
from shardnb.report.model import Spec
from shardnb.texts.graph import Graph
from shardnb.texts.instruction import HloValue, Instruction


class Moved(NamedTuple):
    """What a collective moves, and which instruction takes it; all before partitioning."""

    graph: Graph
    value: HloValue
    consumer: Instruction | None
    needed: Spec | None


@dataclass
class Dataflow:
    """What a program trains, what its collectives move by their ids, and where its batch goes."""

    training: Training
    factors: Factors
    moved: dict[int, Moved] = field(default_factory=dict)

    @cached_property
    def batch(self) -> BatchDimensions:
        """Where the batch goes; followed when it is first asked for."""
        return BatchDimensions(self.factors, self.training)
