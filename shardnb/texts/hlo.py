"""HLO text as data: computations as graphs of values, with their Python lines.

Reads XLA's text in one pass, before and after optimization, of any backend, with and without `%`
before names and types before operands.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from shardnb.report.invalid_input import InvalidInput
from shardnb.terms.collectives import kind_of
from shardnb.texts.graph import Graph
from shardnb.texts.instruction import HloValue, Instruction
from shardnb.texts.opcodes import ASYNC_CALLERS, CALLERS

# Most operands are plain names: groups 5 and 6. Group 7 has the rest, to be parsed by hand.
_INSTRUCTION = re.compile(
    r"\s*(ROOT )?%?([\w.\-]+) = (\(.*?\)|\S+) ([a-z][a-z0-9\-]*)\("
    r'(?:([^()"]*)\)(.*)|(.*))$',
    re.DOTALL,
)
# What begins as an instruction and cannot be read is an error; anything else goes on with the last
# one (tests/texts/test_hlo_wild.py).
_BEGINS = re.compile(r"\s*(?:ROOT )?%?[\w.\-]+ = ")
_COMMENTS = ("//", "/*")
# `%body (carry: (s32[], f32[8])) -> (s32[], f32[8]) {`, and `body {` in dumps of passes.
_COMPUTATION = re.compile(r"(ENTRY )?%?([\w.\-]+) (?:\(.*\) -> .* )?\{$")
_FRAME_TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")
# A row of such a table: `3 {file_name_id=1 function_name_id=2 line=10 ...}`.
_NUMBERED = re.compile(r"(\d+) (.*)$")
_PAIR = re.compile(r"(\w+)=(\d+)")
# Python reads no number of more than 4,300 digits, and no program has one of hundreds.
_MANY = 1000
_MANY_DIGITS = re.compile(rf"\d{{{_MANY},}}")


@dataclass(frozen=True)
class Frame:
    """A line of Python that led to an instruction.

    `column` is where its expression begins in the line, in bytes from 0; -1 is not known.
    """

    file: str
    line: int
    function: str = ""
    column: int = field(default=-1, compare=False)


GraphValue = tuple[Graph, HloValue]
"""A value, and the computation that it is in."""


@dataclass
class Module:
    """An HLO module: its computations by name, in the order of the text."""

    name: str
    header: str
    computations: dict[str, Graph] = field(default_factory=dict)
    entry: str = ""
    tables: dict[str, dict[int, str]] = field(default_factory=dict)

    def instructions(self) -> Iterator[Instruction]:
        """Yield every instruction of every computation."""
        for graph in self.computations.values():
            yield from graph.body

    def body(self, name: str) -> Sequence[Instruction]:
        """Return the instructions of a computation; none if it does not exist."""
        return self.computations[name].body if name in self.computations else ()

    def of_kind(self, *opcodes: str) -> list[Instruction]:
        """Return the instructions of some opcodes, in the order of the text."""
        entries = [entry for opcode in opcodes for entry in self._by_opcode.get(opcode, ())]
        return [entry for _, entry in sorted(entries, key=lambda pair: pair[0])]

    @cached_property
    def _by_opcode(self) -> dict[str, list[tuple[int, Instruction]]]:
        found: dict[str, list[tuple[int, Instruction]]] = defaultdict(list)
        for at, instruction in enumerate(self.instructions()):
            found[instruction.opcode].append((at, instruction))
        return found

    @cached_property
    def collectives(self) -> list[Instruction]:
        """The collectives, at their start if they are asynchronous, in the order of the text."""
        return self.of_kind(*(opcode for opcode in self.opcodes if kind_of(opcode)))

    @property
    def opcodes(self) -> Iterable[str]:
        """The opcodes of its instructions."""
        return self._by_opcode.keys()

    def graph_of(self, instruction: Instruction) -> Graph:
        """Return the computation that an instruction is in."""
        return self.computations[instruction.computation]

    @property
    def num_partitions(self) -> int:
        """The number of devices that the program was partitioned for."""
        match = re.search(r"\bnum_partitions=(\d+)", self.header)
        return int(match.group(1)) if match else 1

    @property
    def replica_count(self) -> int:
        """How often all of its partitions run beside each other."""
        match = re.search(r"\breplica_count=(\d+)", self.header)
        return int(match.group(1)) if match else 1

    @cached_property
    def callers(self) -> dict[str, list[Instruction]]:
        """The instruction that runs each computation: a loop, branch, call or fusion."""
        found: dict[str, list[Instruction]] = defaultdict(list)
        for caller in self.of_kind(*CALLERS, *ASYNC_CALLERS):
            for _, name in caller.called:
                found[name].append(caller)
        return found

    def caller(self, graph: Graph) -> Instruction | None:
        """Return the instruction that runs a computation, None for the entry."""
        callers = self.callers.get(graph.name)
        return callers[-1] if callers else None

    def path(self, instruction: Instruction) -> str:
        """Return JAX's name of an instruction, with those of the calls that it is in.

        Before XLA inlines it, the body of a `shard_map` has names that begin anew.
        """
        return "/".join(filter(None, (self.prefix(instruction.computation), instruction.op_name)))

    def prefix(self, computation: str) -> str:
        """Return what is left out before the names of a computation: "" for the entry."""
        if computation not in self._prefixes:
            self._prefixes[computation] = ""  # a computation that calls itself has none
            callers = self.callers.get(computation)
            if callers:
                caller = callers[-1]
                named = caller.op_name if caller.opcode == "call" else ""
                outer = self.prefix(caller.computation)
                self._prefixes[computation] = "/".join(filter(None, (outer, named)))
        return self._prefixes[computation]

    @cached_property
    def _prefixes(self) -> dict[str, str]:
        return {}

    def is_loop(self, graph: Graph) -> bool:
        """Whether a computation is a part of a loop."""
        caller = self.caller(graph)
        return caller is not None and caller.opcode == "while"

    def inside(self, loop: Instruction, at: int) -> GraphValue | None:
        """Return the value of a loop's operand `at` inside its body."""
        graph = self.computations.get(loop.calls("body"))
        if graph is None or 0 not in graph.parameters:
            return None
        return graph, graph.parameters[0].at(at)

    def outside(self, graph: Graph, value: HloValue) -> GraphValue | None:
        """Follow a parameter of a called computation to the caller's operand."""
        caller = self.caller(graph)
        if caller is None:
            return None
        if caller.opcode == "while":
            at = 0 if value.element else -1
        elif caller.opcode == "conditional":
            branches = [called for _, called in caller.called]
            # The first operand is the predicate.
            at = branches.index(graph.name) + 1 if branches.count(graph.name) == 1 else -1
        else:
            at = graph.node(value).number
        if not 0 <= at < len(caller.operands):
            return None
        outer = self.graph_of(caller)
        return outer, outer.resolve(caller.operands[at].at(*value.element))

    def carried(self, graph: Graph, value: HloValue) -> GraphValue | None:
        """Return what a loop's body passes to its next iteration for a part of its parameter."""
        caller = self.caller(graph)
        if caller is None or caller.opcode != "while" or not value.element:
            return None
        if caller.calls("body") != graph.name:
            return None
        return graph, graph.resolve(graph.root.value.at(*value.element))

    def is_kept(self, graph: Graph, value: HloValue, through: Container[str] = ()) -> bool:
        """Whether a loop passes a part of its parameter on unchanged, or through these opcodes."""
        last = self.carried(graph, value)
        return last is not None and value in graph.upward(last[1], through)

    def frames(self, instruction: Instruction) -> tuple[Frame, ...]:
        """Return the lines of Python that led to an instruction, innermost first."""
        number = instruction.integer("stack_frame_id")
        if number is not None:
            return self._chain(number)
        line, file = instruction.integer("source_line"), instruction.string("source_file")
        return (Frame(file, line),) if file and line else ()

    @cached_property
    def _chains(self) -> dict[int, tuple[Frame, ...]]:
        return {}

    def _chain(self, number: int) -> tuple[Frame, ...]:
        if number not in self._chains:
            self._chains[number] = tuple(self._walk(number))
        return self._chains[number]

    def _walk(self, number: int) -> Iterator[Frame]:
        frames, seen = self.tables.get("StackFrames", {}), set[int]()
        while number in frames and number not in seen:
            seen.add(number)
            entry = dict(_PAIR.findall(frames[number]))
            yield self._frame(int(entry.get("file_location_id", 0)))
            # XLA prints a parent's id one too high: 1 stands for "none".
            number = int(entry.get("parent_frame_id", 1)) - 1

    def _frame(self, location: int) -> Frame:
        entry = dict(_PAIR.findall(self.tables.get("FileLocations", {}).get(location, "")))
        file = self.tables.get("FileNames", {}).get(int(entry.get("file_name_id", 0)), "")
        names = self.tables.get("FunctionNames", {})
        function = names.get(int(entry.get("function_name_id", 0)), "")
        line, column = int(entry.get("line", 0)), int(entry.get("column", -1))
        return Frame(file.strip('"'), line, function.strip('"'), column)


