"""Products that the partitioner takes in steps: each device passes a block on to the next.

In place of a gather before a product, or of a sum after it, there is a loop that multiplies the
block at hand while the next one is sent. Its permutes are there for what the gather or the sum
would be there for.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from shardnb.causes.data_movement import Movement
from shardnb.causes.entry_parameters import EntryParameters
from shardnb.causes.rule_factors import Factors
from shardnb.terms.collectives import reduces
from shardnb.texts.graph import Graph
from shardnb.texts.hlo import Module
from shardnb.texts.instruction import HloValue, Instruction
from shardnb.texts.opcodes import PRODUCTS, SAME_DIMENSIONS, VIEWS

_BODY = re.compile(r"windowed_dot_general_body_(ag|rs)")
IN_STEPS = "in steps with the product: each device passes a block on"


@dataclass(frozen=True)
class _StepLoop:
    """A loop that takes a product in steps, in the computation `graph` after partitioning.

    `gathers` says that blocks of an operand go round; else parts of the result do.
    """

    graph: Graph
    instruction: Instruction
    gathers: bool


class Windowed:
    """Finds for a permute of such a loop the move that it is a step of."""

    def __init__(self, factors: Factors, entering: EntryParameters) -> None:
        """Find the loops of a program after partitioning, of which `entering` is known."""
        self._factors = factors
        self._after = entering.module.computations
        self._bodies = dict(_loops(entering.module))
        self._entering = EntryParameters(factors.program.module), entering

    def is_step(self, made: Instruction) -> bool:
        """Whether a collective is a permute of such a loop, or one at its ends."""
        return bool(self._bodies) and self._loop(made) is not None

    def move(self, made: Instruction, axes: tuple[str, ...] | None) -> Movement | None:
        """Give the move of a step over these axes; None where it is not known of which product."""
        loop = self._loop(made)
        before = self._before(loop) if loop is not None else None
        if loop is None or before is None or axes is None:
            return None
        products = self._products(before, loop)
        if not products:
            return None
        if not loop.gathers:
            return _completed(before, replace(made, opcode="reduce-scatter"), products[0])
        numbers = self._factors.program.numbers(before)
        operands = [self._operand(before, product, made, axes) for product in products]
        if operands[0] is None or len({one and numbers.get(one, one) for one in operands}) > 1:
            return None
        gathered = replace(made, opcode="all-gather")
        return Movement(before, gathered, operands[0], products[0].name, sent=made.arrays[0][1])

    def sum(self, made: Instruction) -> Movement | None:
        """Return the move of an all-reduce that adds up what such a loop made, None for another."""
        graph = self._after.get(made.computation)
        if not self._bodies or graph is None or not reduces(made.opcode):
            return None
        node = graph.maker(graph.source(graph.operands[made.name][0], VIEWS))
        loop = next((loop for loop in self._bodies.values() if loop.instruction is node), None)
        before = self._before(loop) if loop is not None else None
        if loop is None or before is None or made.key != loop.instruction.key:
            return None
        products = self._products(before, loop)
        return _completed(before, made, products[0]) if products else None

    def taken(self, made: Instruction, move: Movement) -> Movement:
        """Return a move into such a loop as one for its product; another one as it is."""
        graph = self._after.get(made.computation)
        if not self._bodies or graph is None or move.producer is None or move.consumer:
            return move
        loops = {loop.instruction for loop in self._bodies.values() if loop.graph is graph}
        keys = {user.key for user in _users(graph, made) if user in loops}
        for node in move.graph.body:
            if node.opcode in PRODUCTS and node.key in keys:
                operands = move.graph.operands[node.name]
                steps = (move.graph.upward(operand, SAME_DIMENSIONS) for operand in operands)
                if any(move.producer in values for values in steps):
                    return replace(move, consumer=node.name, result=None)
        return move

    def _loop(self, made: Instruction) -> _StepLoop | None:
        """Return the loop that a permute stands in, goes into, or comes from."""
        if made.opcode != "collective-permute":
            return None
        if made.computation in self._bodies:
            return self._bodies[made.computation]
        graph = self._after.get(made.computation)
        if graph is None:
            return None
        ends = {*_users(graph, made), graph.maker(graph.operands[made.name][0])}
        loops = (loop for loop in self._bodies.values() if loop.graph is graph)
        return next((loop for loop in loops if loop.instruction in ends), None)

    def _before(self, loop: _StepLoop) -> Graph | None:
        return self._factors.program.module.computations.get(loop.graph.name.partition("_spmd")[0])

    def _products(self, before: Graph, loop: _StepLoop) -> list[Instruction]:
        """Return the product with the loop's name and line; of several those of its operands.

        A loop carries both operands first, one of them as the block at hand. Products that are
        alike in all that tells why they are taken in steps are given together.
        """
        key = loop.instruction.key
        found = [node for node in before.body if node.opcode in PRODUCTS and node.key == key]
        if len(found) > 1:
            found = [node for node in found if self._may_be(before, node, loop)]
            found = [node for node in found if self._takes_alike(before, node, loop)]
        return found if len({self._kind(before, node) for node in found}) == 1 else []

    def _may_be(self, before: Graph, product: Instruction, loop: _StepLoop) -> bool:
        """Whether a loop's operands can be blocks of a product's, and its sum that of its result.

        A block may have been gathered before it enters.
        """
        arrays = loop.instruction.arrays
        held = [math.prod(shape) for _, shape in arrays[:2]]
        blocks = list(self._sizes(before, product))
        fits = any(
            all(size and not have % size for have, size in zip(held, order, strict=True))
            for order in (blocks, blocks[::-1])
        )
        if loop.gathers or len(arrays) < 3:
            return fits
        return fits and _bare(arrays[2][1]) == _bare(self._block(before, product.value))

    def _takes_alike(self, before: Graph, product: Instruction, loop: _StepLoop) -> bool:
        """Whether a product takes the inputs of the program that a loop does, as far as known."""
        own, others = self._entering
        start = loop.instruction.operands[0]
        held = {others.of(loop.graph.name, start.at(at)) for at in range(2)} - {None}
        return held <= {own.of(before.name, one) for one in before.operands[product.name]}

    def _kind(self, before: Graph, product: Instruction) -> tuple[object, ...]:
        """Return all that tells why a product is taken in steps."""
        values = (product.value, *before.operands[product.name])
        layouts = tuple(self._factors.program.layout(before, value) for value in values)
        shapes = tuple(before.array(value) for value in values)
        sides, kinds = ("lhs", "rhs"), ("contracting", "batch")
        dims = tuple(product.attribute(f"{side}_{kind}_dims") for side in sides for kind in kinds)
        return shapes, layouts, dims

    def _sizes(self, before: Graph, product: Instruction) -> Iterator[int]:
        """Return the number of elements of each operand on one device."""
        return (math.prod(self._block(before, one)) for one in before.operands[product.name])

    def _block(self, before: Graph, value: HloValue) -> tuple[int, ...]:
        """Give the shape of a value's block on one device; of no elements where it is not known."""
        layout, array = self._factors.program.layout(before, value), before.array(value)
        return (0,) if layout is None or array is None else layout.shard_shape(array[1])

    def _operand(
        self, before: Graph, product: Instruction, made: Instruction, axes: tuple[str, ...]
    ) -> HloValue | None:
        """Return the operand that is sharded over these axes into blocks of the size sent."""
        factors = self._factors
        moved, sent = frozenset(factors.pieces(axes)), _bare(made.arrays[0][1])
        operands = {
            operand: factors.program.layout(before, operand)
            for operand in before.operands[product.name]
        }
        found = [
            operand
            for operand, layout in operands.items()
            if layout is not None and factors.dims(layout.spec or (), moved)
            if _bare(self._block(before, operand)) == sent
        ]
        return found[0] if len(found) == 1 else None


def _completed(before: Graph, made: Instruction, product: Instruction) -> Movement:
    return Movement(before, made, product.value, product.name, completes_consumer=True)


def _loops(partitioned: Module) -> Iterator[tuple[str, _StepLoop]]:
    for instruction in partitioned.of_kind("while"):
        for _, called in instruction.called:
            if match := _BODY.match(called):
                loop = _StepLoop(partitioned.graph_of(instruction), instruction, match[1] == "ag")
                yield called, loop
                # A loop of two steps sends in a branch alone: its last step sends nothing.
                conditions = partitioned.computations[called].body
                yield from (
                    (branch, loop)
                    for node in conditions
                    if node.opcode == "conditional"
                    for _, branch in node.called
                )


def _bare(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape without dimensions of size one."""
    return tuple(size for size in shape if size != 1)


def _users(graph: Graph, node: Instruction) -> Iterator[Instruction]:
    """Yield what takes a value, also another view of it."""
    for user in graph.users.get(node.value, ()):
        yield user
        if user.opcode in VIEWS:
            yield from _users(graph, user)
