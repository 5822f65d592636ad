"""From a collective up to the value that it moves, and down to what needs it elsewhere."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, replace

from shardnb.causes.alignment import Alignment
from shardnb.causes.instruction_index import MOVERS, Values
from shardnb.collectives.find import is_generated
from shardnb.terms.collectives import KINDS, reduces
from shardnb.texts.graph import Graph, Key
from shardnb.texts.hlo import Instruction

_DEPTH = 4
_VIEWS = ("broadcast", "copy", "reshape", "transpose")
_ZEROS = ("0", "false", "(0, 0)", "-0")


@dataclass(frozen=True)
class Move:
    """What a collective moves, for whom; values and instructions are those before partitioning.

    `own` says that it completes the result of `consumer` itself, `direct` that what that computed
    enters as it is, `again` that the operation runs once more on what was gathered, `variant` that
    the producer was computed in another layout than its declared one. `result` is the number of
    the computation's result that takes it. `sliced` says that a block is cut out of what was
    gathered before the consumer takes it. `sent` is the shape of what enters the first collective
    of the move, `chain` those before this.
    """

    graph: Graph
    collective: Instruction
    producer: str | None
    consumer: str | None = None
    own: bool = False
    again: bool = False
    direct: bool = False
    variant: bool = False
    result: int | None = None
    sliced: bool = False
    sent: tuple[int, ...] | None = None
    chain: tuple[Instruction, ...] = ()


def walk(alignment: Alignment, collective: Instruction) -> Move:
    """Find both ends of a collective; an end that is not found is None."""
    return _Walk(alignment, collective).run()


@dataclass
class _Walk:
    alignment: Alignment
    collective: Instruction

    @property
    def _before(self) -> Graph:
        return self.alignment.before

    def run(self) -> Move:
        found, collective = self.alignment, self.collective
        operand, key = found.after.operands[collective.name][0], found.after.keys[collective.name]
        values = found.values(operand)
        mine = self._named(values, key)
        if not mine and self._sums():
            operand = self._seen_through(operand)
            mine = self._named(found.values(operand), key)
        if mine and self._completes(_name(mine[0])):
            name = _name(mine[0])
            again = not self._sums()
            source = _name(unmasked_part(found.after, operand))
            direct = found.own.get(source) == name and found.after.keys[source] == key
            return Move(
                self._before, collective, mine[0], name, own=True, again=again, direct=direct
            )
        return self._forward(values)

    def _named(self, values: Values, key: Key) -> list[str]:
        named = (self.alignment.named(value, key) for value in values)
        return [one for one in named if one is not None]

    def _seen_through(self, operand: str) -> str:
        """Give what a sum was made of, where it was moved behind what only gives a shape."""
        after = self.alignment.after
        size = after.array(operand)
        while (node := after.nodes.get(operand)) is not None and node.opcode in _VIEWS:
            below = after.operands[node.name][0]
            array = after.array(below)
            if size is None or array is None or math.prod(array[1]) != math.prod(size[1]):
                break
            operand = below
        return operand

    def _completes(self, name: str) -> bool:
        """Whether the collective completes what an operation computes, and does not move it."""
        if not self._sums():
            return self._repeats(name)
        operand = self.alignment.after.operands[self.collective.name][0]
        gathered = unmasked(self.alignment.after, operand) is not None
        return not (gathered and self._before.nodes[name].opcode in MOVERS)

    def _sums(self) -> bool:
        return reduces(self.collective.opcode)

    def _repeats(self, name: str) -> bool:
        """Whether the operation runs once more on what was gathered."""
        found, node = self.alignment, self._before.nodes[name]
        return node.opcode == "reduce" and any(
            found.after.nodes[user].opcode == node.opcode and found.own.get(user) in (None, name)
            for user in found.after.users.get(self.collective.name, ())
        )

    def _forward(self, values: Values) -> Move:
        operand = self.alignment.after.operands[self.collective.name][0]
        if self._sums() and unmasked(self.alignment.after, operand) is not None:
            self.collective = replace(self.collective, opcode="all-gather")
        producers = {_name(value) for value in values}
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
        producer: str | None,
        consumer: str | None,
        *,
        sliced: bool,
        result: int | None = None,
    ) -> Move:
        return Move(
            self._before,
            self.collective,
            producer,
            consumer,
            variant=self._is_variant(values),
            result=result,
            sliced=sliced,
            sent=self._sent(),
            chain=self._chain(),
        )

    def _folded_result(self, results: list[int]) -> str | None:
        """Give what makes a result of the computation, where it left nothing behind."""
        if not results:
            return None
        root = self._before.root
        places = root.operands if root.opcode == "tuple" else (root.name,)
        number = min(results)
        if number >= len(places):
            return None
        name = _name(self._before.resolve(places[number]))
        return name if self._is_folded(name) else None

    def _chain(self) -> tuple[Instruction, ...]:
        """Give the collectives of the partitioner that what enters went through right before."""
        after, chain = self.alignment.after, list[Instruction]()
        operand = after.operands[self.collective.name][0]
        while (node := after.nodes.get(operand)) is not None:
            if node.opcode not in KINDS or not is_generated(node):
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
        queue, seen = deque([self.collective.name]), set[str]()
        while queue:
            name = queue.popleft()
            if name in seen:
                continue
            seen.add(name)
            if found.after.nodes[name].is_root:
                results.append(0)
            for user in found.after.users.get(name, ()):
                node = found.after.nodes[user]
                if node.opcode == "tuple":
                    results += found.after.places(node).get(name, ())
                elif user in found.own and found.own[user] not in producers:
                    consumers.append(found.own[user])
                else:
                    sliced = sliced or node.opcode == "dynamic-slice"
                    queue.append(user)
        consumers.sort(key=lambda one: self._before.position[one])
        return list(dict.fromkeys(consumers)), results, sliced

    def _taken(self, values: Values, consumer: str) -> tuple[str, str] | None:
        """Find the value that a consumer takes, or the instruction between that takes it.

        What the partitioner folded away stands between them in the program before.
        """
        wanted = dict.fromkeys(values)
        key = self.alignment.after.keys[self.collective.name]
        if key[0] and self._before.keys[consumer] == key:
            operands = self._before.operands[consumer]
            wholes = {whole for operand in operands for whole in self._before.whole_of(operand)}
            known = next((value for value in wanted if value in wholes), None)
            if known is not None:
                return known, consumer
        queue = deque([(consumer, 0)])
        while queue:
            name, depth = queue.popleft()
            operands = self._before.operands[name]
            for operand in operands:
                if operand in wanted:
                    return operand, name
            if depth < _DEPTH:
                queue.extend(
                    (_name(operand), depth + 1)
                    for operand in operands
                    if self._is_folded(_name(operand))
                )
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
        key = found.after.keys[self.collective.name]
        further = bool(values) and self._before.keys.get(_name(values[0])) != key
        seen = set[str]()
        while operand not in seen:
            seen.add(operand)
            name = operand.partition("#")[0]
            if name in found.own:
                return name not in found.exact
            operands = found.after.operands.get(name, ())
            if not operands:
                return False
            holding = (o for o in operands if set(values) & set(found.values(o)))
            operand = next(holding, operands[0])
            if further and self._has_shape(operand, values[0]):
                return False
        return False

    def _has_shape(self, operand: str, value: str) -> bool:
        """Whether a value after has the shape of the declared block of one before."""
        array = self.alignment.after.array(operand)
        return array is not None and array[1] == self.alignment.shard_shape(value)

    def _lies_as_declared(self, operand: str, value: str) -> bool:
        """Whether what enters has the shape of the value's declared block."""
        after = self.alignment.after
        for _ in range(2):
            name = operand.partition("#")[0]
            if self._has_shape(operand, value):
                return True
            if name in self.alignment.own or after.nodes[name].opcode != "reshape":
                return False
            operand = after.operands[name][0]
        return False


def _name(value: str) -> str:
    return value.partition("#")[0]


def unmasked(after: Graph, operand: str) -> str | None:
    """Give the block that each device puts among zeros, so that a sum of all gathers the blocks.

    None where a value is none of that kind.
    """
    block = None
    for opcode, part, zero in (("dynamic-update-slice", 1, 0), ("select", 1, 2)):
        node = after.nodes.get(operand)
        if node is not None and node.opcode == opcode:
            operands = after.operands[node.name]
            if _is_zero(after, operands[zero]):
                block = operand = operands[part]
    return block


def unmasked_part(after: Graph, operand: str) -> str:
    """Give what a device adds to a sum, without the zeros for what it does not hold."""
    node = after.nodes.get(operand)
    if node is None or node.opcode != "select":
        return operand
    _, one, other = after.operands[node.name]
    return other if _is_zero(after, one) else one if _is_zero(after, other) else operand


def _is_zero(graph: Graph, value: str) -> bool:
    node = graph.nodes.get(value)
    while node is not None and node.opcode == "broadcast":
        node = graph.nodes.get(graph.operands[node.name][0])
    if node is None or node.opcode != "constant":
        return False
    return node.operand_text.strip() in _ZEROS
