"""Which arguments and which sums of a program reach a value unmixed.

One walk over a module. What an operation makes of its operands element by element, or only puts
elsewhere, carries on what its operands carry; what sums, multiplies matrices or looks up starts
anew. So the new value of a parameter carries the parameter and its gradient, and no activation
does: a bias is repeated before it is added to one, which carries nothing on.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from shardnb.causes.phase import phase_of
from shardnb.collectives.find import reduction_of
from shardnb.terms.collectives import kind_of
from shardnb.texts.graph import Graph
from shardnb.texts.hlo import Module
from shardnb.texts.instruction import HloValue, Instruction
from shardnb.texts.opcodes import CONSTANTS, ELEMENTWISE, MOVES, TUPLES, VIEWS

_TURNS = 4
"""A carry hands on what it got from another one a turn later; no program was seen with three."""

_EDGES = ('"Sharding"', '"SPMDFullToShardShape"', '"SPMDShardToFullShape"')
"""Custom calls that only state a sharding."""

_TAKEN = {"dynamic-slice": 1, "dynamic-update-slice": 2, "pad": 1, "reduce": 1}
"""How many operands are data; those after them say where, or are what a sum begins with."""

Place = tuple[str, HloValue]
"""A computation, and a value in it."""


class Piece(NamedTuple):
    """A part of an array of one dimension that was laid end to end: where, and what reaches it."""

    start: int
    stop: int
    mask: int


@dataclass
class Flows:
    """What reaches each value of a module. Sets are numbers with a bit for each member.

    The bits below `arguments` are the parameters of the entry computation. The next one is in all
    that depends on the backward pass, whatever lies between. Each further one is an operation that
    starts anew, listed in `origins`. `apart` keeps apart what a program lays end to end.
    """

    module: Module
    apart: bool = False
    origins: list[Instruction] = field(default_factory=list)
    _masks: dict[Place, int] = field(default_factory=dict)
    _parts: dict[Place, int | None] = field(default_factory=dict)
    _bits: dict[tuple[str, str], int] = field(default_factory=dict)
    _pieces: dict[Place, tuple[Piece, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Walk over the module once."""
        entry = self.entry
        for number, value in entry.parameters.items():
            self._masks[entry.name, value] = 1 << number
            self._parts[entry.name, value] = number
        self._walk(entry)

    @cached_property
    def entry(self) -> Graph:
        """The entry computation."""
        return self.module.computations[self.module.entry]

    @cached_property
    def arguments(self) -> int:
        """The number of bits that stand for arguments."""
        return max(self.entry.parameters, default=-1) + 1

    @cached_property
    def results(self) -> tuple[int, ...]:
        """What reaches each result of the program."""
        return tuple(self.reaching(self.entry, value) for value in self.entry.results)

    def reaching(self, graph: Graph, value: HloValue) -> int:
        """Return what reaches a value element by element."""
        known = self._masks.get((graph.name, value))
        if known is None and value.element:
            known = self._masks.get((graph.name, HloValue(value.name)))
        return known or 0

    def part_of(self, graph: Graph, value: HloValue) -> int | None:
        """Return the number of the argument whose elements a value holds, None for another."""
        return self._parts.get((graph.name, value))

    def bit(self, instruction: Instruction) -> int:
        """Return the bit of an operation that starts anew, 0 for another."""
        return self._bits.get((instruction.computation, instruction.name), 0)

    def piece(self, collective: Instruction, at: int) -> int:
        """Return the bit of a piece of what a collective sends end to end, 0 where it does not."""
        return self._bits.get((collective.computation, f"{collective.name} {at}"), 0)

    def started(self, mask: int) -> Iterator[Instruction]:
        """Yield the operations in a set."""
        mask >>= self.arguments + 1
        while mask:
            low = mask & -mask
            yield self.origins[low.bit_length() - 1]
            mask ^= low

    @cached_property
    def after_backward(self) -> int:
        """The bit of what depends on the backward pass."""
        return 1 << self.arguments

    @cached_property
    def backward(self) -> int:
        """The operations that autodiff made for the backward pass."""
        named = [(origin, self.module.path(origin)) for origin in self.origins]
        made = {name for name in {name for _, name in named} if _is_gradient(name)}
        return sum(self.bit(origin) for origin, name in named if name in made)

    @cached_property
    def read_in_passes(self) -> int:
        """The arguments that the forward or the backward pass reads."""
        return self._read[0] & (self.after_backward - 1)

    @cached_property
    def taken_in_backward(self) -> int:
        """What operations of the backward pass take that start anew."""
        return self._read[1]

    @cached_property
    def _read(self) -> tuple[int, int]:
        """What the operations of both passes take, and those of the backward pass that start."""
        read = taken = 0
        for graph in self.module.computations.values():
            prefix = self.module.prefix(graph.name)
            for instruction in graph.body:
                named = prefix + instruction.attributes
                if "jvp(" not in named or instruction.opcode in TUPLES:
                    continue
                operands = graph.operands[instruction.name]
                read |= self._union(graph, operands)
                if self.bit(instruction) and "transpose(" in named:
                    # A parameter that a loop trains holds the gradients of the steps before.
                    # TPU adds the rows of a look-up to the gradient of the product with the same
                    # matrix, as of tied embeddings: the sum of both goes on as that gradient.
                    taking = operands[1:] if instruction.opcode == "scatter" else operands
                    taking = () if self._sums_on(graph, instruction) else taking
                    computed = [one for one in taking if self.part_of(graph, one) is None]
                    taken |= self._union(graph, computed)
        return read, taken

    def _walk(self, graph: Graph) -> None:
        for instruction in graph.body:
            opcode = instruction.opcode
            if opcode in TUPLES or opcode in CONSTANTS or opcode == "parameter":
                continue
            operands = graph.operands[instruction.name]
            if opcode == "while":
                self._loop(graph, instruction, operands)
            elif opcode == "conditional":
                branches = [name for _, name in instruction.called]
                for name, operand in zip(branches, instruction.operands[1:], strict=False):
                    self._call(graph, instruction, name, (operand,))
            elif opcode in ("call", "fusion"):
                for _, name in instruction.called[:1]:
                    self._call(graph, instruction, name, operands)
            else:
                self._step(graph, instruction, operands)

    def _step(self, graph: Graph, node: Instruction, operands: Sequence[HloValue]) -> None:
        """Say what reaches the result of one operation."""
        place = graph.name, node.value
        if self.apart:
            self._lay(graph, node, operands)
        if node.opcode.endswith("-done"):
            self._masks[place] = self._union(graph, operands)
            self._parts[place] = self.part_of(graph, operands[0])
        elif kind_of(node.opcode) is not None and len(operands) == len(node.results):
            # Members of a collective that sends several arrays stay apart.
            for result, operand in zip(node.results, operands, strict=True):
                self._masks[graph.name, result] = self.reaching(graph, operand)
                self._parts[graph.name, result] = self.part_of(graph, operand)
        elif node.opcode in ELEMENTWISE:
            taken = operands[1:] if node.opcode == "select" else operands
            self._masks[place] = self._union(graph, taken)
            if node.opcode in ("convert", "copy"):
                self._parts[place] = self.part_of(graph, operands[0])
        elif _is_move(graph, node, operands):
            self._masks[place] = self._sliced(graph, node, operands[0]) or self._union(
                graph, operands[: _TAKEN.get(node.opcode)]
            )
            if node.opcode not in ("concatenate", "dynamic-update-slice"):
                self._parts[place] = self.part_of(graph, operands[0])
        else:
            late = self._union(graph, operands) & self.after_backward
            if "transpose(" in self.module.prefix(graph.name) + node.attributes:
                late = self.after_backward
            goes_on = node.opcode == "scatter" or self._sums_on(graph, node)
            before = self.reaching(graph, operands[0]) if goes_on else 0
            # Repeated values carry nothing on, but are still a part of the argument.
            repeats = node.opcode == "broadcast"
            self._masks[place] = before | late | (0 if repeats else self._start(node))
            self._parts[place] = self.part_of(graph, operands[0]) if repeats else None

    def _lay(self, graph: Graph, node: Instruction, operands: Sequence[HloValue]) -> None:
        """Keep apart what XLA for GPU lays end to end to send it as one; a collective begins anew.

        Else all that is sent so would reach each new value
        (`test_projections_that_xla_makes_one_product_of_are_not_named_after_another_one`).
        """
        sizes = [_size(graph.array(operand)) or 0 for operand in operands]
        if node.opcode == "concatenate" and len(node.arrays[0][1]) == 1:
            stops = list(accumulate(sizes))
            self._pieces[graph.name, node.value] = tuple(
                Piece(stop - size, stop, self.reaching(graph, operand))
                for size, stop, operand in zip(sizes, stops, operands, strict=True)
            )
        elif len(operands) == 1 and (laid := self._pieces.get((graph.name, operands[0]))):
            if kind_of(node.opcode) is not None:
                laid = tuple(
                    one._replace(mask=one.mask | self._start(node, f" {at}"))
                    for at, one in enumerate(laid)
                )
            elif not node.opcode.endswith("-done"):
                return
            self._pieces[graph.name, node.value] = laid

    def _sliced(self, graph: Graph, node: Instruction, operand: HloValue) -> int:
        """Return what reaches a slice of what was laid end to end, 0 for another value."""
        cut = re.fullmatch(r"\{\[(\d+):(\d+)\]\}", node.attribute("slice") or "")
        if cut is None or node.opcode != "slice":
            return 0
        pieces = self._pieces.get((graph.name, operand), ())
        inside = (p for p in pieces if p.start <= int(cut[1]) and int(cut[2]) <= p.stop)
        return next((piece.mask for piece in inside), 0)

    def _sums_on(self, graph: Graph, node: Instruction) -> bool:
        """Whether an operation sums what is a sum already.

        Of a parameter that is repeated twice, the gradient is summed twice (`masked_patches`).
        """
        if node.opcode != "reduce" or reduction_of(self.module, node) != "add":
            return False
        summed = graph.maker(graph.source(graph.operands[node.name][0], VIEWS | {"convert"}))
        adds = summed is not None and summed.opcode == "reduce"
        return adds and summed is not None and reduction_of(self.module, summed) == "add"

    def _union(self, graph: Graph, operands: Sequence[HloValue]) -> int:
        found = 0
        for operand in operands:
            found |= self.reaching(graph, operand)
        return found

    def _start(self, node: Instruction, part: str = "") -> int:
        key = node.computation, node.name + part
        if key not in self._bits:
            self.origins.append(node)
            self._bits[key] = 1 << (self.arguments + len(self.origins))
        return self._bits[key]

    def _loop(self, graph: Graph, loop: Instruction, operands: Sequence[HloValue]) -> None:
        """Say what reaches the carry of a loop, inside and after it."""
        body = self.module.computations.get(loop.calls("body"))
        if body is None or 0 not in body.parameters or len(operands) != len(body.results):
            return
        carry = body.parameters[0]
        places = [(body.name, carry.at(at)) for at in range(len(operands))]
        for at, operand in enumerate(operands):
            self._masks[places[at]] = self.reaching(graph, operand)
            kept = body.results[at] == carry.at(at)
            self._parts[places[at]] = self.part_of(graph, operand) if kept else None
        self._settle(body, places)
        renewed = [
            at
            for at, place in enumerate(places)
            if self._parts[place] is None and self._is_renewed(graph, operands[at], place)
        ]
        for at in renewed:
            self._parts[places[at]] = self.part_of(graph, operands[at])
        if renewed:
            self._walk(body)
        for at, place in enumerate(places):
            self._masks[graph.name, loop.value.at(at)] = self._masks[place]
            self._parts[graph.name, loop.value.at(at)] = self._parts[place]

    def _settle(self, body: Graph, places: Sequence[Place]) -> None:
        """Let what a loop's body returns reach its carry, until nothing new does."""
        for _ in range(_TURNS):
            self._walk(body)
            grown = False
            for result, place in zip(body.results, places, strict=True):
                union = self._masks[place] | self.reaching(body, result)
                grown = grown or union != self._masks[place]
                self._masks[place] = union
            if not grown:
                break

    def _is_renewed(self, graph: Graph, start: HloValue, place: Place) -> bool:
        """Whether a carry is an argument that each step trains: what a step returns holds it still.

        The state of a recurrent network begins as an argument as well, and is another value then.
        """
        number, mask = self.part_of(graph, start), self._masks[place]
        return number is not None and bool(mask >> number & 1 and mask & self.after_backward)

    def _call(
        self, graph: Graph, caller: Instruction, name: str, operands: Sequence[HloValue]
    ) -> None:
        """Walk over what an operation calls; of branches, what each returns reaches the result."""
        inner = self.module.computations.get(name)
        if inner is None:
            return
        for number, value in inner.parameters.items():
            if number < len(operands):
                self._hand_in(graph, operands[number], inner, value)
        self._walk(inner)
        single = len(inner.results) == 1 and not caller.is_tuple
        for at, result in enumerate(inner.results):
            value = caller.value if single else caller.value.at(at)
            place, several = (graph.name, value), caller.opcode == "conditional"
            before = self._masks.get(place, 0) if several else 0
            self._masks[place] = before | self.reaching(inner, result)
            self._parts[place] = None if several else self.part_of(inner, result)
            if laid := self._pieces.get((inner.name, result)):
                self._pieces[place] = laid

    def _hand_in(self, graph: Graph, operand: HloValue, inner: Graph, value: HloValue) -> None:
        node = graph.maker(operand)
        elements = node.operands if node is not None and node.opcode == "tuple" else ()
        pairs = [(value.at(at), graph.resolve(one)) for at, one in enumerate(elements)]
        for at, one in pairs or [(value, operand)]:
            self._masks[inner.name, at] = self.reaching(graph, one)
            self._parts[inner.name, at] = self.part_of(graph, one)
            if laid := self._pieces.get((graph.name, one)):
                self._pieces[inner.name, at] = laid


def _is_move(graph: Graph, node: Instruction, operands: Sequence[HloValue]) -> bool:
    """Whether each element of a result is one of an operand's, or a constant."""
    if node.opcode in MOVES:
        return True
    if node.opcode == "custom-call":
        return any(edge in node.attributes for edge in _EDGES)
    # Of one element there is nothing to sum up and nothing to repeat.
    if node.opcode in ("broadcast", "reduce") and operands and not node.is_tuple:
        return _size(graph.array(operands[0])) == _size(graph.array(node.value))
    return False


def _size(array: tuple[str, tuple[int, ...]] | None) -> int | None:
    return None if array is None else math.prod(array[1])


def _is_gradient(op_name: str) -> bool:
    """Whether autodiff made an operation for a gradient, and not for the tangent of one.

    >>> _is_gradient("jit(f)/transpose(jvp())/dot_general")
    True
    >>> _is_gradient("jit(f)/jvp(transpose(jvp()))/dot_general")
    False
    """
    backward = phase_of(op_name, differentiated=True) == "backward"
    return backward and 0 <= op_name.find("transpose(") < op_name.find("jvp(")
