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
from typing import Literal

from shardnb.causes.rule_factors import Factors
from shardnb.causes.training import Training
from shardnb.report.spec import axes_in, axis_size, mesh_axis
from shardnb.texts.graph import Graph
from shardnb.texts.hlo import GraphValue
from shardnb.texts.instruction import HloValue, Instruction
from shardnb.texts.opcodes import CONSTANTS, TUPLES
from shardnb.texts.shardy_attributes import Rule

Batch = dict[int, frozenset[str]]
"""The dimensions of a value that are the batch, each with the axes that shard it at the start."""

Cause = Literal["parameter", "indices", "slice", "reshape"]
"""What makes a batch lose an axis: the parameter that has it on another dimension, the indices of a
look-up, a place that is known at run time only, or a size that does not fit its shards.
"""

_NUMBERS = re.compile(r"\d+")

_TURNS = 3
"""As many as it takes until what enters a loop has reached each part of its carry."""


@dataclass(frozen=True)
class Loss:
    """An operation that takes a batch sharded over an axis, and whose result has lost that.

    The parameter number `kept_by` has the axis on what is `dimension` of the result. Of a slice or
    a reshape `dimension` is that of the operand which is the batch.
    """

    graph: Graph
    node: Instruction
    axis: str
    operand: HloValue
    cause: Cause
    dimension: int
    kept_by: int | None = None


@dataclass
class BatchDimensions:
    """Follows the batch through the program before partitioning, once."""

    factors: Factors
    training: Training
    losses: list[Loss] = field(default_factory=list)
    _known: dict[tuple[str, HloValue], Batch] = field(default_factory=dict)
    # What is left of a batch that a reshape divides, as of one into microbatches: a dimension
    # that is the batch of what is taken from the first one (`accumulated`).
    _rest: dict[tuple[str, HloValue], Batch] = field(default_factory=dict)

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

    def rest(self, graph: Graph, value: HloValue) -> Batch:
        """Return the dimensions that are left of a batch which a reshape divided."""
        return self._rest.get((graph.name, value), {})

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
        for at, operand in enumerate(operands):
            if rest := self.rest(graph, operand):
                self._rest[body.name, carry.at(at)] = rest
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
        if node.opcode in ("dynamic-slice", "slice"):
            self._know(graph, node, self._sliced(graph, node), {})
            return
        rule = self.factors.known(graph, node)
        if rule is None or len(rule.results) != 1:
            return
        found, rest = self._looked_up(graph, node), Batch()
        for at, operand in enumerate(graph.operands[node.name]):
            for dim, axes in self.of(graph, operand).items():
                target, *others = _targets(rule, at, dim)
                if target is not None:
                    found[target] = found.get(target, frozenset()) | axes
                    rest |= {other: axes for other in others if other is not None}
            for dim, axes in self.rest(graph, operand).items():
                target = _target(rule, at, dim)
                if target is not None:
                    rest[target] = axes
        self._know(graph, node, found, {dim: rest[dim] for dim in rest if dim not in found})
        if found:
            self.losses += self._lost(graph, node, rule, found)

    def _know(self, graph: Graph, node: Instruction, batch: Batch, rest: Batch) -> None:
        if batch:
            self._known[graph.name, node.value] = batch
        if rest:
            self._rest[graph.name, node.value] = rest

    def _sliced(self, graph: Graph, node: Instruction) -> Batch:
        """Return the batch of what is taken from a part of it; all devices need the same part then.

        So the axes of that dimension are lost. A single element that is taken once is a sample to
        look at, and parts at places that are written are put together again, as by a shift.
        """
        operand = graph.operands[node.name][0]
        before, after = graph.array(operand), graph.array(node.value)
        if before is None or after is None:
            return {}
        rest, sizes = self.rest(graph, operand), after[1]
        sliced = [dim for dim, size in enumerate(before[1]) if size != sizes[dim]]
        found = {dim: axes for dim, axes in rest.items() if dim not in sliced}
        known = self.of(graph, operand).items()
        found |= {dim: axes for dim, axes in known if dim not in sliced or sizes[dim] > 1}
        moves = node.opcode == "dynamic-slice"
        in_loop = moves and self.training.flows.module.is_loop(graph)
        for dim in sliced:
            if rest or in_loop or (moves and sizes[dim] > 1):
                self._lose(graph, node, dim, found)
        return found

    def _lose(self, graph: Graph, node: Instruction, dim: int, result: Batch) -> None:
        """Note the axes that shard a dimension of a batch, and no batch of what is taken of it."""
        operand = graph.operands[node.name][0]
        axes = self.of(graph, operand).get(dim, frozenset())
        lost = {mesh_axis(part) for part in self.lost_parts(graph, node, dim, result)}
        for axis in sorted(lost & axes):
            self.losses.append(Loss(graph, node, axis, operand, "slice", dim))

    def lost_parts(
        self, graph: Graph, node: Instruction, dim: int, result: Batch
    ) -> tuple[str, ...]:
        """Return the axes, or parts of them, that shard a dimension and not the batch after it."""
        spec, held = self.spec(graph, graph.operands[node.name][0]), self.spec(graph, node.value)
        kept = axes_in(tuple(held[at] for at in result if at < len(held)))
        return tuple(part for part in (spec[dim] if dim < len(spec) else ()) if part not in kept)

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
        if len(rows) == 0 and self.training.flows.module.is_loop(graph):
            # A turn of the loop takes one microbatch, which does not have that dimension.
            taken = {dim - 1: axes for dim, axes in self.rest(graph, operand).items()}
            self._lose(graph, node, 0, taken)
            return taken
        if not axes or len(rows) != 1:
            return {}
        (dim,), held = rows, self.spec(graph, node.value)
        sizes = self.factors.program.reader.mesh.shape
        for axis in axes & {*self.spec(graph, operand)[0]}:
            if axis not in axes_in(held) and array[1][dim] % axis_size(axis, sizes) == 0:
                self.losses.append(Loss(graph, node, axis, operand, "indices", dim))
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
                        number, at_result = kept
                        yield Loss(graph, node, axis, operand, "parameter", at_result, number)
                    elif node.opcode == "reshape" and axis not in map(mesh_axis, axes_in(result)):
                        yield Loss(graph, node, axis, operand, "reshape", dim)

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
    return _targets(rule, at, dim)[0]


def _targets(rule: Rule, at: int, dim: int) -> list[int | None]:
    """Give for each factor of a dimension of an operand that of the result which begins with it."""
    factors = rule.operands[at][dim] if at < len(rule.operands) else ()
    starts = {names[0]: to for to, names in reversed([*enumerate(rule.results[0])]) if names}
    return [starts.get(factor) for factor in factors] or [None]


def lies(batch: BatchDimensions, value: GraphValue, axis: str) -> bool:
    """Whether a value's batch is sharded over an axis."""
    graph, inner = value
    spec = batch.spec(graph, inner)
    return any(axis in spec[dim] for dim in batch.of(graph, inner) if dim < len(spec))
