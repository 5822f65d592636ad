"""From a value back to the origin of a mesh axis, along the steps that Shardy recorded."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from shardnb.report.model import Spec
from shardnb.terms.origins import Direction, OriginKind
from shardnb.texts.shardy import Module, Op, Value
from shardnb.texts.shardy_attributes import Edge

Node = tuple[Value, str]
"""A value with a sharding, and a mesh axis on it."""

# How Shardy names an origin: `input: 0`, `output: 1`, `mc_0_input: 2` for the second operand of the
# first `shard_map`, `constraint_3`, and `self` where a value has its own sharding.
_SHARD_MAP = re.compile(r"(mc_\d+)_(input|output): (\d+)")
_NUMBERED = re.compile(r"(input|output): (\d+)")


@dataclass(frozen=True)
class Move:
    """An axis came from another value through an op; `op` is None at the program's results."""

    step: int
    source: Node
    direction: Direction
    op: Op | None


@dataclass(frozen=True)
class Root:
    """The origin of an axis: its kind, its number or op, and the values it is on."""

    kind: OriginKind
    number: int = 0
    op: Op | None = None
    values: frozenset[Value] = frozenset()


class Chains:
    """The paths of all axes through a propagated module."""

    def __init__(self, module: Module) -> None:
        """Index the steps by where they led: Shardy gives a value each of its axes once."""
        self.module = module
        self.moves = dict(self._all())
        self.by_origin = {op.origin_name: op for op in module.ops if op.origin_name}
        self.constrained = {
            op.operands[0].placed: op for op in module.ops if op.kind == "sdy.sharding_constraint"
        }

    def _all(self) -> Iterator[tuple[Node, Move]]:
        for op in self.module.ops:
            if not op.edges:
                continue
            operands = self._sources(op) if op.kind == "sdy.data_flow_edge" else op.operands
            for edge in op.edges:
                yield from self._moves(edge, operands, op.results, op)

    def _moves(
        self,
        edge: Edge,
        operands: tuple[Value, ...],
        results: tuple[Value, ...],
        op: Op,
    ) -> Iterator[tuple[Node, Move]]:
        source = _end(edge.source, operands, results)
        if source is None:
            return
        for end in edge.targets:
            target = _end(end, operands, results)
            if target is not None and target != source:
                sides = edge.source[0], end[0]
                direction: Direction = "forward" if sides[0] == "operand" else "backward"
                direction = "sideways" if sides[0] == sides[1] else direction
                node = source, _held(source, edge.axis)
                yield (target, edge.axis), Move(edge.step, node, direction, op)

    @staticmethod
    def _sources(edge: Op) -> tuple[Value, ...]:
        """Return the values that flow into a data-flow edge, in Shardy's order."""
        (value,) = edge.operands
        op, index = value.op, value.index
        if op is None or value.is_argument:
            return op.operands[index : index + 1] if op else ()
        returned = [values[index] for values in op.returned if index < len(values)]
        if op.kind == "stablehlo.while":
            return (op.operands[index], *returned[-1:])
        return tuple(returned) or op.operands[index : index + 1]

    def root(self, node: Node) -> Root:
        """Return the origin of an axis on a value, as Shardy names it."""
        value, axis = node
        origin = value.origins.get(axis, "")
        if origin == "self":
            return self._own(value)
        if match := _NUMBERED.fullmatch(origin):
            number = int(match[2])
            if match[1] == "input":
                return Root(
                    "input", number, None, frozenset(self.module.inputs[number : number + 1])
                )
            results = (output.value for output in self.module.outputs[number : number + 1])
            return Root("output", number, None, frozenset(value.placed for value in results))
        if match := _SHARD_MAP.fullmatch(origin):
            op = self.by_origin.get(match[1])
            return Root("shard_map", int(match[3]), op, self._edges_of(op, match[2], int(match[3])))
        op = self.by_origin.get(origin)
        return self._constraint(op) if op else Root("unknown")

    def _constraint(self, op: Op) -> Root:
        """Return the root at a constraint; one that repeats an input's sharding is the input's."""
        (operand,), (result,) = op.operands, op.results
        values = frozenset((operand.placed, result))
        if operand.op is None and operand.spec == result.spec:
            return Root("input", operand.index, None, values)
        return Root("constraint", 0, op, values)

    def _own(self, value: Value) -> Root:
        if value.op is None:
            return Root("input", value.index, None, frozenset({value}))
        op = value.maker
        if op is not None and op.kind == "sdy.sharding_constraint":
            return self._constraint(op)
        if op is not None and op.kind == "sdy.manual_computation":
            return Root("shard_map", value.index, op, frozenset({value}))
        return Root("unknown")

    @staticmethod
    def _edges_of(op: Op | None, side: str, number: int) -> frozenset[Value]:
        if op is None:
            return frozenset()
        values = op.operands if side == "input" else op.results
        return frozenset(value.placed for value in values[number : number + 1])

    def back(self, node: Node, root: Root, stops: Mapping[Node, int]) -> tuple[list[Move], Node]:
        """Follow the steps back from a value to the first stop or to the root.

        Returns the steps, last one first, and where they start.
        """
        moves: list[Move] = []
        seen = {node}
        while node[0] not in root.values and (move := self.moves.get(node)) is not None:
            moves.append(move)
            node = move.source
            if node in stops or node in seen:
                break
            seen.add(node)
        return moves, node


def manual(value: Value) -> tuple[str, ...]:
    """Return the mesh axes of the innermost shard_map that a value is in."""
    inside = (value.op, *value.op.parents) if value.op else ()
    around = inside if value.is_argument else inside[1:]
    return next((op.axes for op in around if op.kind == "sdy.manual_computation"), ())


def _end(
    end: tuple[str, int], operands: tuple[Value, ...], results: tuple[Value, ...]
) -> Value | None:
    values = operands if end[0] == "operand" else results
    return values[end[1]].placed if end[1] < len(values) else None


def _held(value: Value, axis: str) -> str:
    """Return the axis on a value of which another value has a part."""
    held = flat(value.spec)
    if axis in held:
        return axis
    base = axis.partition(":(")[0]
    return next((name for name in held if name.partition(":(")[0] == base), axis)


def flat(spec: Spec | None) -> list[str]:
    """Return all the axes of a spec."""
    return [axis for dim in spec or () for axis in dim]
