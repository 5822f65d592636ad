"""Where a placement comes from: what was stated, or an array that meets it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from shardnb.analysis.causes.edges import Edges
from shardnb.analysis.causes.factors import Factors, results_of
from shardnb.analysis.causes.graph import Graph, is_pass
from shardnb.analysis.causes.layouts import Piece
from shardnb.analysis.causes.rules import Rule
from shardnb.compiler.hlo import Instruction

Pieces = frozenset[Piece]
Dim = tuple[str, str, int]
"""A dimension of a value: its computation, its name, the number of the dimension."""

_LIMIT = 400


@dataclass(frozen=True)
class Origin:
    """What decided a placement: the value that was stated to lie so, or that meets it."""

    value: str
    stated: bool = False


@dataclass
class Origins:
    """Follows a dimension and the axes that split it, down to what asks for that, or up."""

    factors: Factors
    edges: Edges
    _grounded: dict[Pieces, set[Dim]] = field(default_factory=dict)

    def of(
        self, graph: Graph, value: str, dim: int, parts: Pieces, *, split: bool
    ) -> Origin | None:
        """Find why a dimension is split over these axes (or, not `split`, is not).

        Goes down along the dimension through everything that takes it, the nearest first.
        """
        queue, seen = deque([(graph, value, dim)]), set[Dim]()
        while queue and len(seen) < _LIMIT:
            graph, value, dim = queue.popleft()
            if (graph.name, value, dim) in seen or self._has(graph, value, dim, parts) != split:
                continue
            seen.add((graph.name, value, dim))
            if self._is_stated_result(graph, value):
                return Origin(value, stated=True)
            for user in graph.users.get(value, ()):
                node = graph.nodes[user]
                if self.edges.is_edge(graph, node):
                    if self._has(graph, user, dim, parts) == split:
                        return Origin(user, stated=True)
                    continue
                found = self._met(graph, node, value, dim, parts) if split else None
                if found is not None:
                    return Origin(found)
                queue.extend(self._down(graph, node, value, dim))
        return None

    def grounded(self, graph: Graph, value: str, dim: int, parts: Pieces) -> bool:
        """Whether a dimension was split over these axes by an input or by a stated placement.

        If not, the placement was lent to it by what takes it.
        """
        if not self._has(graph, value, dim, parts):
            return False
        if parts not in self._grounded:
            self._grounded[parts] = self._flood(parts)
        return (graph.name, value, dim) in self._grounded[parts]

    def _flood(self, parts: Pieces) -> set[Dim]:
        """Follow these axes down from every place that splits a dimension by itself."""
        stack = list(self._grounds(parts))
        seen = {(graph.name, value, dim) for graph, value, dim in stack}
        while stack:
            graph, value, dim = stack.pop()
            for user in graph.users.get(value, ()):
                for below in self._down(graph, graph.nodes[user], value, dim):
                    key = below[0].name, *below[1:]
                    if key not in seen and self._has(*below, parts):
                        seen.add(key)
                        stack.append(below)
        return seen

    def _grounds(self, parts: Pieces) -> Iterator[tuple[Graph, str, int]]:
        entry = self.factors.program.module.entry
        for graph in self.factors.program.graphs.values():
            for node in graph.body:
                if node.opcode == "parameter":
                    ground = graph.name == entry
                else:
                    ground = node.opcode == "custom-call" or self.edges.is_edge(graph, node)
                for value in results_of(node) if ground else ():
                    array = graph.array(value)
                    for dim in range(len(array[1]) if array else 0):
                        if self._has(graph, value, dim, parts):
                            yield graph, value, dim

    def _has(self, graph: Graph, value: str, dim: int, parts: Pieces) -> bool:
        layout = self.factors.program.layout(graph, value)
        if layout is None or layout.spec is None or dim >= len(layout.spec):
            return False
        return not parts.isdisjoint(self.factors.split_by(layout.spec)[dim])

    def _is_stated_result(self, graph: Graph, value: str) -> bool:
        return self.edges.is_result(graph, value)

    def _met(
        self, graph: Graph, node: Instruction, value: str, dim: int, parts: Pieces
    ) -> str | None:
        """Find another operand that is split so by itself, along the same dimension."""
        rule = self.factors.known(graph, node)
        if rule is None:
            return None
        factors = _factors_at(graph, node, rule, value, dim)
        for operand, dims in zip(graph.operands[node.name], rule.operands, strict=False):
            if operand == value or self.factors.program.is_constant(graph, operand):
                continue
            for other, names in enumerate(dims):
                if not factors.isdisjoint(names) and self.grounded(graph, operand, other, parts):
                    return operand
        return None

    def _down(
        self, graph: Graph, node: Instruction, value: str, dim: int
    ) -> Iterator[tuple[Graph, str, int]]:
        """Give the dimensions of results that a dimension of an operand becomes."""
        if node.opcode == "while":
            for at in _places(graph.operands[node.name], value):
                yield from self._turns(graph, node, at, dim)
            return
        if is_pass(node):
            caller = self.factors.program.callers.get(graph.name)
            if node.is_root and caller is not None and caller[1].opcode == "while":
                for at in _places(tuple(map(graph.resolve, node.operands)), value):
                    yield from self._turns(*caller, at, dim)
            return
        yield from self._through(graph, node, value, dim)

    def _through(
        self, graph: Graph, node: Instruction, value: str, dim: int
    ) -> Iterator[tuple[Graph, str, int]]:
        """Give the dimensions of results that share a factor with one of an operand."""
        rule = self.factors.known(graph, node)
        if rule is None:
            return
        factors = _factors_at(graph, node, rule, value, dim)
        for result, dims in zip(results_of(node), rule.results, strict=False):
            for other, names in enumerate(dims):
                if not factors.isdisjoint(names):
                    yield graph, result, other

    def _turns(
        self, graph: Graph, node: Instruction, at: int, dim: int
    ) -> Iterator[tuple[Graph, str, int]]:
        """Give what an operand of a loop is inside it, and after it."""
        inner = self.factors.program.inside(node, at)
        if inner is not None:
            yield *inner, dim
        yield graph, f"{node.name}#{at}", dim


def _places(operands: Sequence[str], value: str) -> list[int]:
    return [at for at, operand in enumerate(operands) if operand == value]


def _factors_at(
    graph: Graph, node: Instruction, rule: Rule, value: str, dim: int
) -> frozenset[str]:
    """Give the factors of a dimension of an operand."""
    pairs = zip(graph.operands[node.name], rule.operands, strict=False)
    return frozenset(
        name
        for operand, dims in pairs
        if operand == value and dim < len(dims)
        for name in dims[dim]
    )
