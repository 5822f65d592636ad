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
from shardnb.causes.origins import AxisFactors
from shardnb.causes.rule_factors import Factors
from shardnb.terms.collectives import reduces
from shardnb.texts.graph import Graph
from shardnb.texts.hlo import Module
from shardnb.texts.instruction import HloValue, Instruction
from shardnb.texts.opcodes import PRODUCTS, VIEWS

_BODY = re.compile(r"windowed_dot_general_body_(ag|rs)")
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
            summed = replace(made, opcode="reduce-scatter")
            return Movement(
                before, summed, products[0].value, products[0].name, completes_consumer=True
            )
        numbers = self._factors.program.numbers(before)
        found = [self._operand(before, product, made, axes) for product in products]
        if found[0] is None or len({one and numbers.get(one, one) for one in found}) > 1:
            return None
        gathered = replace(made, opcode="all-gather")
        return Movement(before, gathered, found[0], products[0].name, sent=made.arrays[0][1])

    def sum(self, made: Instruction) -> Movement | None:
        """Give the move of an all-reduce that adds up what such a loop made, None for another."""
        graph = self._after.get(made.computation)
        if not self._bodies or graph is None or not reduces(made.opcode):
            return None
        node = graph.maker(graph.source(graph.operands[made.name][0], VIEWS))
        loop = next((one for one in self._bodies.values() if one.instruction is node), None)
        before = self._before(loop) if loop is not None else None
        if loop is None or before is None or made.key != loop.instruction.key:
            return None
        products = self._products(before, loop)
        return (
            Movement(before, made, products[0].value, products[0].name, completes_consumer=True)
            if products
            else None
        )

    def _loop(self, made: Instruction) -> _Loop | None:
        """Give the loop that a permute stands in, goes into, or comes from."""
        if made.opcode != "collective-permute":
            return None
        if made.computation in self._bodies:
            return self._bodies[made.computation]
        graph = self._after.get(made.computation)
        if graph is None:
            return None
        ends = {*_users(graph, made), graph.maker(graph.operands[made.name][0])}
        ones = (one for one in self._bodies.values() if one.graph is graph)
        return next((one for one in ones if one.instruction in ends), None)

    def _before(self, loop: _Loop) -> Graph | None:
        return self._factors.program.module.computations.get(loop.graph.name.partition("_spmd")[0])

    def _products(self, before: Graph, loop: _Loop) -> list[Instruction]:
        """Give the product with the loop's name and line; of several those of its operands.

        A loop carries both operands first, one of them as the block at hand. Products that are
        alike in all that tells why they are taken in steps are given together.
        """
        key = loop.instruction.key
        ones = [one for one in before.body if one.opcode in PRODUCTS and one.key == key]
        if len(ones) > 1:
            ones = [one for one in ones if self._may_be(before, one, loop)]
            ones = [one for one in ones if self._takes_alike(before, one, loop)]
            held = sorted(math.prod(shape) for _, shape in loop.instruction.arrays[:2])
            exact = [one for one in ones if held == sorted(self._sizes(before, one))]
            ones = exact or ones
        return ones if len({self._kind(before, one) for one in ones}) == 1 else []

    def _may_be(self, before: Graph, product: Instruction, loop: _Loop) -> bool:
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

    def _takes_alike(self, before: Graph, product: Instruction, loop: _Loop) -> bool:
        """Whether a product takes the inputs of the program that a loop does, as far as known."""
        own, others = self._entering
        start = loop.instruction.operands[0]
        held = {others.of(loop.graph.name, start.at(at)) for at in range(2)} - {None}
        return held <= {own.of(before.name, one) for one in before.operands[product.name]}

    def _kind(self, before: Graph, product: Instruction) -> tuple[object, ...]:
        """Give all that tells why a product is taken in steps."""
        values = (product.value, *before.operands[product.name])
        layouts = tuple(self._factors.program.layout(before, value) for value in values)
        shapes = tuple(before.array(value) for value in values)
        return shapes, layouts, _dims(product)

    def _sizes(self, before: Graph, product: Instruction) -> Iterator[int]:
        """Give the number of elements of each operand on one device."""
        return (math.prod(self._block(before, one)) for one in before.operands[product.name])

    def _block(self, before: Graph, value: HloValue) -> tuple[int, ...]:
        """Give the shape of a value's block on one device; of no elements where it is not known."""
        layout, array = self._factors.program.layout(before, value), before.array(value)
        return (0,) if layout is None or array is None else layout.shard_shape(array[1])

    def _operand(
        self, before: Graph, product: Instruction, made: Instruction, axes: tuple[str, ...]
    ) -> HloValue | None:
        """Give the operand that is split over these axes into blocks of what is sent."""
        moved = frozenset(self._factors.pieces(axes))
        operands = dict.fromkeys(before.operands[product.name])
        split = [one for one in operands if self._split(before, one, moved)]
        sent = _bare(made.arrays[0][1])
        found = [one for one in split if _bare(self._block(before, one)) == sent]
        return found[0] if len(found) == 1 else None

    def _split(self, before: Graph, value: HloValue, moved: AxisFactors) -> bool:
        layout = self._factors.program.layout(before, value)
        return layout is not None and bool(self._factors.dims(layout.spec or (), moved))


def _loops(partitioned: Module) -> Iterator[tuple[str, _Loop]]:
    for instruction in partitioned.of_kind("while"):
        for _, called in instruction.called:
            if match := _BODY.match(called):
                loop = _Loop(partitioned.graph_of(instruction), instruction, match[1] == "ag")
                yield called, loop
                branches = _branches(partitioned.computations[called])
                yield from ((branch, loop) for branch in branches)


def _branches(body: Graph) -> Iterator[str]:
    """Give what a loop of two steps does in one of them alone: the last one sends nothing."""
    conditions = (one for one in body.body if one.opcode == "conditional")
    return (called for one in conditions for _, called in one.called)


def _dims(product: Instruction) -> tuple[str | None, ...]:
    """Give the dimensions that a product sums over and goes along."""
    sides, kinds = ("lhs", "rhs"), ("contracting", "batch")
    return tuple(product.attribute(f"{side}_{kind}_dims") for side in sides for kind in kinds)


def _bare(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Give a shape without dimensions of size one."""
    return tuple(size for size in shape if size != 1)


def _users(graph: Graph, node: Instruction) -> Iterator[Instruction]:
    """Give what takes a value, also another view of it."""
    for user in graph.users.get(node.value, ()):
        yield user
        if user.opcode in VIEWS:
            yield from _users(graph, user)
