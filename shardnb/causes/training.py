"""What a program trains: its parameters, their gradients, and the state that an optimizer keeps.

A parameter is an argument that the forward pass reads and that, with a value of the backward pass,
reaches a result of its own shape element by element. An argument that reaches such a result and
that no pass reads is optimizer state. Where a program returns gradients alone, two things tell
whose they are: which argument the forward pass multiplies with what the gradient's product takes,
and that JAX returns gradients in the structure of the argument.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from operator import or_

from shardnb.causes.flows import Flows
from shardnb.causes.stated_shardings import is_shard_map_edge
from shardnb.texts.graph import Graph, is_constant
from shardnb.texts.hlo import GraphValue
from shardnb.texts.instruction import HloValue, Instruction
from shardnb.texts.opcodes import PRODUCTS, VIEWS

_STEP = re.compile(r"[^.\[\]'\"]+")
"""A step of a path, alike in `w`, `.w` and `['w']`: results of a dict are named by its keys."""

_FLOATS = ("f", "bf")

_EDGES = 12
"""Into a `shard_map` and out of one are four steps; a value is passed on three times at most."""

Source = tuple[str, HloValue]
Tree = dict[tuple[str, ...], int]
"""Leaves by the steps of their paths."""


@dataclass
class Training:
    """The parameters of a program by their numbers, and what belongs to each.

    `inputs` and `outputs` are the names of the program's arguments and results, as far as they are
    known.
    """

    flows: Flows
    inputs: Sequence[str] = ()
    outputs: Sequence[str] = ()
    _whose: dict[int, int | None] = field(default_factory=dict)

    def name(self, number: int) -> str:
        """Return the name of an argument."""
        if value := self.flows.entry.parameters.get(number):
            name = self.flows.entry.node(value).op_name
            if name:
                return name
        return self.inputs[number] if number < len(self.inputs) else ""

    @cached_property
    def renewed(self) -> dict[int, int]:
        """The argument whose new value each result is, by the result's number.

        The new value of a moment carries that moment, of a parameter the moments too, of a moving
        average all of them. So the results that fewest arguments reach come first.
        """
        found: dict[int, int] = {}
        for at, same in sorted(self._same.items(), key=lambda item: len(item[1])):
            left = [number for number in same if number not in found.values()]
            if len(left) > 1:
                left = [number for number in left if self._is_read(number)]
            if len(left) == 1 and list(self._same.values()).count(same) == 1:
                found[at] = left[0]
        return found

    @cached_property
    def _same(self) -> dict[int, list[int]]:
        """The arguments of its shape that reach each result after the backward pass."""
        flows, found = self.flows, {}
        for at, (mask, value) in enumerate(zip(flows.results, flows.entry.results, strict=True)):
            if mask & flows.after_backward:
                shape = _shape(flows.entry, value)
                reaching = _members(mask, flows.arguments)
                found[at] = [number for number in reaching if self._shape(number) == shape]
        return found

    def handed_on(self, donated: Container[int]) -> dict[int, int]:
        """Return the donated argument that each result is the new value of, by the result's number.

        The argument reaches the result, and no other of its shape does.
        """
        flows, found = self.flows, {}
        for at, (mask, value) in enumerate(zip(flows.results, flows.entry.results, strict=True)):
            shape, reaching = _shape(flows.entry, value), _members(mask, flows.arguments)
            same = [n for n in reaching if n in donated and self._shape(n) == shape]
            if len(same) == 1:
                found[at] = same[0]
        return {at: n for at, n in found.items() if list(found.values()).count(n) == 1}

    @cached_property
    def written_into(self) -> dict[int, int]:
        """The argument that each result is with some elements replaced, as a cache is.

        The program writes values at a place of it, or puts them beside a part of it, and computes
        nothing else with it. Constants, as in padding, do not count.
        """
        entry, found = self.flows.entry, dict[int, int]()
        for at, value in enumerate(entry.results):
            shape = _shape(entry, value)
            same = [one for one in self._written(value) if self._shape(one) == shape]
            if len(same) == 1:
                found[at] = same[0]
        return found

    def _written(self, result: HloValue) -> set[int]:
        """Follow a result up to the arguments that it has elements of, with others put there."""
        stack = [(self.flows.entry, result, False)]
        seen, numbers = set[tuple[str, HloValue, bool]](), set[int]()
        while stack:
            graph, value, written = stack.pop()
            if (graph.name, value, written) in seen:
                continue
            seen.add((graph.name, value, written))
            node = graph.node(value)
            if written and node.opcode == "parameter" and graph is self.flows.entry:
                numbers.add(node.number)
            written = written or self._writes(graph, node)
            stack += [(*above, written) for above in self._kept_elements(graph, value)]
        return numbers

    def _writes(self, graph: Graph, node: Instruction) -> bool:
        """Whether some elements of a result are an operand's, and others are computed anew."""
        operands = graph.operands[node.name]
        if node.opcode == "concatenate":
            parts = {self.flows.part_of(graph, one) for one in operands}
            return len(parts) > 1 and not any(is_constant(graph, one) for one in operands)
        at = {"dynamic-update-slice": 1, "scatter": 2}.get(node.opcode)
        return at is not None and not is_constant(graph, operands[at])

    def _kept_elements(self, graph: Graph, value: HloValue) -> Iterator[GraphValue]:
        """Yield the values whose elements a value has, but for those that are written anew."""
        node, module = graph.node(value), self.flows.module
        operands, above = graph.operands[node.name], list[GraphValue | None]()
        if node.opcode == "while" and value.element:
            at = value.element[0]
            inner = module.inside(node, at)
            above = [(graph, operands[at]), module.carried(*inner) if inner else None]
        elif node.opcode == "parameter":
            above = [module.outside(graph, value)]
        elif node.opcode == "concatenate":
            above = [(graph, one) for one in operands]
        elif node.opcode in (*VIEWS, "dynamic-update-slice", "scatter", "slice"):
            above = [(graph, operands[0])]
        yield from (place for place in above if place is not None)

    def _is_float(self, number: int) -> bool:
        entry = self.flows.entry
        return entry.node(entry.parameters[number]).shape.startswith(_FLOATS)

    def _is_read(self, number: int) -> bool:
        return bool(self.flows.read_in_passes >> number & 1)

    @cached_property
    def returned(self) -> dict[int, int]:
        """The parameter whose gradient each result is that holds gradients alone."""
        pure = [
            at
            for at, mask in enumerate(self.flows.results)
            if mask & self.flows.backward and not mask & ((1 << self.flows.arguments) - 1)
        ]
        by_structure = dict(self._of_one_structure(pure))
        found = {}
        for at in pure:
            whose = self._transposed(self.flows.results[at])
            number = whose if whose is not None else by_structure.get(at)
            if number is not None:
                found[at] = number
        return found

    @cached_property
    def parameters(self) -> frozenset[int]:
        """The arguments that are trained, and those that serve: all where nothing is trained."""
        renewed = (number for number in self.renewed.values() if self._is_read(number))
        owners = (self.gradient_of(mask) for mask in self.flows.results)
        trained = (owner for owner in owners if owner is not None)
        return frozenset((*renewed, *trained, *self._serving()))

    @cached_property
    def owners(self) -> dict[int, int | None]:
        """The parameter that each state argument belongs to, where that is known."""
        return {
            number: self.gradient_of(self.flows.results[at])
            for at, number in self.renewed.items()
            if number not in self.parameters and not self._is_read(number)
        }

    def gradient_of(self, mask: int) -> int | None:
        """Return the parameter whose gradient the sums of the backward pass in a set make up."""
        sums = mask & self.flows.backward
        if sums not in self._whose:
            self._whose[sums] = self._gradient_of(sums) if sums else None
        return self._whose[sums]

    def _gradient_of(self, sums: int) -> int | None:
        results = self.flows.results
        reached = [at for at, mask in enumerate(results) if mask & sums == sums]
        read = [{n for n in self._same.get(at, ()) if self._is_read(n)} for at in reached]
        common = set.intersection(*filter(None, read)) if any(read) else set()
        common = common or {self.returned[at] for at in reached if at in self.returned}
        if len(common) == 1:
            return common.pop()
        whose = self._transposed(sums)
        return whose if not common or whose in common else None

    def _shape(self, number: int) -> tuple[int, ...] | None:
        value = self.flows.entry.parameters.get(number)
        return _shape(self.flows.entry, value) if value else None

    # Parameters that are only applied, as of a frozen model

    def _serving(self) -> Iterator[int]:
        """Yield the leaves of pytrees in which one is multiplied as the matrix of a layer is.

        What else could be meant there? An array that stands alone may be data (`x @ y`), and so may
        one that its product shares a batch with (a cache), that reaches a result (a state), or that
        multiplies another one of its pytree.
        """
        served = {n for node, n, other in self._products() if self._is_layer(node, other)}
        roots = {self.root(number) for number in served} - {""}
        direct = {(n, other) for _, n, other in self._products() if other is not None}
        alike = {n for n, other in direct if self.root(n) == self.root(other)}
        kept = reduce(or_, self.flows.results, 0)
        for number in self.flows.entry.parameters:
            known = self._is_float(number) and (number in served or number not in alike)
            if known and self.root(number) in roots and not kept >> number & 1:
                yield number

    @cached_property
    def products(self) -> tuple[tuple[Instruction, int], ...]:
        """The products that take an argument, each with the number of that argument."""
        return tuple((node, number) for node, number, _ in self._products())

    @cached_property
    def layers(self) -> tuple[tuple[Instruction, int], ...]:
        """The products of the forward pass that take an argument and what was computed."""
        path = self.flows.module.path
        return tuple(
            (node, number)
            for node, number, other in self._products()
            if other is None and "transpose(" not in path(node)
        )

    def _products(self) -> Iterator[tuple[Instruction, int, int | None]]:
        """Yield the products that take an argument: its number, and that of the other operand."""
        for node in self.flows.module.of_kind(*PRODUCTS):
            graph = self.flows.module.graph_of(node)
            numbers = [self.flows.part_of(graph, value) for value in graph.operands[node.name][:2]]
            for number, other in (numbers, numbers[::-1]):
                if number is not None:
                    yield node, number, other

    def _is_layer(self, node: Instruction, other: int | None) -> bool:
        """Whether an argument maps a batch of what was computed: no batch of its own, no sum of it.

        A sum over what comes first on both sides is one over the samples: `h.T @ y`.
        """
        if other is not None or len(node.shapes[0]) < 2 or node.attribute("lhs_batch_dims"):
            return False
        summed = [self._summed(node, at) for at in (0, 1)]
        return node.opcode != "dot" or summed != [0, 0]

    def _summed(self, node: Instruction, at: int) -> int | None:
        """Give the first dimension that a product sums over, before a transpose of the operand."""
        graph, side = self.flows.module.graph_of(node), ("lhs", "rhs")[at]
        listed = (node.attribute(f"{side}_contracting_dims") or "{}").strip("{}").split(",")
        dims = [int(dim) for dim in listed if dim]
        maker = graph.maker(graph.operands[node.name][at])
        if not dims or maker is None or maker.opcode != "transpose":
            return min(dims, default=None)
        turned = (maker.attribute("dimensions") or "{}").strip("{}").split(",")
        return min(int(turned[dim]) for dim in dims)

    def root(self, number: int) -> str:
        """Return the pytree that an argument is a leaf of, "" for one that stands alone."""
        steps = _STEP.findall(self.name(number))
        return steps[0] if len(steps) > 1 else ""

    # Whose gradient a product of the backward pass is

    def _transposed(self, mask: int) -> int | None:
        """Return the argument that the forward pass multiplies with what these products take."""
        found = {self._multiplied(node) for node in self.flows.started(mask & self.flows.backward)}
        return found.pop() if len(found) == 1 else None

    def _multiplied(self, node: Instruction) -> int | None:
        if node.opcode not in PRODUCTS:
            return None
        graph = self.flows.module.graph_of(node)
        sources = (self._source(graph, operand) for operand in graph.operands[node.name])
        taken = {one for source in sources for one in self._partners.get(source, ())}
        size = math.prod(node.shapes[0])
        fitting = {number for number, shape in taken if math.prod(shape or ()) == size}
        return fitting.pop() if len(fitting) == 1 else None

    @cached_property
    def _partners(self) -> dict[Source, set[tuple[int, tuple[int, ...] | None]]]:
        """The arguments that the forward pass multiplies with each value, and their shapes there.

        Inside a `shard_map` that is the shape of a shard.
        """
        found: dict[Source, set[tuple[int, tuple[int, ...] | None]]] = defaultdict(set)
        for node in self.flows.module.of_kind(*PRODUCTS):
            if "transpose(" in self.flows.module.path(node):
                continue
            graph = self.flows.module.graph_of(node)
            left, right = graph.operands[node.name][:2]
            for here, there in ((left, right), (right, left)):
                number = self.flows.part_of(graph, here)
                if number is not None:
                    found[self._source(graph, there)].add((number, _shape(graph, here)))
        return found

    def _source(self, graph: Graph, value: HloValue) -> Source:
        """Return where a value is made, in a `shard_map` and out of it.

        The backward pass of one is another, which gets what the first computed.
        """
        module, place = self.flows.module, (graph, value)
        for _ in range(_EDGES):
            graph, value = place[0], place[0].source(place[1], VIEWS)
            node = graph.node(value)
            outer: GraphValue | None = None
            if is_shard_map_edge(node):
                outer = graph, graph.operands[node.name][0]
            elif node.opcode == "parameter" and self._is_called(graph):
                outer = module.outside(graph, value)
            elif node.opcode == "call":
                outer = self._returned_by(node, value)
            if outer is None:
                break
            place = outer
        return graph.name, value

    def _is_called(self, graph: Graph) -> bool:
        caller = self.flows.module.caller(graph)
        return caller is not None and caller.opcode == "call"

    def _returned_by(self, call: Instruction, value: HloValue) -> GraphValue | None:
        """Return the result of what is called that a value is."""
        names = [name for _, name in call.called]
        inner = self.flows.module.computations.get(names[0]) if len(names) == 1 else None
        at = value.element[0] if value.element else 0
        return (inner, inner.results[at]) if inner and at < len(inner.results) else None

    # JAX returns gradients in the structure of the argument

    def _of_one_structure(self, pure: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Yield results and arguments that are the same leaves of two pytrees of one structure."""
        results = _trees((self._steps(self.outputs, at), at) for at in pure)
        read = [n for n in self.flows.entry.parameters if self._is_read(n) and self._is_float(n)]
        arguments = _trees((tuple(_STEP.findall(self.name(n))), n) for n in read)
        # The largest trees come last: of two trees that fit, they say more.
        for _, leaves in sorted(results.items(), key=lambda item: len(item[1])):
            fitting = [tree for tree in arguments.values() if self._is_alike(leaves, tree)]
            if len(fitting) == 1:
                for steps, at in leaves.items():
                    yield at, fitting[0][steps]

    @staticmethod
    def _steps(names: Sequence[str], at: int) -> tuple[str, ...]:
        return tuple(_STEP.findall(names[at])) if at < len(names) else ()

    def _is_alike(self, results: Tree, tree: Tree) -> bool:
        entry = self.flows.entry
        return results.keys() == tree.keys() and all(
            _shape(entry, entry.results[at]) == self._shape(tree[steps])
            for steps, at in results.items()
        )


def _trees(
    named: Iterable[tuple[tuple[str, ...], int]],
) -> dict[tuple[str, ...], Tree]:
    """Return by each beginning of the paths the leaves below it, by the rest of their paths."""
    found: dict[tuple[str, ...], Tree] = defaultdict(dict)
    for steps, number in named:
        for depth in range(len(steps) + 1):
            found[steps[:depth]][steps[depth:]] = number
    return found


def _members(mask: int, count: int) -> list[int]:
    mask &= (1 << count) - 1
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found


def _shape(graph: Graph, value: HloValue) -> tuple[int, ...] | None:
    array = graph.array(value)
    return None if array is None else array[1]
