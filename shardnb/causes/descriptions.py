"""What a sentence says of both ends of a move: their names and their shardings."""

from __future__ import annotations

from dataclasses import dataclass

from shardnb.causes.data_movement import Movement
from shardnb.causes.names import LOOP_CARRY, THE_RESULT, ValueNames, only_returns
from shardnb.causes.roles import Purpose
from shardnb.causes.sentence import Facts
from shardnb.causes.unpartitioned import Unpartitioned
from shardnb.causes.verdict import Verdict
from shardnb.report.model import Spec
from shardnb.terms.roles import GRADIENTS
from shardnb.texts.graph import Graph
from shardnb.texts.instruction import HloValue, Instruction
from shardnb.texts.opcodes import ONE_OPERAND_STEPS, SAME_DIMENSIONS


def ends(move: Movement, verdict: Verdict) -> tuple[Instruction | None, Instruction | None]:
    """Return what makes the value that is moved, and the operation that it is moved for."""
    made = move.graph.node(move.producer) if move.producer is not None else None
    if verdict.needed_by_producer:
        return made, made
    return made, move.graph.nodes.get(verdict.consumer or move.consumer or "")


@dataclass(frozen=True)
class Descriptions:
    """Describes moves of the program before partitioning."""

    program: Unpartitioned
    names: ValueNames

    def facts(self, move: Movement, verdict: Verdict, purpose: Purpose) -> Facts:
        """Return what the sentence of a move says of its ends."""
        graph = move.graph
        made, node = ends(move, verdict)
        own = move.completes_consumer or verdict.needed_by_producer
        consumer = self._consumer(move, verdict, node)
        # What an operation needs of its own result is said of that operation by its own name.
        known = not verdict.needed_by_producer and consumer not in (LOOP_CARRY, THE_RESULT)
        operation = self.names.written(node) if known and node is not None else ""
        spec = verdict.actual or self._spec(graph, move.producer)
        return Facts(
            producer=self._producer(move, verdict, node, own=own),
            consumer=consumer,
            operation=operation,
            gradient_of=purpose.of if self._is_gradient(graph, made, purpose) else "",
            spec=None if verdict.layout_unknown else spec,
            own=own,
            other=self._other(verdict, node),
            other_spec=self._spec(*verdict.other) if verdict.other else None,
            stated=self._stated(verdict, move) if consumer != THE_RESULT else None,
            met_by=self._met_by(verdict, node),
        )

    def _consumer(self, move: Movement, verdict: Verdict, node: Instruction | None) -> str | None:
        returned = move.result is not None
        returned = returned or (node is not None and only_returns(move.graph, node))
        if returned and not verdict.needed_by_producer:
            return self._end_of(move.graph)
        return self.names.operation(node) if node is not None else None

    def _producer(
        self, move: Movement, verdict: Verdict, node: Instruction | None, *, own: bool
    ) -> str | None:
        """Name what is moved, for what takes it."""
        if move.producer is None:
            return None
        if verdict.needed_by_producer:
            return self.names.result(move.graph, move.producer)
        if own or node is None:
            return self.names.value(move.graph, move.producer)
        if _is_index(move.graph, move.producer, node):
            return self.names.indices(move.graph, node)
        return self.names.taken(move.graph, move.producer, node)

    def _is_gradient(self, graph: Graph, made: Instruction | None, purpose: Purpose) -> bool:
        """Whether what is moved is called a gradient, as no text of the user's names it."""
        nameless = made is not None and not self.names.text(graph, made.value)
        return nameless and purpose.role in GRADIENTS

    def _other(self, verdict: Verdict, node: Instruction | None) -> str | None:
        """Name the operand that disagrees; of a look-up these are the indices."""
        if verdict.other is None:
            return None
        graph, value = verdict.other
        if node is None or verdict.met_by is not None or graph.nodes.get(node.name) is not node:
            return self.names.value(graph, value)
        if _is_index(graph, value, node):
            return f"the indices {self.names.indices(graph, node)}"
        return self.names.taken(graph, value, node)

    def _stated(self, verdict: Verdict, move: Movement) -> str | None:
        """Name the value whose sharding the user wrote: two results may have one name."""
        if verdict.stated is None:
            return None
        graph, value = verdict.stated.value
        name = self.names.value(graph, value)
        moved = self.names.value(move.graph, move.value)
        views = graph.upward(value, SAME_DIMENSIONS)
        other = name == moved and name.startswith("result of ") and move.value not in views
        return "what is computed from it" if other else name

    def _met_by(self, verdict: Verdict, consumer: Instruction | None) -> str | None:
        """Name the later operation that takes both; not a step of the same JAX operation."""
        met_by = verdict.met_by
        if met_by is None or (consumer is not None and met_by.key == consumer.key):
            return None
        return self.names.written(met_by) or self.names.operation(met_by)

    def _end_of(self, graph: Graph) -> str | None:
        """Name what takes a result of a computation, where it is the program or a loop's body."""
        if graph.name == self.program.module.entry:
            return THE_RESULT
        return LOOP_CARRY if self.program.module.is_loop(graph) else None

    def _spec(self, graph: Graph, value: HloValue | None) -> Spec | None:
        layout = self.program.layout(graph, value) if value else None
        return layout.spec if layout else None


def _is_index(graph: Graph, value: HloValue, node: Instruction) -> bool:
    """Whether an operation looks rows up with a value, or updates them."""
    if node.opcode not in ("gather", "scatter"):
        return False
    return value in graph.upward(graph.operands[node.name][1], ONE_OPERAND_STEPS)
