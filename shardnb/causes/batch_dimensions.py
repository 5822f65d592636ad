"""Which dimension of a program's values is the batch, and where a mesh axis leaves it.

The batch comes in by arguments that are neither parameters nor state, as their first dimension
where a mesh axis shards that. Shardy's rules say which dimension of a result it is. Where that is
not plain, as for a reshape that puts it after another dimension, it is given up, and nothing is
said of what follows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from shardnb.causes.rule_factors import Factors
from shardnb.causes.training import Training
from shardnb.report.spec import axes_in, axis_size
from shardnb.texts.graph import Graph
from shardnb.texts.hlo import GraphValue
from shardnb.texts.instruction import HloValue, Instruction
from shardnb.texts.opcodes import CONSTANTS, TUPLES
from shardnb.texts.shardy_attributes import Rule

Batch = dict[int, frozenset[str]]
"""The dimensions of a value that are the batch, each with the axes that shard it at the start."""

_NUMBERS = re.compile(r"\d+")

_TURNS = 3
"""As many as it takes until what enters a loop has reached each part of its carry."""


@dataclass(frozen=True)
class Loss:
    """An operation that takes a batch sharded over an axis, and whose result has lost that.

    The parameter number `kept_by` has the axis on what is `dimension` of the result. It is None
    where the rows are looked up by indices that the axis does not shard.
    """

    graph: Graph
    node: Instruction
    axis: str
    operand: HloValue
    kept_by: int | None
    dimension: int


@dataclass
class BatchDimensions:
    """Follows the batch through the program before partitioning, once."""

    factors: Factors
    training: Training
    losses: list[Loss] = field(default_factory=list)
    _known: dict[tuple[str, HloValue], Batch] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Walk over the program, where it is known which of its arguments are data."""
        entry, training = self.training.flows.entry, self.training
        for number, value in entry.parameters.items():
            if number not in training.parameters and number not in training.owners:
                axes = self.spec(entry, value)[:1]
                if axes and axes[0]:
                    self._known[entry.name, value] = {0: frozenset(axes[0])}
        if training.parameters and self._known:
            self._walk(entry)

    @property
    def order(self) -> tuple[str, ...]:
        """The mesh axes in their order."""
        return tuple(self.factors.program.reader.mesh.shape)

    def of(self, graph: Graph, value: HloValue) -> Batch:
        """Return the dimensions of a value that are the batch."""
        return self._known.get((graph.name, value), {})

    def spec(self, graph: Graph, value: HloValue) -> tuple[tuple[str, ...], ...]:
        """Return the spec of a value, empty where mesh axes do not say it."""
        layout = self.factors.program.layout(graph, value)
        return (layout.spec or ()) if layout is not None else ()

    def keeps(self, graph: Graph, node: Instruction, axis: str) -> bool:
        """Whether the result of an operation has an axis on its batch."""
        spec, batch = self.spec(graph, node.value), self.of(graph, node.value)
        return any(axis in spec[dim] for dim in batch if dim < len(spec))

    def _walk(self, graph: Graph) -> None:
        for node in graph.body:
            if node.opcode in TUPLES or node.opcode in CONSTANTS or node.opcode == "parameter":
                continue
            if node.opcode == "while":
                self._loop(graph, node)
            elif not node.is_tuple and any(
                (graph.name, operand) in self._known for operand in graph.operands[node.name]
            ):
                self._step(graph, node)

    def _loop(self, graph: Graph, loop: Instruction) -> None:
        body = self.training.flows.module.computations.get(loop.calls("body"))
        operands = graph.operands[loop.name]
        if body is None or 0 not in body.parameters or len(operands) != len(body.results):
            return
        carry, losses = body.parameters[0], len(self.losses)
        batches = [self.of(graph, operand) for operand in operands]
        for _ in range(_TURNS):
            del self.losses[losses:]
            for at, batch in enumerate(batches):
                if batch:
                    self._known[body.name, carry.at(at)] = batch
            self._walk(body)
            news = [self.of(body, result) for result in body.results]
            grown = [old or new for old, new in zip(batches, news, strict=True)]
            if grown == batches:
                break
            batches = grown
        for at, batch in enumerate(batches):
            if batch:
                self._known[graph.name, loop.value.at(at)] = batch

    def _step(self, graph: Graph, node: Instruction) -> None:
        """Say which dimensions of a result are the batch, and what it has lost."""
        rule = self.factors.known(graph, node)
        if rule is None or len(rule.results) != 1:
            return
        found: Batch = self._looked_up(graph, node)
        for at, operand in enumerate(graph.operands[node.name]):
            for dim, axes in self.of(graph, operand).items():
                target = _target(rule, at, dim)
                if target is not None:
                    found[target] = found.get(target, frozenset()) | axes
        if found:
            self._known[graph.name, node.value] = found
            self.losses += self._lost(graph, node, rule, found)

    def _looked_up(self, graph: Graph, node: Instruction) -> Batch:
        """Return the dimension of the rows that are looked up in a batch, as a shuffle does.

        They lose an axis that does not shard the indices, though it divides them
        (`shuffled_minibatches`).
        """
        array = graph.array(node.value)
        if node.opcode != "gather" or array is None or node.attribute("start_index_map") != "{0}":
            return {}
        operand = graph.operands[node.name][0]
        axes = self.of(graph, operand).get(0, frozenset())
        offsets = [int(dim) for dim in _NUMBERS.findall(node.attribute("offset_dims") or "")]
        rows = [dim for dim in range(len(array[1])) if dim not in offsets]
        if not axes or len(rows) != 1:
            return {}
        (dim,), held = rows, self.spec(graph, node.value)
        sizes = self.factors.program.reader.mesh.shape
        for axis in axes & {*self.spec(graph, operand)[0]}:
            if axis not in axes_in(held) and array[1][dim] % axis_size(axis, sizes) == 0:
                self.losses.append(Loss(graph, node, axis, operand, None, dim))
        return {dim: axes}

    def _lost(self, graph: Graph, node: Instruction, rule: Rule, found: Batch) -> Iterator[Loss]:
        result = self.spec(graph, node.value)
        for at, operand in enumerate(graph.operands[node.name]):
            spec = self.spec(graph, operand)
            for dim in self.of(graph, operand):
                target = _target(rule, at, dim)
                if target is None or dim >= len(spec) or target >= len(result):
                    continue
                for axis in found[target] & {*spec[dim]} - {*result[target]}:
                    kept = self._kept(graph, node, rule, axis)
                    if kept is not None:
                        yield Loss(graph, node, axis, operand, *kept)

    def _kept(
        self, graph: Graph, node: Instruction, rule: Rule, axis: str
    ) -> tuple[int, int] | None:
        """Return the parameter that has an axis on a dimension of the result, and that dimension.

        None where another operand's batch has it there, as where two batches are compared.
        """
        result = self.spec(graph, node.value)
        for at, operand in enumerate(graph.operands[node.name]):
            number = self.training.flows.part_of(graph, operand)
            for dim, axes in enumerate(self.spec(graph, operand)):
                target = _target(rule, at, dim) if axis in axes else None
                if target is None or target >= len(result) or axis not in result[target]:
                    continue
                if number in self.training.parameters and number is not None:
                    return number, target
        return None


def _target(rule: Rule, at: int, dim: int) -> int | None:
    """Give the dimension of the result that begins with what a dimension of an operand begins with.

    An axis shards the outermost part of a dimension first.
    """
    factors = rule.operands[at][dim] if at < len(rule.operands) else ()
    if not factors:
        return None
    return next(
        (to for to, names in enumerate(rule.results[0]) if names and names[0] == factors[0]), None
    )


def lies(batch: BatchDimensions, value: GraphValue, axis: str) -> bool:
    """Whether a value's batch is sharded over an axis."""
    graph, inner = value
    spec = batch.spec(graph, inner)
    return any(axis in spec[dim] for dim in batch.of(graph, inner) if dim < len(spec))
