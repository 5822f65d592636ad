"""From a collective up to the value that it moves, and down to what needs it elsewhere."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, replace
from itertools import takewhile

from shardnb.bugs import Inconclusive
from shardnb.causes.alignment import Alignment
from shardnb.causes.instruction_index import Values
from shardnb.collectives.find import is_generated
from shardnb.terms.collectives import kind_of, reduces
from shardnb.texts.graph import Graph
from shardnb.texts.instruction import HloValue, Instruction, Key
from shardnb.texts.opcodes import SAME_DIMENSIONS, SHAPE_STEPS, STEPS

_DEPTH = 4
_ZEROS = ("0", "false", "(0, 0)", "-0")


@dataclass(frozen=True)
class Movement:
    """What a collective moves, for whom; values and instructions are those before partitioning.

    `completes_consumer` says that it completes the result of `consumer` itself, `unreduced_operand`
    that it adds up what each device computed for that, as it is, `not_in_declared_layout` that the
    producer was computed in another layout than its declared one. `result` is the number of
    the computation's result that takes it. `sliced` says that a block is cut out of what was
    gathered before the consumer takes it. `sent` is the shape of what enters the first collective
    of the move, `chain` those before this.
    """

    graph: Graph
    collective: Instruction
    producer: HloValue | None
    consumer: str | None = None
    completes_consumer: bool = False
    unreduced_operand: bool = False
    not_in_declared_layout: bool = False
    result: int | None = None
    sliced: bool = False
    sent: tuple[int, ...] | None = None
    chain: tuple[Instruction, ...] = ()

    @property
    def value(self) -> HloValue:
        """The producer's value, where it is known."""
        if self.producer is None:
            raise Inconclusive
        return self.producer


def walk(alignment: Alignment, collective: Instruction) -> Movement:
    """Find both ends of a collective; an end that is not found is None."""
    return _Walk(alignment, collective).run()


