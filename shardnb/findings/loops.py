"""The collectives of loops, in the program in which their bodies are easiest to read."""

from __future__ import annotations

from collections.abc import Iterator

from shardnb.findings.evidence import Evidence
from shardnb.report.model import Collective
from shardnb.texts.hlo import Module
from shardnb.texts.instruction import Instruction


def with_loops(evidence: Evidence) -> Module:
    """Return the program right after partitioning, where that was kept, else at the end.

    Optimisations hide some of what can be read here, by fusing; what is still seen holds as well.
    """
    return evidence.partitioned or evidence.module


def in_loops(evidence: Evidence) -> Iterator[tuple[Collective, Instruction]]:
    """Yield the collectives in loops, each with its instruction in that program.

    Collectives that are sent together share one channel in the end, so a channel alone names none
    of them.
    """
    made = evidence.causes.made
    by_channel = {one.channel: one for one in with_loops(evidence).collectives if one.channel}
    for one in evidence.collectives:
        if "while" in one.within:
            alone = None if one.combined_with else by_channel.get(one.channel or 0)
            instruction = made.get(one.id, alone)
            if instruction is not None:
                yield one, instruction
