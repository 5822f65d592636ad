"""Products that the partitioner takes in steps: each device passes a block on to the next.

In place of a gather before a product, or of a sum after it, there is a loop that multiplies the
block at hand while the next one is sent. Its permutes are there for what the gather or the sum
would be there for.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from shardnb.analysis.causes.factors import Factors
from shardnb.analysis.causes.graph import Graph
from shardnb.analysis.causes.origins import Pieces
from shardnb.analysis.causes.walk import Move
from shardnb.compiler.hlo import Instruction

_BODY = re.compile(r"windowed_dot_general_body_(ag|rs)")
_VIEWS = ("reshape", "copy", "convert", "bitcast", "transpose")
IN_STEPS = "in steps with the product: each device passes a block on"


@dataclass(frozen=True)
class _Loop:
    """A loop that takes a product in steps, in the computation `graph` after partitioning.

    `gathers` says that blocks of an operand go round; else parts of the result do.
    """

    graph: Graph
    instruction: Instruction
    gathers: bool


class Windowed:
    """Finds for a permute of such a loop the move that it is a step of."""

    def __init__(self, factors: Factors, after: Mapping[str, Graph]) -> None:
        """Find the loops of a program after partitioning."""
        self._factors = factors
        self._after = after
        self._bodies = dict(_loops(after))

    def is_step(self, made: Instruction) -> bool:
        """Whether a collective is a permute of such a loop, or one at its ends."""
        return bool(self._bodies) and self._loop(made) is not None

    def move(self, made: Instruction, axes: tuple[str, ...] | None) -> Move | None:
        """Give the move of a step over these axes; None where it is not known of which product."""
        loop = self._loop(made)
        before = self._before(loop) if loop is not None else None
        if loop is None or before is None or axes is None:
            return None
        product = self._product(before, loop)
        if product is None:
            return None
        if not loop.gathers:
            summed = replace(made, opcode="reduce-scatter")
            return Move(before, summed, product.name, product.name, own=True)
        operand = self._operand(before, product, made, axes)
        if operand is None:
            return None
        gathered = replace(made, opcode="all-gather")
        return Move(before, gathered, operand, product.name, sent=made.arrays[0][1])

    def _loop(self, made: Instruction) -> _Loop | None:
        """Give the loop that a permute stands in, goes into, or comes from."""
        if made.opcode != "collective-permute":
            return None
        if made.computation in self._bodies:
            return self._bodies[made.computation]
        graph = self._after.get(made.computation)
        if graph is None:
            return None
        ends = {*_users(graph, made.name), graph.operands[made.name][0].partition("#")[0]}
        ones = (one for one in self._bodies.values() if one.graph is graph)
        return next((one for one in ones if one.instruction.name in ends), None)

    def _before(self, loop: _Loop) -> Graph | None:
        return self._factors.program.graphs.get(loop.graph.name.partition("_spmd")[0])

    def _product(self, before: Graph, loop: _Loop) -> Instruction | None:
        """Give the product with the loop's name and line; of several the one of its operands.

        A loop carries both operands first, one of them as the block at hand.
        """
        key = loop.graph.keys[loop.instruction.name]
        ones = [one for one in before.body if one.opcode == "dot" and before.keys[one.name] == key]
        if len(ones) > 1:
            held = sorted(math.prod(shape) for _, shape in loop.instruction.arrays[:2])
            ones = [one for one in ones if held == sorted(self._blocks(before, one))]
        return ones[0] if len(ones) == 1 else None

    def _blocks(self, before: Graph, product: Instruction) -> Iterator[int]:
        """Give the number of elements of each operand on one device."""
        return (math.prod(self._block(before, one)) for one in before.operands[product.name])

    def _block(self, before: Graph, value: str) -> tuple[int, ...]:
        """Give the shape of a value's block on one device; of no elements where it is not known."""
        layout, array = self._factors.program.layout(before, value), before.array(value)
        return (0,) if layout is None or array is None else layout.shard_shape(array[1])

    def _operand(
        self, before: Graph, product: Instruction, made: Instruction, axes: tuple[str, ...]
    ) -> str | None:
        """Give the operand that is split over these axes into blocks of what is sent."""
        moved = frozenset(self._factors.pieces(axes))
        operands = dict.fromkeys(before.operands[product.name])
        split = [one for one in operands if self._split(before, one, moved)]
        sent = _bare(made.arrays[0][1])
        found = [one for one in split if _bare(self._block(before, one)) == sent]
        return found[0] if len(found) == 1 else None

    def _split(self, before: Graph, value: str, moved: Pieces) -> bool:
        layout = self._factors.program.layout(before, value)
        return layout is not None and bool(self._factors.dims(layout.spec or (), moved))


def _loops(after: Mapping[str, Graph]) -> Iterator[tuple[str, _Loop]]:
    for graph in after.values():
        for instruction in graph.body:
            if instruction.opcode == "while":
                for _, called in instruction.called:
                    if match := _BODY.match(called):
                        yield called, _Loop(graph, instruction, match[1] == "ag")


def _bare(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Give a shape without dimensions of size one."""
    return tuple(size for size in shape if size != 1)


def _users(graph: Graph, name: str) -> Iterator[str]:
    """Give what takes a value, also another view of it."""
    for user in graph.users.get(name, ()):
        yield user
        if graph.nodes[user].opcode in _VIEWS:
            yield from _users(graph, user)
