"""Where a placement comes from: what was stated, or an array that meets it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from shardnb.causes.rule_factors import Factors
from shardnb.causes.stated_shardings import StatedShardings, is_of_the_compiler, primitive
from shardnb.causes.verdict import RETURNED, Statement
from shardnb.terms.causes import AskedBy, Detail
from shardnb.texts.axis_factors import Piece
from shardnb.texts.graph import Graph
from shardnb.texts.instruction import HloValue, Instruction
from shardnb.texts.opcodes import TUPLES

AxisFactors = frozenset[Piece]
Place = tuple[Graph, HloValue, int]
"""A dimension of a value: its computation, the value, the number of the dimension."""

_LIMIT = 400


@dataclass(frozen=True)
class Demand:
    """What decided a placement: the value that was given that sharding, or that meets it.

    It may be in a loop's body, so `graph` says of which computation it is. `asked_by` and
    `stated` say who stated it, and where; `met_by` is the operation that takes both.
    `returned` says that a loop or a branch returns it so, and that nothing else was found.
    """

    graph: Graph
    value: HloValue
    asked_by: AskedBy | None = None
    stated: Statement | None = None
    met_by: Instruction | None = None
    returned: Detail | None = None


@dataclass
class Origins:
    """Follows a dimension and the axes that split it, down to what asks for that, or up."""

    factors: Factors
    stated: StatedShardings
    _grounded: dict[AxisFactors, dict[Place, bool]] = field(default_factory=dict)

    def of(
        self, graph: Graph, value: HloValue, dim: int, parts: AxisFactors, *, split: bool
    ) -> Demand | None:
        """Find why a dimension is sharded over these axes (or, not `split`, is not).

        Goes down along the dimension through everything that takes it, the nearest first.
        """
        queue, seen = deque([(graph, value, dim)]), set[Place]()
        returned: Demand | None = None
        while queue and len(seen) < _LIMIT:
            graph, value, dim = place = queue.popleft()
            if place in seen or self._is_split(place, parts) != split:
                continue
            seen.add(place)
            if graph.name == self.factors.program.module.entry and value in self.stated.results:
                statement = self.stated.result_statement(self.stated.results[value])
                if self._states(statement, dim, parts) in (split, None):
                    return Demand(graph, value, self.stated.result_asked_by, statement)
            for node in graph.users.get(value, ()):
                if self.stated.states_sharding(graph, node):
                    if self._is_split((graph, node.value, dim), parts) == split:
                        statement = self.stated.statement(graph, node)
                        return Demand(graph, node.value, self.stated.asked_by(node), statement)
                    continue
                other = self._met(graph, node, value, dim, parts) if split else None
                if other is not None:
                    return Demand(graph, other, met_by=node)
                queue.extend(self._down(graph, node, value, dim))
            returned = returned or self._returned(place, parts, split=split)
        return returned

    def _returned(self, place: Place, parts: AxisFactors, *, split: bool) -> Demand | None:
        """Say that a loop or a conditional asks for what its body returns: it gives it out so."""
        graph, value, dim = place
        module = self.factors.program.module
        caller = module.caller(graph)
        if caller is None or caller.opcode not in RETURNED or value not in graph.results:
            return None
        given = caller.results[graph.results.index(value)]
        if self._is_split((module.graph_of(caller), given, dim), parts) != split:
            return None
        return Demand(graph, value, returned=RETURNED[caller.opcode])

    def grounded(self, graph: Graph, value: HloValue, dim: int, parts: AxisFactors) -> bool:
        """Whether a dimension was sharded over these axes by an input or by a stated placement.

        If not, the placement was lent to it by what takes it.
        """
        start = graph, value, dim
        known = self._grounded.setdefault(parts, {})
        way: dict[Place, Place | None] = {start: None}
        stack = [start] if self._is_split(start, parts) else []
        while stack:
            place = stack.pop()
            if known.get(place) or self._is_ground(place):
                known.update(dict.fromkeys(_back(place, way), True))
                return True
            for above in self._above(*place):
                if above not in way and known.get(above, True) and self._is_split(above, parts):
                    way[above] = place
                    stack.append(above)
        known.update(dict.fromkeys(way, False))
        return False

    def is_reshaped(self, graph: Graph, value: HloValue, dim: int) -> bool:
        """Whether a dimension comes out of a reshape that splits or joins others.

        One of the compiler's own, as of a running sum in steps, is not the program's
        (`drawdown_of_a_running_sum`).
        """
        stack, seen = [(graph, value, dim)], set[Place]()
        while stack and len(seen) < _LIMIT:
            place = stack.pop()
            node = place[0].node(place[1])
            rule = self.factors.known(place[0], node) if _is_written(node) else None
            arrays = (*rule.operands, *rule.results) if rule is not None else ()
            if any(len(names) > 1 for dims in arrays for names in dims):
                return True
            seen.add(place)
            stack += [above for above in self._above(*place) if above not in seen]
        return False

    def _is_ground(self, place: Place) -> bool:
        """Whether an input, a stated placement, or what nothing is known of."""
        graph, node = place[0], place[0].node(place[1])
        if node.opcode == "parameter":
            return graph.name == self.factors.program.module.entry
        return node.opcode == "custom-call" or self.stated.states_sharding(graph, node)

    def _is_split(self, place: Place, parts: AxisFactors) -> bool:
        graph, value, dim = place
        layout = self.factors.program.layout(graph, value)
        if layout is None or layout.spec is None or dim >= len(layout.spec):
            return False
        return not parts.isdisjoint(self.factors.split_by(layout.spec)[dim])

    def _states(self, statement: Statement, dim: int, parts: AxisFactors) -> bool | None:
        """Whether a stated result is sharded so: its value may be gathered for it first.

        The compiler may then have sharded the value as suits it (`experts_by_a_constraint`).
        """
        spec = statement.spec
        if spec is None:
            return None
        return dim < len(spec) and not parts.isdisjoint(self.factors.split_by(spec)[dim])

    def _above(self, graph: Graph, value: HloValue, dim: int) -> Iterator[Place]:
        """Yield the dimensions of operands that a dimension of a result comes from."""
        node, module = graph.node(value), self.factors.program.module
        at = value.element[0] if value.element else 0
        operands = graph.operands[node.name]
        if node.opcode == "while":
            yield graph, operands[at], dim
            inner = module.inside(node, at)
            last = module.carried(*inner) if inner is not None else None
            if last is not None:
                yield *last, dim
        elif node.opcode == "parameter":
            for outer in (module.outside(graph, value), module.carried(graph, value)):
                if outer is not None:
                    yield *outer, dim
        elif (rule := self.factors.known(graph, node)) is not None:
            for number, other in rule.above[at][dim]:
                yield graph, operands[number], other

    def _met(
        self, graph: Graph, node: Instruction, value: HloValue, dim: int, parts: AxisFactors
    ) -> HloValue | None:
        """Find another operand that is sharded so by itself, along the same dimension."""
        rule = self.factors.known(graph, node)
        if rule is None:
            return None
        operands = list(zip(graph.operands[node.name], rule.operands, strict=False))
        same = [dims[dim] for operand, dims in operands if operand == value and dim < len(dims)]
        factors = frozenset(name for names in same for name in names)
        for operand, dims in operands:
            if operand == value or self.factors.program.is_constant(graph, operand):
                continue
            for other, names in enumerate(dims):
                if not factors.isdisjoint(names) and self.grounded(graph, operand, other, parts):
                    return operand
        return None

    def _down(self, graph: Graph, node: Instruction, value: HloValue, dim: int) -> Iterator[Place]:
        """Yield the dimensions of results that a dimension of an operand becomes."""
        if node.opcode == "while":
            for at in _places(graph.operands[node.name], value):
                yield from self._turns(graph, node, at, dim)
        elif node.opcode not in TUPLES and (rule := self.factors.known(graph, node)) is not None:
            operands = zip(graph.operands[node.name], rule.below, strict=False)
            taken = {
                end
                for operand, dims in operands
                if operand == value and dim < len(dims)
                for end in dims[dim]
            }
            for at, other in sorted(taken):
                if at < len(node.results):
                    yield graph, node.results[at], other
        elif node.opcode in TUPLES and node.is_root:
            module = self.factors.program.module
            loop = module.caller(graph)
            if loop is not None and loop.opcode == "while":
                for at in _places(graph.results, value):
                    yield from self._turns(module.graph_of(loop), loop, at, dim)

    def _turns(self, graph: Graph, node: Instruction, at: int, dim: int) -> Iterator[Place]:
        """Yield what an operand of a loop is inside it, and after it."""
        inner = self.factors.program.module.inside(node, at)
        if inner is not None:
            yield *inner, dim
        yield graph, node.value.at(at), dim


def _is_written(node: Instruction) -> bool:
    """Whether a reshape is the program's, and no step of another operation."""
    named = primitive(node.op_name) == "reshape" and not is_of_the_compiler(node)
    return node.opcode == "reshape" and named


def _places(operands: Sequence[HloValue], value: HloValue) -> list[int]:
    return [at for at, operand in enumerate(operands) if operand == value]


def _back(place: Place, way: Mapping[Place, Place | None]) -> Iterator[Place]:
    """Yield the places from one back to where the way to it started."""
    here: Place | None = place
    while here is not None:
        yield here
        here = way[here]