def parse(text: str) -> Module:
    """Read the text of an HLO module; text before it, as in a log, is skipped.

    All lines may be indented as the first one is, and an instruction may stand on several lines.
    Raises `InvalidInput` where the text is not an HLO module, ends in the middle of one, or has an
    instruction that cannot be read.
    """
    rows = text.splitlines()
    for row in rows:
        if len(row) >= _MANY and (number := _MANY_DIGITS.search(row)):
            raise InvalidInput(f"expected HLO, got a number of {len(number[0]):,} digits")
    lines = iter(enumerate(rows, 1))
    first = next((line for _, line in lines if line.lstrip().startswith("HloModule ")), "")
    header = first.strip()
    if not header.split()[1:]:
        start = text.strip()[:60]
        raise InvalidInput(
            f"expected an HLO module, with a line 'HloModule NAME', got a text that starts with "
            f"{start!r}"
        )
    module = Module(header.split()[1].rstrip(","), header)
    indent = first[: len(first) - len(first.lstrip())]
    _read(module, ((number, line.removeprefix(indent).rstrip()) for number, line in lines))
    if not module.entry:
        raise InvalidInput(f"the HLO of {module.name} is truncated: it has no ENTRY computation")
    return module


def _read(module: Module, lines: Iterator[tuple[int, str]]) -> None:
    table: dict[int, str] | None = None
    current: _Body | None = None
    for number, line in lines:
        if current is not None:
            if line.startswith("}"):
                current.close()
                current = None
            else:
                current.take(number, line)
        elif opened := _COMPUTATION.match(line):
            module.computations[opened[2]] = Graph(opened[2])
            current = _Body(module.computations[opened[2]])
            module.entry = opened[2] if opened[1] else module.entry
        elif line in _FRAME_TABLES:
            table = module.tables.setdefault(line, {})
        elif table is not None and (entry := _NUMBERED.match(line)):
            table[int(entry[1])] = entry[2]
    if current is not None:
        raise InvalidInput(
            f"the HLO of {module.name} is truncated in the computation {current.name}"
        )


