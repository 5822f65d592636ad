"""From a value back to what put a mesh axis on it, along the steps that Shardy noted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from shardnb.report.model import Spec
from shardnb.terms.origins import Direction, OriginKind
from shardnb.texts import shardy

Node = tuple[int, str]
"""A value that holds its placement, and a mesh axis on it."""

_MANUAL = re.compile(r"manual_axes=\{([^}]*)\}")
_SHARD_MAP = re.compile(r"(mc_\d+)_(input|output): (\d+)")
_NUMBERED = re.compile(r"(input|output): (\d+)")


@dataclass(frozen=True)
class Move:
    """An axis came from another value along an op; `op` is None at the program's results."""

    step: int
    source: Node
    direction: Direction
    op: shardy.Op | None


@dataclass(frozen=True)
class Root:
    """What put an axis into the program: its kind, its number or op, and the values it is on."""

    kind: OriginKind
    number: int = 0
    op: shardy.Op | None = None
    values: frozenset[int] = frozenset()


class Chains:
    """The ways of all axes through a propagated module."""

    def __init__(self, module: shardy.Module) -> None:
        """Index the steps by where they led; of several, the first one counts."""
        self.module = module
        self.moves: dict[Node, Move] = {}
        self.makers = {value: op for op in module.ops for value in op.results}
        self.bodies = {
            value: (op, index)
            for op in module.ops
            for arguments in op.arguments
            for index, value in enumerate(arguments)
        }
        self.by_origin = {op.origin_name: op for op in module.ops if op.origin_name}
        self.constrained = {
            module.placed(op.operands[0]): op
            for op in module.ops
            if op.kind == "sdy.sharding_constraint"
        }
        for target, move in self._all():
            known = self.moves.get(target)
            if known is None or move.step < known.step:
                self.moves[target] = move

    def _all(self) -> Iterator[tuple[Node, Move]]:
        for op in self.module.ops:
            if not op.edges:
                continue
            operands = self._sources(op) if op.kind == "sdy.data_flow_edge" else op.operands
            for edge in op.edges:
                yield from self._moves(edge, operands, op.results, op)

    def _moves(
        self, edge: shardy.Edge, operands: tuple[int, ...], results: tuple[int, ...], op: shardy.Op
    ) -> Iterator[tuple[Node, Move]]:
        source = self._end(edge.source, operands, results)
        if source is None:
            return
        for end in edge.targets:
            target = self._end(end, operands, results)
            if target is not None and target != source:
                node = source, self._held(source, edge.axis)
                move = Move(edge.step, node, _direction(edge.source[0], end[0]), op)
                yield (target, edge.axis), move

    def _end(
        self, end: tuple[str, int], operands: tuple[int, ...], results: tuple[int, ...]
    ) -> int | None:
        values = operands if end[0] == "operand" else results
        return self.module.placed(values[end[1]]) if end[1] < len(values) else None

    def _held(self, value: int, axis: str) -> str:
        """Give the axis on a value that a part of it, taken by another, comes from."""
        held = [name for dim in self.module.values[value].spec or () for name in dim]
        if axis in held:
            return axis
        return next((name for name in held if _base(name) == _base(axis)), axis)

    def _sources(self, edge: shardy.Op) -> tuple[int, ...]:
        """Give the values that flow into a data-flow edge, in Shardy's order."""
        value = edge.operands[0]
        if value in self.bodies:
            op, index = self.bodies[value]
            return op.operands[index : index + 1]
        op, index = self.makers[value], self.makers[value].results.index(value)
        returned = [values[index] for values in op.returned if index < len(values)]
        if op.kind == "stablehlo.while":
            return (op.operands[index], *returned[-1:])
        return tuple(returned) or op.operands[index : index + 1]

    def manual(self, value: int) -> tuple[str, ...]:
        """Give the mesh axes of the shard_map that a value is in, innermost one."""
        op = self.makers.get(value) or self.bodies.get(value, (None, 0))[0]
        inside = op if value in self.bodies else op.parent if op else None
        while inside is not None and inside.kind != "sdy.manual_computation":
            inside = inside.parent
        match = _MANUAL.search(inside.text) if inside else None
        return tuple(re.findall(r'"([^"]+)"', match[1])) if match else ()

    def root(self, node: Node) -> Root:
        """Give what put an axis on a value, as Shardy names it."""
        value, axis = node
        said = self.module.values[value].origins.get(axis, "")
        if said == "self":
            return self._own(value)
        if match := _NUMBERED.fullmatch(said):
            return self._edge(match[1], int(match[2]))
        if match := _SHARD_MAP.fullmatch(said):
            op = self.by_origin.get(match[1])
            return Root("shard_map", int(match[3]), op, self._edges_of(op, match[2], int(match[3])))
        op = self.by_origin.get(said)
        return self._constraint(op) if op else Root("unknown")

    def _edge(self, side: str, number: int) -> Root:
        """Give the root at an input or a result of the program."""
        if side == "input":
            return Root("input", number, None, frozenset(self.module.inputs[number : number + 1]))
        results = (output.value for output in self.module.outputs[number : number + 1])
        return Root("output", number, None, frozenset(map(self.module.placed, results)))

    def _constraint(self, op: shardy.Op) -> Root:
        """Give the root at a constraint; one that repeats an input's placement is the input's."""
        (operand,), (result,) = op.operands, op.results
        values = frozenset((self.module.placed(operand), result))
        given = self.module.values[operand].spec
        if operand in self.module.inputs and given == self.module.values[result].spec:
            return Root("input", self.module.inputs.index(operand), None, values)
        return Root("constraint", 0, op, values)

    def _own(self, value: int) -> Root:
        if value in self.module.inputs:
            return Root("input", self.module.inputs.index(value), None, frozenset({value}))
        op = self.makers.get(value)
        if op is not None and op.kind == "sdy.sharding_constraint":
            return self._constraint(op)
        if op is not None and op.kind == "sdy.manual_computation":
            return Root("shard_map", op.results.index(value), op, frozenset({value}))
        return Root("unknown")

    def _edges_of(self, op: shardy.Op | None, side: str, number: int) -> frozenset[int]:
        if op is None:
            return frozenset()
        values = op.operands if side == "input" else op.results
        return frozenset(self.module.placed(value) for value in values[number : number + 1])

    def back(self, node: Node, root: Root, stops: Mapping[Node, int]) -> tuple[list[Move], Node]:
        """Follow the steps back from a value to the first stop or to the root, whichever is first.

        Gives the steps, last one first, and where they start.
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


def flat(spec: Spec | None) -> list[str]:
    """Give all the axes of a spec."""
    return [axis for dim in spec or () for axis in dim]


def _base(axis: str) -> str:
    return axis.partition(":(")[0]


def _direction(source: str, target: str) -> Direction:
    if source == target:
        return "sideways"
    return "forward" if source == "operand" else "backward"