@dataclass
class _Walk:
    alignment: Alignment
    collective: Instruction

    @property
    def _before(self) -> Graph:
        return self.alignment.before

    def run(self) -> Movement:
        found, collective = self.alignment, self.collective
        operand, key = found.after.operands[collective.name][0], collective.key
        values = found.values(operand)
        mine = self._named(values, key)
        if not mine and self._sums():
            operand = self._seen_through(operand)
            mine = self._named(found.values(operand), key)
        if mine and self._completes(mine[0].name):
            name = mine[0].name
            source = found.after.node(unmasked_part(found.after, operand))
            direct = found.stands_for.get(source.name) == name and source.key == key
            return Movement(
                self._before,
                collective,
                mine[0],
                name,
                completes_consumer=True,
                unreduced_operand=direct,
            )
        return self._forward(values)

    def _named(self, values: Values, key: Key) -> list[HloValue]:
        named = (self.alignment.named(value, key) for value in values)
        return [one for one in named if one is not None]

    def _seen_through(self, operand: HloValue) -> HloValue:
        """Give what a sum was made of, where it was moved behind what only gives a shape."""
        after = self.alignment.after
        size = _size(after, operand)
        if size is None:
            return operand
        same = takewhile(lambda one: _size(after, one) == size, after.upward(operand, SHAPE_STEPS))
        return list(same)[-1]

    def _completes(self, name: str) -> bool:
        """Whether the collective completes what an operation computes, and does not move it."""
        if not self._sums():
            return self._repeats(name)
        operand = self.alignment.after.operands[self.collective.name][0]
        gathered = unmasked(self.alignment.after, operand) is not None
        return not (gathered and self._before.nodes[name].opcode in STEPS)

    def _sums(self) -> bool:
        return reduces(self.collective.opcode)

    def _repeats(self, name: str) -> bool:
        """Whether the operation runs once more on what was gathered."""
        found, node = self.alignment, self._before.nodes[name]
        return node.opcode == "reduce" and any(
            user.opcode == node.opcode and found.stands_for.get(user.name) in (None, name)
            for user in found.after.users.get(self.collective.value, ())
        )

    def _forward(self, values: Values) -> Movement:
        operand = self.alignment.after.operands[self.collective.name][0]
        if self._sums() and unmasked(self.alignment.after, operand) is not None:
            self.collective = replace(self.collective, opcode="all-gather")
        producers = {value.name for value in values}
        consumers, results, sliced = self._reached(producers)
        for consumer in consumers:
            taken = self._taken(values, consumer)
            if taken is not None:
                return self._move(values, *taken, sliced=sliced)
        folded = self._folded_result(results) if not consumers else None
        taken = self._taken(values, folded) if folded is not None else None
        if taken is not None:
            return self._move(values, *taken, sliced=sliced)
        only = values[0] if values and (len(values) == 1 or results) else None
        result = min(results) if results and not consumers else None
        taker = consumers[0] if consumers else None
        return self._move(values, only, taker, sliced=sliced, result=result)

    def _move(
        self,
        values: Values,
        producer: HloValue | None,
        consumer: str | None,
        *,
        sliced: bool,
        result: int | None = None,
    ) -> Movement:
        return Movement(
            self._before,
            self.collective,
            producer,
            consumer,
            not_in_declared_layout=self._is_variant(values),
            result=result,
            sliced=sliced,
            sent=self._sent(),
            chain=self._chain(),
        )

    def _folded_result(self, results: list[int]) -> str | None:
        """Give what makes a result of the computation, where it left nothing behind."""
        number, values = min(results, default=0), self._before.results
        if not results or number >= len(values):
            return None
        name = values[number].name
        return name if self._is_folded(name) else None

    def _chain(self) -> tuple[Instruction, ...]:
        """Give the collectives of the partitioner that what enters went through right before."""
        after, chain = self.alignment.after, list[Instruction]()
        operand = after.operands[self.collective.name][0]
        while (node := after.maker(operand)) is not None:
            if kind_of(node.opcode) is None or not is_generated(node):
                break
            chain.append(node)
            operand = after.operands[node.name][0]
        return tuple(chain)

    def _sent(self) -> tuple[int, ...] | None:
        """Give the shape of what enters the first of a chain of collectives."""
        after = self.alignment.after
        first = (self.collective, *self._chain())[-1]
        operand = after.operands[first.name][0]
        array = after.array(unmasked(after, operand) or operand)
        return array[1] if array else None

    def _reached(self, producers: set[str]) -> tuple[list[str], list[int], bool]:
        """Give the first instructions of the program before that take what was moved."""
        found = self.alignment
        consumers: list[str] = []
        results: list[int] = []
        sliced = False
        queue, seen = deque([found.after.nodes[self.collective.name]]), set[Instruction]()
        while queue:
            node = queue.popleft()
            if node in seen:
                continue
            seen.add(node)
            if node.is_root:
                results.append(0)
            for user in found.after.users.get(node.value, ()):
                own = found.stands_for.get(user.name)
                if user.opcode == "tuple":
                    results += found.after.places(user).get(node.value, ())
                elif own is not None and own not in producers:
                    consumers.append(own)
                else:
                    sliced = sliced or user.opcode == "dynamic-slice"
                    queue.append(user)
        consumers.sort(key=lambda one: self._before.position[one])
        return list(dict.fromkeys(consumers)), results, sliced

    def _taken(self, values: Values, consumer: str) -> tuple[HloValue, str] | None:
        """Find the value that a consumer takes, or the instruction between that takes it.

        What the partitioner folded away stands between them in the program before.
        """
        wanted = dict.fromkeys(values)
        before, key = self._before, self.collective.key
        if key[0] and before.nodes[consumer].key == key:
            operands = before.operands[consumer]
            wholes = {one for o in operands for one in before.upward(o, SAME_DIMENSIONS)}
            known = next((value for value in wanted if value in wholes), None)
            if known is not None:
                return known, consumer
        queue = deque([(consumer, 0)])
        while queue:
            name, depth = queue.popleft()
            operands = before.operands[name]
            for operand in operands:
                if operand in wanted:
                    return operand, name
            if depth < _DEPTH:
                folded = (operand.name for operand in operands if self._is_folded(operand.name))
                queue.extend((name, depth + 1) for name in folded)
        return None

    def _is_folded(self, name: str) -> bool:
        """Whether an instruction left nothing behind."""
        return name in self._before.nodes and name not in self.alignment.standing

    def _is_variant(self, values: Values) -> bool:
        """Whether what is moved was computed in another layout than the declared one."""
        found = self.alignment
        operand = found.after.operands[self.collective.name][0]
        operand = unmasked(found.after, operand) or operand
        if values and self._lies_as_declared(operand, values[0]):
            return False
        made = self._before.maker(values[0]) if values else None
        further = bool(values) and (made is None or made.key != self.collective.key)
        seen = set[HloValue]()
        while operand not in seen:
            seen.add(operand)
            if operand.name in found.stands_for:
                return operand.name not in found.exact
            operands = found.after.operands.get(operand.name, ())
            if not operands:
                return False
            holding = (o for o in operands if set(values) & set(found.values(o)))
            operand = next(holding, operands[0])
            if further and self._has_shape(operand, values[0]):
                return False
        return False

    def _has_shape(self, operand: HloValue, value: HloValue) -> bool:
        """Whether a value after has the shape of the declared block of one before."""
        array = self.alignment.after.array(operand)
        return array is not None and array[1] == self.alignment.shard_shape(value)

    def _lies_as_declared(self, operand: HloValue, value: HloValue) -> bool:
        """Whether what enters has the shape of the value's declared block."""
        after = self.alignment.after
        for _ in range(2):
            if self._has_shape(operand, value):
                return True
            node = after.node(operand)
            if node.name in self.alignment.stands_for or node.opcode != "reshape":
                return False
            operand = after.operands[node.name][0]
        return False


def unmasked(after: Graph, operand: HloValue) -> HloValue | None:
    """Give the block that each device puts among zeros, so that a sum of all gathers the blocks.

    None where a value is none of that kind.
    """
    block = None
    for opcode, part, zero in (("dynamic-update-slice", 1, 0), ("select", 1, 2)):
        node = after.maker(operand)
        if node is not None and node.opcode == opcode:
            operands = after.operands[node.name]
            if _is_zero(after, operands[zero]):
                block = operand = operands[part]
    return block


def unmasked_part(after: Graph, operand: HloValue) -> HloValue:
    """Give what a device adds to a sum, without the zeros for what it does not hold."""
    node = after.maker(operand)
    if node is None or node.opcode != "select":
        return operand
    _, one, other = after.operands[node.name]
    return other if _is_zero(after, one) else one if _is_zero(after, other) else operand


def _is_zero(graph: Graph, value: HloValue) -> bool:
    node = graph.maker(graph.source(value, ("broadcast",)))
    if node is None or node.opcode != "constant":
        return False
    return node.operand_text.strip() in _ZEROS


def _size(graph: Graph, value: HloValue) -> int | None:
    array = graph.array(value)
    return math.prod(array[1]) if array is not None else None
