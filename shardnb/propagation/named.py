"""The values of the user's lines in the program before partitioning, and their names.

A statement's value is what other operations use of it. If that is one value and the statement
assigns one name, the value has this name. Otherwise it is named by its operation and its line,
never by a guess.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from shardnb.propagation.matching import Leaf
from shardnb.report.model import Location
from shardnb.sources.source_texts import Sources
from shardnb.sources.statements import Statement, statement_at, statements
from shardnb.texts.graph import Graph
from shardnb.texts.hlo import Frame, Module
from shardnb.texts.instruction import HloValue, Instruction
from shardnb.texts.opcodes import NO_OPERANDS, TUPLES

# Where the key of an instruction has no frame, as it has no `op_name`: its lines all the same.
_FRAME = re.compile(r"stack_frame_id=\d+|source_file=.*source_line=\d+")
# JAX writes the transpose of a line, and what `jax.checkpoint` computes again for it, under this
# name and at the line itself (test_a_value_of_a_gradient_is_not_taken_for_the_statements).
_DERIVED = "transpose("


@dataclass(frozen=True, eq=False)
class Call:
    """A statement as it runs for one chain of callers, whose lines are `outer`."""

    statement: Statement
    function: str
    outer: tuple[Location, ...]

    @property
    def is_inner(self) -> bool:
        """Whether it is a lambda or a comprehension in a statement, which does not get the name."""
        last = self.function.rpartition(".")[2]
        return last.startswith("<") and last != "<module>"


Places = dict[Call, Location]
"""The statements that an operation belongs to, innermost first, each with the line in it."""


@dataclass(frozen=True)
class Named:
    """A value of the user's program: its instruction and element, its name, statement and line."""

    leaf: Leaf
    instruction: Instruction
    name: str
    op: str
    call: Call
    location: Location


def op_word(instruction: Instruction) -> str:
    """Return JAX's name of an operation, such as `dot_general`."""
    word = instruction.op_name.rpartition("/")[2].partition("[")[0]
    return word if word.isidentifier() else instruction.opcode.replace("-", "_")


@dataclass
class Lines:
    """Finds the user's lines of instructions, and the statements on them."""

    module: Module
    sources: Sources
    _texts: dict[int, dict[int, tuple[Statement, ...]]] = field(default_factory=dict)
    _places: dict[int | str, Places] = field(default_factory=dict)
    _calls: dict[Hashable, Call] = field(default_factory=dict)

    @cached_property
    def values(self) -> list[Named]:
        """The values of the user's lines, in the order of the program."""
        named_by_leaf: dict[Leaf, list[Named]] = defaultdict(list)
        order: dict[Leaf, tuple[int, int, int]] = {}
        for number, (graph, caller) in enumerate(_computations(self.module)):
            for leaf, named in _Computation(self, graph, caller).values():
                named_by_leaf[leaf].append(named)
                order[leaf] = number, graph.position[leaf[0]], leaf[1]
        leaves = sorted(named_by_leaf, key=order.__getitem__)
        return [value for leaf in leaves for value in named_by_leaf[leaf]]

    def location(self, instruction: Instruction) -> Location | None:
        """Return the innermost user line that led to an instruction."""
        return next(iter(self.sources.locate(self.module.frames(instruction))), None)

    def places(self, instruction: Instruction) -> Places:
        """Return the statements that an instruction belongs to, innermost first."""
        frame: int | str = instruction.key[1]
        if not frame:
            match = _FRAME.search(instruction.attributes)
            if match is None:
                return {}
            frame = match[0]
        if frame not in self._places:
            self._places[frame] = dict(self._find(self.module.frames(instruction)))
        return self._places[frame]

    def _find(self, frames: tuple[Frame, ...]) -> Iterator[tuple[Call, Location]]:
        written: dict[Location, Frame] = {}
        for frame in self.sources.of_program(frames):
            for at in self.sources.locate((frame,)):
                written.setdefault(at, frame)
        located = tuple(written)
        for depth, (at, frame) in enumerate(written.items(), start=1):
            held = self._statements(at.source, frame.file).get(at.line, ())
            statement = statement_at(held, at.line, frame.column)
            if statement is not None:
                key = at.source, statement, at.function, located[depth:]
                call = Call(statement, at.function, located[depth:])
                yield self._calls.setdefault(key, call), at

    def _statements(self, source: int, file: str) -> dict[int, tuple[Statement, ...]]:
        if source not in self._texts:
            # Only a few lines of this file are known so far: read all of it.
            parsed = statements(self.sources.whole_file(file))
            known = self.sources.texts()[source]
            self._texts[source] = parsed or statements(known.text, known.first_line)
        return self._texts[source]

    def repeats(self, call: Call) -> bool:
        """Whether the statement, or one that called it, may run more than once."""
        callers = (self._texts.get(at.source, {}).get(at.line, ()) for at in call.outer)
        return call.statement.repeats or any(one.repeats for held in callers for one in held)


