"""HLO text as data: computations, instructions, and where their lines came from.

One pass over the lines; what an instruction's attributes say is read only when it is asked for.
Reads the text of XLA before and after optimisations, of any backend, with and without `%` before
names and with or without types before operands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

_INSTRUCTION = re.compile(
    r"\s*(ROOT )?%?([\w.\-]+) = (\(.*?\)|\S+) ([a-z][a-z0-9\-]*)\((.*)$", re.DOTALL
)
_COMPUTATION = re.compile(r"(ENTRY )?%?([\w.\-]+) (?:\(.*\) -> .* )?\{$")
_PLAIN_OPERANDS = re.compile(r"([^()\"]*)\)")
_OPERAND = re.compile(r"%([\w.\-]+(?:#\d+)*)")
_ARRAY = re.compile(r"([a-z]\w*)\[([\d,<=]*)\]")
_CALLED = re.compile(
    r"(calls|to_apply|body|condition|true_computation|false_computation)=%?([\w.\-]+)"
)
_BRANCHES = re.compile(r"(?:branch_computations|called_computations|calls)=\{([^}]*)\}")
_FRAME_TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")
_ESCAPED = re.compile(r"\\(.)")
_NUMBERED = re.compile(r"(\d+) (.*)$")
_PAIR = re.compile(r"(\w+)=(\d+)")
_TRIPS = re.compile(r'"known_trip_count\\?":\{\\?"n\\?":\\?"(\d+)')
_COMMENT = re.compile(r"/\*.*?\*/")

Array = tuple[str, tuple[int, ...]]
"""Element type and dimensions."""


@dataclass(frozen=True)
class Frame:
    """A line of Python that led to an instruction."""

    file: str
    line: int
    function: str = ""


@dataclass(eq=False)
class Instruction:
    """One instruction. `operands` are names, `x#1` an element of the tuple `x`."""

    name: str
    opcode: str
    shape: str
    operand_text: str
    attributes: str
    computation: str
    is_root: bool = False

    @cached_property
    def operands(self) -> tuple[str, ...]:
        """Names of the operands, in order."""
        if self.opcode in ("constant", "parameter", "iota"):
            return ()
        if "%" in self.operand_text:
            return tuple(_OPERAND.findall(self.operand_text))
        plain = _COMMENT.sub("", self.operand_text)
        return tuple(part.split()[-1] for part in _split(plain) if part.strip())

    @cached_property
    def arrays(self) -> tuple[Array, ...]:
        """Element types and dimensions of the result's leaves."""
        return parse_shape(self.shape)

    @property
    def is_tuple(self) -> bool:
        """Whether the result is a tuple."""
        return self.shape.startswith("(")

    def attribute(self, name: str) -> str | None:
        """Give the text of an attribute such as `replica_groups`, or None."""
        return attribute(self.attributes, name)

    def integer(self, name: str) -> int | None:
        """Give a whole-number attribute such as `channel_id`, or None."""
        if f"{name}=" not in self.attributes:
            return None
        match = re.search(rf"\b{name}=(\d+)", self.attributes)
        return int(match.group(1)) if match else None

    def string(self, name: str) -> str:
        """Give a quoted item of the metadata or frontend attributes, or ""."""
        match = re.search(rf'\b{name}="((?:[^"\\]|\\.)*)"', self.attributes)
        return _ESCAPED.sub(r"\1", match.group(1)) if match else ""

    @property
    def op_name(self) -> str:
        """The name that JAX gave the operation, such as `jit(f)/dot_general`."""
        return self.string("op_name")

    @cached_property
    def called(self) -> tuple[tuple[str, str], ...]:
        """The computations that it calls, each with its role (`body`, `calls`, `branch`...)."""
        found = [(role, name) for role, name in _CALLED.findall(self.attributes)]
        for names in _BRANCHES.findall(self.attributes):
            found += [("branch", name.strip().lstrip("%")) for name in names.split(",")]
        return tuple(found)

    @property
    def trip_count(self) -> int | None:
        """How often a while loop runs, where the compiler knows."""
        match = _TRIPS.search(self.attributes)
        return int(match.group(1)) if match else None

    @property
    def text(self) -> str:
        """The instruction as HLO."""
        return f"%{self.name} = {self.shape} {self.opcode}({self.operand_text}){self.attributes}"


