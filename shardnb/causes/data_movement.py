"""From a collective up to the value that it moves, and down to what needs it elsewhere."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile

from shardnb.bugs import Inconclusive
from shardnb.causes.alignment import Alignment
from shardnb.causes.instruction_index import Values
from shardnb.collectives.find import is_generated
from shardnb.terms.collectives import kind_of, reduces
from shardnb.texts.graph import Graph
from shardnb.texts.instruction import HloValue, Instruction
from shardnb.texts.opcodes import SAME_DIMENSIONS, SHAPE_STEPS, STEPS

_DEPTH = 4
_ZEROS = ("0", "false", "(0, 0)", "-0")


@dataclass(frozen=True)
class Movement:
    """What a collective moves, for whom; values and instructions are those before partitioning.

    `completes_consumer` says that it completes the result of `consumer` itself, `unreduced_operand`
    that it adds up what each device computed for that, as it is, `not_in_declared_layout` that the
    producer was computed in another layout than its declared one. `result` is the number of the
    computation's result that takes it. `sliced` says that a block is sliced from the gathered value
    before the consumer takes it, `permuted_first` that a permute brings blocks to where they are
    gathered at once. `sent` is the shape of what enters the first collective of the
    move, `chain` those before this.
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
    permuted_first: bool = False
    sent: tuple[int, ...] | None = None
    chain: tuple[Instruction, ...] = ()

    @property
    def exchanges(self) -> bool:
        """Whether blocks change places, so that neighbours may exchange edges."""
        return self.collective.opcode == "collective-permute" and not self.permuted_first

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

    @cached_property
    def _sums(self) -> bool:
        return reduces(self.collective.opcode)

    @cached_property
    def _operand(self) -> HloValue:
        return self.alignment.after.operands[self.collective.name][0]

    @cached_property
    def _block(self) -> HloValue | None:
        """What each device puts among zeros, where the collective adds up such blocks.

        A reshape may drop a dimension of size one of them before they are sent (`cumsum_rows`).
        """
        after = self.alignment.after
        return unmasked(after, self._operand) or unmasked(
            after, after.source(self._operand, ("reshape",))
        )

    def run(self) -> Movement:
        alignment, operand, key = self.alignment, self._operand, self.collective.key
        values = alignment.values(operand)
        named = self._named(values)
        if not named and self._sums:
            operand = self._seen_through(operand)
            named = self._named(alignment.values(operand))
        if not named or not self._completes(named[0].name):
            block = self._block if unmasked(alignment.after, self._operand) is None else None
            return self._forward(alignment.values(block) if block is not None else values)
        value = self._computed(named[0])
        name = value.name
        source = alignment.after.node(unmasked_part(alignment.after, operand))
        return Movement(
            self._before,
            self.collective,
            value,
            name,
            completes_consumer=True,
            unreduced_operand=alignment.stands_for.get(source.name) == name and source.key == key,
        )

    def _computed(self, value: HloValue) -> HloValue:
        """Return what an operation computes, for its last step, which only turns that.

        A look-up under `vmap` ends so (`words_looked_up_by_each_row`).
        """
        node = self._before.node(value)
        while self._sums and node.opcode == "transpose":
            operand = self._before.operands[node.name][0]
            made = self._before.maker(operand)
            if made is None or made.key != node.key:
                break
            value, node = operand, made
        return value

    def _named(self, values: Values) -> list[HloValue]:
        named = (self.alignment.named(value, self.collective.key) for value in values)
        return [value for value in named if value is not None]

    def _seen_through(self, operand: HloValue) -> HloValue:
        """Return what a sum was made of, if it comes after operations that only change a shape.

        Or the order, which changes nothing of a sum of devices (`labels_in_descending_order`).
        """
        after = self.alignment.after
        size = _size(after, operand)
        if size is None:
            return operand
        steps = after.upward(operand, SHAPE_STEPS | {"reverse"})
        return list(takewhile(lambda value: _size(after, value) == size, steps))[-1]

    def _completes(self, name: str) -> bool:
        """Whether the collective completes what an operation computes, and does not move it.

        A gather completes a reduce that runs once more on the gathered parts, as argmax does.
        """
        node, after = self._before.nodes[name], self.alignment.after
        if self._sums:
            return self._block is None or node.opcode not in STEPS
        return node.opcode == "reduce" and any(
            user.opcode == "reduce" and self.alignment.stands_for.get(user.name) in (None, name)
            for user in after.users.get(self.collective.value, ())
        )

    def _forward(self, values: Values) -> Movement:
        """Find who takes what was moved: an operation, what was folded into a result, a result."""
        collective = self.collective
        if self._sums and self._block is not None:
            collective = replace(collective, opcode="all-gather")
        consumers, results, sliced = self._reached({value.name for value in values})
        ends = consumers or [name for name in [self._folded_result(results)] if name is not None]
        found = (self._taken(values, consumer) for consumer in ends)
        taken = next((end for end in found if end is not None), None)
        only = values[0] if values and (len(values) == 1 or results) else None
        producer, consumer = taken or (only, consumers[0] if consumers else None)
        chain = self._chain()
        first = self.alignment.after.operands[(collective, *chain)[-1].name][0]
        sent = self.alignment.after.array(unmasked(self.alignment.after, first) or first)
        return Movement(
            self._before,
            collective,
            producer,
            consumer,
            not_in_declared_layout=self._is_variant(values),
            result=min(results) if results and not consumers and taken is None else None,
            sliced=sliced,
            permuted_first=self._is_gathered_next(),
            sent=sent[1] if sent else None,
            chain=chain,
        )

    def _is_gathered_next(self) -> bool:
        """Whether the partitioner gathers what was moved (`rows_written_at_positions`)."""
        users = self.alignment.after.users.get(self.collective.value, ())
        return any(kind_of(user.opcode) == "all-gather" and is_generated(user) for user in users)

    def _folded_result(self, results: list[int]) -> str | None:
        """Return what makes a result of the computation, if it left no instruction."""
        values = self._before.results
        if not results or min(results) >= len(values):
            return None
        name = values[min(results)].name
        return name if self._is_folded(name) else None

    def _chain(self) -> tuple[Instruction, ...]:
        """Return the collectives of the partitioner that what enters went through right before."""
        after, operand, chain = self.alignment.after, self._operand, list[Instruction]()
        while (node := after.maker(operand)) is not None:
            if kind_of(node.opcode) is None or not is_generated(node):
                break
            chain.append(node)
            operand = after.operands[node.name][0]
        return tuple(chain)

    def _reached(self, producers: set[str]) -> tuple[list[str], list[int], bool]:
        """Return the first instructions of the program before that take what was moved."""
        found = self.alignment
        consumers, results, sliced = list[str](), list[int](), False
        queue, seen = deque([found.after.nodes[self.collective.name]]), set[Instruction]()
        while queue:
            node = queue.popleft()
            if node in seen:
                continue
            seen.add(node)
            if node.is_root:
                results.append(0)
            for user in found.after.users.get(node.value, ()):
                old = found.stands_for.get(user.name)
                if user.opcode == "tuple":
                    results += found.after.places(user).get(node.value, ())
                elif old is not None and old not in producers:
                    consumers.append(old)
                else:
                    sliced = sliced or user.opcode == "dynamic-slice"
                    queue.append(user)
        return sorted(set(consumers), key=self._before.position.__getitem__), results, sliced

    def _taken(self, values: Values, consumer: str) -> tuple[HloValue, str] | None:
        """Find the value that a consumer takes, or the instruction between that takes it.

        What the partitioner folded away stands between them in the program before. A collective
        that has the name of what it moves is for what takes that (`keys_of_a_split`).
        """
        wanted = dict.fromkeys(values)
        before, key = self._before, self.collective.key
        if key[0] and before.nodes[consumer].key == key:
            operands = before.operands[consumer]
            wholes = {value for o in operands for value in before.upward(o, SAME_DIMENSIONS)}
            known = next((value for value in wanted if value in wholes), None)
            if known is not None:
                return known, consumer
        if values and before.node(values[0]).key == key and values[0] in before.operands[consumer]:
            return values[0], consumer
        first: tuple[HloValue, str] | None = None
        queue = deque([(consumer, 0)])
        while queue:
            name, depth = queue.popleft()
            operands = before.operands[name]
            for operand in operands:
                if operand in wanted and (first is None or self._names(name)):
                    first = operand, name
            if first is not None and self._names(first[1]):
                return first
            if depth < _DEPTH:
                makers = (o.name for o in operands if o.name in before.nodes)
                between = [m for m in makers if self._is_folded(m) or self._names(m)]
                queue.extend((name, depth + 1) for name in between)
        return first

    def _names(self, name: str) -> bool:
        """Whether the collective has the name and line of an instruction of the program before.

        What takes the value itself may be the consumer of another one as well: in
        `shifted_difference` the collective is for the pad, and not for the subtraction.
        """
        key = self.collective.key
        return bool(key[0]) and self._before.nodes[name].key == key

    def _is_folded(self, name: str) -> bool:
        """Whether an instruction left no instruction after partitioning."""
        return name in self._before.nodes and name not in self.alignment.standing

    def _is_variant(self, values: Values) -> bool:
        """Whether what is moved was computed in another layout than the declared one."""
        found, operand = self.alignment, self._block or self._operand
        if values and self._lies_as_declared(operand, values[0]):
            return False
        made = self._before.maker(values[0]) if values else None
        further = bool(values) and (made is None or made.key != self.collective.key)
        seen = set[HloValue]()
        while operand not in seen and operand.name not in found.stands_for:
            seen.add(operand)
            operands = found.after.operands.get(operand.name, ())
            if not operands:
                return False
            holding = (o for o in operands if set(values) & set(found.values(o)))
            operand = next(holding, operands[0])
            if further and self._has_shape(operand, values[0]):
                return False
        return operand.name in found.stands_for and operand.name not in found.exact

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


def next_permute(after: Graph, collective: Instruction) -> list[Instruction]:
    """Return the permute that ends a move which a collective begins, where there is one.

    Both have one name, as have all steps between them (`branches_that_meet_another_axis`).
    """
    node = collective
    for _ in range(_DEPTH):
        users = after.users.get(node.value, ())
        if len(users) != 1 or users[0].key != collective.key:
            return []
        node = users[0]
        if node.opcode == "collective-permute":
            return [node] if is_generated(node) else []
    return []


def unmasked(after: Graph, operand: HloValue) -> HloValue | None:
    """Return the block that each device puts among zeros, so that a sum of all gathers the blocks.

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
    """Return what a device adds to a sum, without the zeros for what it does not hold."""
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
