"""The collectives of HLO, by opcode."""

from __future__ import annotations

from shardnb.texts.hlo import Instruction

KINDS = (
    "all-reduce",
    "all-gather",
    "reduce-scatter",
    "all-to-all",
    "ragged-all-to-all",
    "collective-permute",
    "collective-broadcast",
)


def kind_of(instruction: Instruction) -> str | None:
    """Give the kind of the collective that an instruction is or starts, None for another."""
    kind = instruction.opcode.removesuffix("-start")
    return kind if kind in KINDS else None


def is_generated(instruction: Instruction) -> bool:
    """Whether the partitioner made an instruction."""
    return 'is_spmd_generated="true"' in instruction.attributes
