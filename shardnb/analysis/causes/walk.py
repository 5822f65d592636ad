"""From a collective up to the value that it moves, and down to what needs it elsewhere."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from shardnb.analysis.causes.align import Alignment
from shardnb.analysis.causes.graph import Graph
from shardnb.compiler.hlo import Instruction

RESULT = "result"


@dataclass(frozen=True)
class Move:
    """What a collective moves, for whom; values and instructions are those before partitioning.

    `own` says that it completes or moves the result of `consumer` itself. `result` is the number
    of the program's (or the loop body's) result that takes it. `sliced` says that a block is cut
    out of what was gathered before the consumer takes it.
    """

    graph: Graph
    collective: Instruction
    producer: str | None
    consumer: str | None = None
    own: bool = False
    result: int | None = None
    sliced: bool = False
    again: bool = False


def walk(alignment: Alignment, collective: Instruction) -> Move:
    """Find both ends of a collective; an end that is not found is None."""
    return _Walk(alignment, collective).run()


@dataclass
class _Walk:
    alignment: Alignment
    collective: Instruction
    _sliced: bool = field(default=False)

    @property
    def _before(self) -> Graph:
        return self.alignment.before

    def run(self) -> Move:
        found, collective = self.alignment, self.collective
        operand = found.after.operands[collective.name][0]
        values = found.values(operand)
        step = found.steps.get(collective.name)
        if step is not None:
            producer = self._taken(values, step)
            return Move(self._before, collective, producer, step)
        if len(values) != 1:
            return Move(self._before, collective, None)
        value = values[0]
        key = found.after.keys[collective.name]
        name = value.partition("#")[0]
        mine = bool(key[0]) and self._before.keys.get(name) == key
        if mine and self._repeats(name):
            return Move(self._before, collective, value, name, own=True, again=True)
        if mine and collective.opcode in ("all-reduce", "reduce-scatter"):
            return Move(self._before, collective, value, name, own=True)
        return self._forward(value, name)

    def _taken(self, values: tuple[str, ...], step: str) -> str | None:
        """Of several values, give the one that an instruction takes."""
        operands = self._before.operands[step]
        taken = [value for value in values if value in operands]
        return taken[0] if taken else values[0] if len(values) == 1 else None

    def _repeats(self, name: str) -> bool:
        """Whether the operation runs once more on what was gathered."""
        found, node = self.alignment, self._before.nodes[name]
        return node.opcode == "reduce" and any(
            found.after.nodes[user].opcode == node.opcode and user not in found.own
            for user in found.after.users.get(self.collective.name, ())
        )

    def _forward(self, value: str, producer: str) -> Move:
        found = self.alignment
        variant = self._is_variant(value)
        consumers: list[str] = []
        results: list[int] = []
        sliced = False
        queue, seen = deque([self.collective.name]), set[str]()
        while queue:
            name = queue.popleft()
            if name in seen:
                continue
            seen.add(name)
            node = found.after.nodes[name]
            if node.is_root and node.opcode != "tuple":
                results.append(0)
            for user in found.after.users.get(name, ()):
                other = found.after.nodes[user]
                if other.opcode == "tuple":
                    results += self._places(other, name)
                elif user in found.steps and found.steps[user] != producer:
                    consumers.append(found.steps[user])
                elif user in found.own and found.own[user] != producer:
                    consumers.append(found.own[user])
                else:
                    sliced = sliced or other.opcode == "dynamic-slice"
                    queue.append(user)
        consumers.sort(key=lambda one: self._before.position[one])
        consumer = consumers[0] if consumers else None
        result = min(results) if results and not consumers else None
        if variant and not self._is_needed(consumer, value):
            consumer = consumer or None
        return Move(
            self._before, self.collective, value, consumer, own=variant, result=result, sliced=sliced
        )

    def _is_variant(self, value: str) -> bool:
        """Whether what is moved was computed in another layout than the declared one."""
        found = self.alignment
        operand = found.after.operands[self.collective.name][0]
        seen = set[str]()
        while operand not in seen:
            seen.add(operand)
            name = operand.partition("#")[0]
            if name in found.own:
                return name not in found.exact
            operands = found.after.operands.get(name, ())
            if not operands:
                return False
            operand = next((o for o in operands if value in found.values(o)), operands[0])
        return False

    def _is_needed(self, consumer: str | None, value: str) -> bool:
        return consumer is not None and value in self._before.operands[consumer]

    def _places(self, root: Instruction, name: str) -> list[int]:
        resolve = self.alignment.after.resolve
        return [at for at, operand in enumerate(root.operands) if resolve(operand) == name]