def _computations(module: Module) -> Iterator[tuple[Graph, Instruction | None]]:
    """Return the computations that run as a part of the program, each with its caller."""
    waiting: list[tuple[str, Instruction | None]] = [(module.entry, None)]
    while waiting:
        name, caller = waiting.pop()
        graph = module.computations.get(name)
        if graph is None:
            continue
        yield graph, caller
        for instruction in graph.body:
            if instruction.opcode in ("while", "conditional", "call"):
                roles = (called for called in instruction.called if called[0] != "condition")
                waiting += [(called, instruction) for _, called in roles]


class _Computation:
    def __init__(self, lines: Lines, graph: Graph, caller: Instruction | None) -> None:
        self.lines, self.graph, self.caller = lines, graph, caller
        self.users: dict[HloValue, list[Instruction]] = defaultdict(list)
        self.takers: dict[Leaf, set[str] | None] = {}
        for instruction in graph.body:
            for operand in instruction.operands:
                self.users[operand].append(instruction)
        self.groups: dict[Call, list[Instruction]] = defaultdict(list)
        # The body of a `shard_map` has names that begin anew (`ulysses`).
        inside = _DERIVED in lines.module.prefix(graph.name)
        self.derived = {i for i in graph.body if inside or _DERIVED in i.attributes}
        for instruction in graph.body:
            if instruction not in self.derived:
                for call in lines.places(instruction):
                    self.groups[call].append(instruction)

    def values(self) -> Iterator[tuple[Leaf, Named]]:
        """Yield the named values by each of their names, the others by their op."""
        named: set[Leaf] = set()
        exported = {call: self._exported(call) for call in self.groups if self._returns(call)}
        for call, leaves in exported.items():
            name = call.statement.name
            if name and not call.is_inner and self._is_one(call, leaves):
                named.update(leaves)
                for leaf in leaves:
                    yield leaf, self._named(leaf, call, name)
        for call, leaves in exported.items():
            for leaf in leaves:
                innermost = next(iter(self.lines.places(self.graph.nodes[leaf[0]])))
                if innermost is call and leaf not in named:
                    yield leaf, self._named(leaf, call)

    def _named(self, leaf: Leaf, call: Call, name: str | None = None) -> Named:
        instruction = self.graph.nodes[leaf[0]]
        at = self.lines.places(instruction)[call]
        op = op_word(instruction)
        return Named(leaf, instruction, name or f"{op} at line {at.line}", op, call, at)

    def _is_one(self, call: Call, leaves: list[Leaf]) -> bool:
        """Whether the statement has one value, or the same one each time it runs."""
        if len(leaves) == 1:
            return True
        made = [(self.graph.nodes[name], index) for name, index in leaves]
        kinds = {(instruction.op_name, instruction.shape, index) for instruction, index in made}
        return len(kinds) == 1 and self.lines.repeats(call)

    def _exported(self, call: Call) -> list[Leaf]:
        """Return the values of a statement that other instructions use."""
        inside = {instruction.name for instruction in self.groups[call]}
        leaves = [
            (instruction.name, index)
            for instruction in self.groups[call]
            if not self._is_constant(instruction) and instruction.opcode not in TUPLES
            for index in range(len(instruction.arrays))
        ]
        return [leaf for leaf in leaves if self._goes_out(leaf, inside)]

    def _goes_out(self, leaf: Leaf, inside: set[str]) -> bool:
        """Whether a value is returned, or used by others than a gradient or a recomputation."""
        if leaf not in self.takers:
            self.takers[leaf] = self._takers(leaf)
        takers = self.takers[leaf]
        return takers is None or not takers <= inside

    def _takers(self, leaf: Leaf) -> set[str] | None:
        """Return the users of a value, except in gradients and recomputations; None if returned."""
        values = (HloValue(leaf[0]), HloValue(leaf[0], leaf[1:]))
        users = [user for value in values for user in self.users.get(value, ())]
        if self.graph.nodes[leaf[0]].is_root or any(
            user.is_root and user.opcode == "tuple" for user in users
        ):
            return None
        return {user.name for user in users if user not in self.derived}

    def _returns(self, call: Call) -> bool:
        """Whether what the computation returns leaves the statement.

        It does not if the statement contains the loop or the call whose body this is.
        """
        if self.caller is None:
            return True
        return call not in self.lines.places(self.caller)

    def _is_constant(self, instruction: Instruction) -> bool:
        if instruction.opcode == "broadcast":
            operand = self.graph.maker(instruction.operands[0])
            return operand is None or self._is_constant(operand)
        return instruction.opcode in NO_OPERANDS
