"""What a value in a device's memory is to the user: its name, its line, whether it was copied."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from shardnb.causes.phase import phase_of
from shardnb.findings.evidence import Evidence
from shardnb.propagation.named import Lines, op_word
from shardnb.propagation.written import WrittenNames
from shardnb.report.memory import Held
from shardnb.report.model import Collective, Location
from shardnb.terms.causes import Phase
from shardnb.terms.collectives import kind_of
from shardnb.terms.roles import GRADIENTS
from shardnb.texts.graph import Graph
from shardnb.texts.hlo import Frame, Module
from shardnb.texts.instruction import HloValue, Instruction, split
from shardnb.texts.opcodes import COPIES, VIEWS

# Steps after which a value is named by where it is: no program was seen with half of them.
_STEPS = 64
_COMMENT = re.compile(r"/\*.*?\*/")
# What the compiler makes room with before a loop fills it: CPU zeros, TPU an allocation.
_ROOM = ("broadcast", "constant", "custom-call", "iota")
_GRADIENT = "the gradient of "
_RUN_ONCE = ("async-start", "call", "call-start", "fusion", "fusion-start")


@dataclass(frozen=True)
class Made:
    """What makes a value, after steps that copy it or put it beside others of its loop.

    `sliced` says that a loop took it from where the values of all iterations are.
    """

    graph: Graph
    value: HloValue
    copied: bool = False
    stacked: bool = False
    sliced: bool = False

    @property
    def node(self) -> Instruction | None:
        """The instruction that makes it."""
        return self.graph.maker(self.value)

    def at(self, graph: Graph, value: HloValue) -> Made:
        """Return it as another value, elsewhere."""
        return replace(self, graph=graph, value=graph.resolve(value))

    def operand(self, at: int = 0) -> Made | None:
        """Return it as an operand of what makes it."""
        operands = self.graph.operands[self.value.name]
        return self.at(self.graph, operands[at]) if at < len(operands) else None


@dataclass
class Makers:
    """Follows values of a module up to the operations whose names say what they are."""

    module: Module

    @cached_property
    def _homes(self) -> dict[str, Graph]:
        return {one.name: self.module.graph_of(one) for one in self.module.instructions()}

    def made(self, value: HloValue) -> Made | None:
        """Return what makes a value; None where the module does not have it."""
        graph = self._homes.get(value.name)
        if graph is None or not _has(graph.node(value).shape, value.element):
            return None
        return self._followed(Made(graph, graph.resolve(value)))

    def _followed(self, made: Made) -> Made:
        seen = {(made.graph.name, made.value)}
        for _ in range(_STEPS):
            following = self.source(made)
            if following is None or (following.graph.name, following.value) in seen:
                break
            seen.add((following.graph.name, following.value))
            made = following
        return made

    def source(self, made: Made) -> Made | None:
        """Return what a value is taken from as it is, None where an operation makes it."""
        node = made.node
        if node is None:
            return None
        if node.opcode == "parameter":
            return self._passed(made)
        if node.opcode == "while":
            return self._in_body(made, node, made.value.element)
        if node.opcode in _RUN_ONCE and not kind_of(node.opcode):
            return self._filled(made) or self._inside(made, node)
        return self._moved(made, node) or self._filled(made)

    def _moved(self, made: Made, node: Instruction) -> Made | None:
        """Return the operand of what only copies it, takes a slice of it, or stacks it."""
        if node.opcode == "bitcast" or node.opcode.endswith("-done"):
            return made.operand()
        if node.opcode in COPIES or (node.opcode in VIEWS and not node.op_name):
            return replace(made, copied=not made.stacked).operand()
        if self.loop(made.graph) is None:
            return None
        if node.opcode == "dynamic-slice":
            return replace(made, sliced=True).operand()
        stacks = node.opcode == "dynamic-update-slice"
        return replace(made, stacked=not made.sliced).operand(1) if stacks else None

    def _passed(self, made: Made) -> Made | None:
        """Return what a parameter of a loop or of another part of the program is."""
        caller = self.module.caller(made.graph)
        if caller is None:
            return None
        if caller.opcode == "while" and not self.module.is_kept(made.graph, made.value, VIEWS):
            return self._in_body(made, caller, made.value.element)
        outer = self.module.outside(made.graph, made.value)
        return None if outer is None else made.at(*outer)

    def _in_body(self, made: Made, loop: Instruction, element: tuple[int, ...]) -> Made | None:
        """Return what a loop makes of a part of its state, or what it keeps of it."""
        body = self.module.computations.get(loop.calls("body"))
        if body is None or not element or not _has(body.root.shape, element):
            return None
        return made.at(body, body.root.value.at(*element))

    def _inside(self, made: Made, caller: Instruction) -> Made | None:
        inner = self.module.computations.get(caller.called[0][1]) if caller.called else None
        return None if inner is None else made.at(inner, inner.root.value.at(*made.value.element))

    def loop(self, graph: Graph) -> Instruction | None:
        """Return the innermost loop that a computation is in."""
        caller = self.module.caller(graph)
        while caller is not None and caller.opcode != "while":
            caller = self.module.caller(self.module.graph_of(caller))
        return caller

    def _filled(self, made: Made) -> Made | None:
        """Return what a loop writes where there are only zeros, or nothing, before it."""
        node, inside = made.node, made
        while node is not None and node.opcode in _RUN_ONCE:
            inner = self._inside(inside, node)
            if inner is None:
                return None
            inside, node = inner, inner.node
        users = [user for user in made.graph.users[made.value] if user.opcode == "while"]
        if node is None or node.opcode not in _ROOM or len(users) != 1:
            return None
        at = made.graph.operands[users[0].name].index(made.value)
        return self._in_body(made, users[0], (at,))


def _has(shape: str, element: Sequence[int]) -> bool:
    """Whether a shape has an element: a list of buffers from elsewhere may name any."""
    rest = _COMMENT.sub("", shape)
    for at in element:
        parts = split(rest[1:-1]) if rest.startswith("(") else []
        if at >= len(parts):
            return False
        rest = parts[at].strip()
    return True


@dataclass
class HeldValues:
    """Describes the values of the program that the devices run."""

    evidence: Evidence

    @cached_property
    def _makers(self) -> Makers:
        return Makers(self.evidence.module)

    def held(self, value: HloValue) -> Held:
        """Describe a temporary value; its bytes and shape are left to the caller."""
        made = self._makers.made(value)
        node = made.node if made else None
        if made is None or node is None:
            return Held(value.name, "temporary", 0)
        known = Held("", "temporary", 0, copied=made.copied, stacked=made.stacked)
        if node.opcode == "parameter":
            is_argument = made.graph.name == self.evidence.module.entry
            name = self.argument(node.number) if is_argument else node.name
            return replace(known, name=name, sliced=is_argument and made.sliced)
        loop = self._makers.loop(made.graph)
        astray = loop is not None and not self._runs_in(loop, node)
        name = _result(node) if astray else self._name(made, node)
        return replace(
            known,
            name=name,
            location=self.line(loop if astray and loop is not None else node),
            phase=self.phase(node),
            collective="" if name.startswith(_GRADIENT) else kind_of(node.opcode) or "",
        )

    def _runs_in(self, loop: Instruction, node: Instruction) -> bool:
        """Whether the lines of an operation are in the loop that it is in.

        JAX traces the derivative of a function such as `tanh` once, and gives all of its uses the
        lines of the first, before their own (test_what_jax_traced_elsewhere_is_at_its_loop).
        """
        outer = next(iter(self.evidence.module.frames(loop)), None)
        return outer is None or outer in self._innermost(self.evidence.module.frames(node))

    def _innermost(self, frames: Sequence[Frame]) -> Iterator[Frame]:
        """Yield the frames of a stack up to where the next one begins that JAX put after it."""
        for frame in frames:
            if self.evidence.sources.is_own(frame.file):
                return
            yield frame
            if frame.function == "<module>":
                return

    def argument(self, number: int) -> str:
        """Return the name of a parameter of the program."""
        names = self.evidence.parameters
        if 0 <= number < len(names):
            return names[number]
        value = self._entry.parameters.get(number)
        node = self._entry.node(value) if value is not None else None
        return (node.op_name or node.name) if node is not None else f"argument {number}"

    @cached_property
    def results(self) -> dict[HloValue, str]:
        """The names of the program's results by the values that they are."""
        values, outputs = self._entry.results, self.evidence.outputs
        known = outputs if len(outputs) == len(values) else ()
        return {value: output.name for value, output in zip(values, known, strict=False)}

    def line(self, node: Instruction) -> Location | None:
        """Return the line that led to an instruction."""
        found = self.evidence.sources.locate_anywhere(self.evidence.module.frames(node))
        return next(iter(found), None)

    def phase(self, node: Instruction) -> Phase | None:
        """Return the pass of an instruction, in a program that has several."""
        known = self._is_differentiated and node.op_name
        return phase_of(node.op_name, differentiated=True) if known else None

    @cached_property
    def _is_differentiated(self) -> bool:
        return any("transpose(" in one.op_name for one in self.evidence.module.instructions())

    @property
    def _entry(self) -> Graph:
        module = self.evidence.module
        return module.computations[module.entry]

    def _name(self, made: Made, node: Instruction) -> str:
        if kind_of(node.opcode):
            return self._sent(made, node)
        return self._variable(node) or self._written.operation(node, op_word(node)) or _result(node)

    def _sent(self, made: Made, node: Instruction) -> str:
        """Name what a collective sends: by its role, else as the values that it takes."""
        members = self._collectives[node.name]
        if len(members) == 1 and members[0].role in GRADIENTS and members[0].role_of:
            return f"{_GRADIENT}{members[0].role_of}"
        if len(members) == 1 and members[0].producer:
            return members[0].producer
        element = made.value.element
        operand = made.operand(element[-1] if element and len(node.operands) > 1 else 0)
        named = self._makers.made(operand.value) if operand else None
        inner = named.node if named else None
        if named is None or inner is None or kind_of(inner.opcode):
            return _result(node)
        return self.held(named.value).name

    @cached_property
    def _collectives(self) -> dict[str, list[Collective]]:
        found: dict[str, list[Collective]] = defaultdict(list)
        for collective in self.evidence.collectives:
            name = collective.instruction.partition(" = ")[0].removeprefix("%")
            found[name].append(collective)
        return found

    @cached_property
    def _written(self) -> WrittenNames:
        return WrittenNames(Lines(self.evidence.module, self.evidence.sources))

    def _variable(self, node: Instruction) -> str:
        """Return the variable that is assigned the operation's value, where only that one may be.

        The program before partitioning says that, in which no operations are fused yet.
        """
        names = self._variables.get((node.op_name, node.opcode, self._frame(node)), {""})
        return next(iter(names)) if len(names) == 1 else ""

    @cached_property
    def _variables(self) -> dict[tuple[str, str, Frame | None], set[str]]:
        found: dict[tuple[str, str, Frame | None], set[str]] = defaultdict(set)
        before, lines = self.evidence.before, self.evidence.lines
        if before is None or lines is None:
            return found
        written = WrittenNames(lines)
        for instruction in before.instructions():
            frame = next(iter(before.frames(instruction)), None)
            name, _ = written.variable(instruction.computation, instruction.value)
            found[before.path(instruction), instruction.opcode, frame].add(name)
        return found

    def _frame(self, node: Instruction) -> Frame | None:
        return next(iter(self.evidence.module.frames(node)), None)


def _result(node: Instruction) -> str:
    return f"result of {op_word(node)}"
