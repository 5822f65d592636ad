"""Collectives that TPU runs inside fusions: in steps during other work, or sliced while sent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from shardnb.terms.collectives import Kind, kind_of
from shardnb.texts.graph import Graph
from shardnb.texts.hlo import Module
from shardnb.texts.instruction import Array, Instruction
from shardnb.texts.opcodes import TUPLES, VIEWS

_ALGORITHM = re.compile(r'"collective_algorithm_config":\{([^{}]*)')
_PART = r'"{}":"([^"]+)"'
_CHAIN = re.compile(r'chain_id="(\d+)"')

Key = tuple[Kind, int, str]
"""What start, steps and end of a collective have in common: its kind, its channel, its chain.

What a shard_map calls shares one channel.
"""


@dataclass(frozen=True)
class Fused:
    """The collective in the computation of a fusion, and whether the fusion starts or ends it."""

    collective: Instruction
    graph: Graph
    fusion: Instruction

    @property
    def key(self) -> Key | None:
        """Identifies the start, steps and end of one collective."""
        kind, channel = kind_of(self.collective.opcode), self.collective.channel
        if kind is None or channel is None:
            return None
        chain = _CHAIN.search(self.collective.attributes)
        return kind, channel, chain[1] if chain else ""

    @property
    def starts(self) -> bool:
        """Whether the collective starts here and continues in other fusions."""
        return self._calls("AsyncCollectiveStart")

    @property
    def ends(self) -> bool:
        """Whether a collective that started elsewhere ends here."""
        return self._calls("AsyncCollectiveDone")

    def _calls(self, target: str) -> bool:
        return any(
            one.opcode == "custom-call" and f'"{target}"' in one.attributes
            for one in self.graph.body
        )

    def scattered(self) -> tuple[Array, ...] | None:
        """Return the part of each sum that a device keeps, if it keeps only a part.

        TPU sends an all-reduce whose result is sliced at once as a reduce-scatter.
        """
        if kind_of(self.collective.opcode) != "all-reduce":
            return None
        uses = list(self._uses())
        if any(user.opcode != "dynamic-slice" for _, user in uses):
            return None
        kept = {element: user.arrays[0] for element, user in uses}
        count = len(self.collective.arrays)
        return tuple(kept[i] for i in range(count)) if set(kept) == set(range(count)) else None

    def _uses(self) -> Iterator[tuple[int, Instruction]]:
        """Yield each instruction that takes an element of the result, and the element's number."""
        users = (one for one in self.graph.body if one.is_root or one.opcode not in TUPLES)
        for one in users:
            for operand in self.graph.operands[one.name] if one.opcode not in VIEWS else ():
                source = self.graph.source(operand, VIEWS)
                if source.name == self.collective.name:
                    yield next(iter(source.element), 0), one


def fused_collectives(module: Module) -> dict[str, Fused]:
    """Return the collective in each computation that a fusion calls, which only TPU has."""
    found: dict[str, Fused] = {}
    for collective in module.collectives:
        name = collective.computation
        for fusion in module.callers.get(name, ()):
            if fusion.opcode == "fusion" and name not in found:
                found[name] = Fused(collective, module.computations[name], fusion)
    return found


def algorithm_of(instruction: Instruction) -> str | None:
    """Return the compiler's names for how a collective is sent, such as `StrategyRing`."""
    config = _ALGORITHM.search(instruction.attributes)
    if config is None:
        return "SparseCore" if "_SPARSECORE" in instruction.attributes else None
    parts = (re.search(_PART.format(name), config[1]) for name in ("strategy", "emitter"))
    return ", ".join(part[1] for part in parts if part) or None