@dataclass
class Module:
    """An HLO module: its computations by name, in the order of the text."""

    name: str
    header: str
    computations: dict[str, list[Instruction]] = field(default_factory=dict)
    entry: str = ""
    tables: dict[str, dict[int, str]] = field(default_factory=dict)

    def instructions(self) -> Iterator[Instruction]:
        """Give every instruction of every computation."""
        for body in self.computations.values():
            yield from body

    @property
    def num_partitions(self) -> int:
        """The number of devices that the program was partitioned for."""
        match = re.search(r"\bnum_partitions=(\d+)", self.header)
        return int(match.group(1)) if match else 1

    def frames(self, instruction: Instruction) -> tuple[Frame, ...]:
        """Give the lines of Python that led to an instruction, innermost first."""
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
        return Frame(file.strip('"'), int(entry.get("line", 0)), function.strip('"'))


def parse(text: str) -> Module:
    """Read the text of an HLO module; what stands before it, as in a log, is passed over.

    Raises `ValueError` where the text is no HLO module or ends in the middle of one.
    """
    lines = iter(text.splitlines())
    header = next((line for line in lines if line.startswith("HloModule ")), "")
    if not header.split()[1:]:
        start = text.strip()[:60]
        raise ValueError(
            f"this is no HLO module: it starts with {start!r}, and no line with 'HloModule NAME'"
        )
    module = Module(header.split()[1].rstrip(","), header)
    _read(module, lines)
    if not module.entry:
        raise ValueError(f"the HLO of {module.name} is cut off: it has no ENTRY computation")
    return module


def _read(module: Module, lines: Iterator[str]) -> None:
    table: dict[int, str] | None = None
    current: list[Instruction] | None = None
    name = ""
    for line in lines:
        if current is not None:
            if line.startswith("}"):
                current = None
            elif instruction := _instruction(line, name):
                current.append(instruction)
        elif opened := _COMPUTATION.match(line):
            name, current = opened[2], []
            module.computations[name] = current
            module.entry = name if opened[1] else module.entry
        elif line in _FRAME_TABLES:
            table = module.tables.setdefault(line, {})
        elif table is not None and (entry := _NUMBERED.match(line)):
            table[int(entry[1])] = entry[2]
    if current is not None:
        raise ValueError(f"the HLO of {module.name} is cut off in the computation {name}")


def _instruction(line: str, computation: str) -> Instruction | None:
    match = _INSTRUCTION.match(line)
    if match is None:
        return None
    root, name, shape, opcode, rest = match.groups()
    operands, attributes = _close(rest)
    return Instruction(name, opcode, shape, operands, attributes, computation, bool(root))


def _close(rest: str) -> tuple[str, str]:
    """Split what follows an opening parenthesis at the one that closes it."""
    if plain := _PLAIN_OPERANDS.match(rest):
        return plain[1], rest[plain.end() :]
    depth, quoted = 1, False
    for index, char in enumerate(rest):
        if char == '"':
            quoted = not quoted
        elif not quoted:
            depth += (char in "({") - (char in ")}")
            if depth == 0:
                return rest[:index], rest[index + 1 :]
    return rest, ""


def _split(text: str) -> list[str]:
    """Split at the commas that stand in no bracket."""
    parts, depth, start = [], 0, 0
    for index, char in enumerate(text):
        depth += (char in "([{") - (char in ")]}")
        if char == "," and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    return [*parts, text[start:]]


def parse_shape(text: str) -> tuple[Array, ...]:
    """Read the leaves of a shape.

    >>> parse_shape("(s32[], /*index=1*/f32[64,1024]{1,0:T(8,128)})")
    (('s32', ()), ('f32', (64, 1024)))
    """
    return tuple(
        (dtype, tuple(int(size.lstrip("<=")) for size in sizes.split(",") if size))
        for dtype, sizes in _ARRAY.findall(text)
    )


def attribute(text: str, name: str) -> str | None:
    """Give the text of an attribute out of `, a=..., b={...}`, its brackets whole."""
    match = re.search(rf"(?:^|[\s,]){name}=", text)
    if match is None:
        return None
    depth, quoted = 0, False
    for index in range(match.end(), len(text)):
        char = text[index]
        if char == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        elif char == "," and depth == 0 and not text.startswith(" device_ids=", index + 1):
            return text[match.end() : index]
    return text[match.end() :].rstrip()
