"""The collectives of loops, in the program in which their bodies are easiest to read."""

from __future__ import annotations

from collections.abc import Mapping

from shardnb.findings.evidence import Evidence
from shardnb.report.model import Collective
from shardnb.texts.hlo import Module


def with_loops(evidence: Evidence) -> Module:
    """Return the program right after partitioning, where that was kept, else at the end.

    Optimisations hide some of what can be read here, by fusing; what is still seen holds as well.
    """
    return evidence.partitioned or evidence.module


def in_loops(evidence: Evidence) -> Mapping[int | None, Collective]:
    """Return the collectives in loops by their channel, which stays the same after partitioning."""
    return {
        one.channel: one
        for one in evidence.collectives
        if "while" in one.within and one.channel is not None
    }