class _Body:
    """Reads the lines of a computation: one that starts no instruction continues the last."""

    def __init__(self, graph: Graph) -> None:
        self.name, self._body = graph.name, graph.body
        self._first, self._lines = 0, list[str]()

    def take(self, number: int, line: str) -> None:
        if _BEGINS.match(line):
            self.close()
            self._first, self._lines = number, [line]
        elif line and not line.lstrip().startswith(_COMMENTS):
            self._first = self._first or number
            self._lines.append(line.lstrip())

    def close(self) -> None:
        """Read the instruction whose lines are there; raises `InvalidInput` if it is not one."""
        if not self._lines:
            return
        text = " ".join(self._lines)
        instruction = _instruction(text, self.name)
        if instruction is None:
            raise InvalidInput(
                f"line {self._first}, in the computation {self.name}: expected an HLO instruction, "
                f"such as 'x = f32[8]{{0}} add(a, b)', got {text.strip()[:80]!r}"
            )
        self._body.append(instruction)
        self._lines = []


def _instruction(line: str, computation: str) -> Instruction | None:
    match = _INSTRUCTION.match(line)
    if match is None:
        return None
    root, name, shape, opcode, operands, attributes, rest = match.groups()
    if rest is not None:
        operands, attributes = _close(rest)
    return Instruction(name, opcode, shape, operands, attributes, computation, bool(root))


def _close(rest: str) -> tuple[str, str]:
    """Split a text after an opening parenthesis at the closing one."""
    depth, quoted = 1, False
    for index, char in enumerate(rest):
        if char == '"':
            quoted = not quoted
        elif not quoted:
            depth += (char in "({") - (char in ")}")
            if depth == 0:
                return rest[:index], rest[index + 1 :]
    return rest, ""
