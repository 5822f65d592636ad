"""An HLO instruction as data; its attributes are parsed only when they are needed."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache, wraps
from typing import NamedTuple

from shardnb.texts.opcodes import NO_OPERANDS

# `%x`, or in dumps of passes `x`; `%x#1` is an element of a tuple in the text of TPU's compiler.
_OPERAND = re.compile(r"%([\w.\-]+(?:#\d+)*)")
# `f32[64,1024]`, and `f32[<=64]` where a dimension is dynamic.
_ARRAY = re.compile(r"([a-z]\w*)\[((?:(?:<=)?\d+(?:,(?:<=)?\d+)*)?)\]")
# A reducer stands as `to_apply=%add`, branches as `branch_computations={%a, %b}`.
_CALLED = re.compile(
    r"(calls|to_apply|body|condition|true_computation|false_computation)=%?([\w.\-]+)"
)
_BRANCHES = re.compile(r"(?:branch_computations|called_computations|calls)=\{([^}]*)\}")
_ESCAPED = re.compile(r"\\(.)")
# The backend's config is JSON, and in some texts a string with JSON in it.
_TRIPS = re.compile(r'"known_trip_count\\?":\{\\?"n\\?":\\?"(\d+)')
# XLA numbers long tuples by comments: `/*index=5*/`.
_COMMENT = re.compile(r"/\*.*?\*/")
_NAME = re.compile(r'op_name="((?:[^"\\]|\\.)*)"')
_FRAME = re.compile(r"stack_frame_id=(\d+)")

_SHORT = 1000
"""Characters of a text that is remembered beyond its program."""

Array = tuple[str, tuple[int, ...]]
"""Element type and dimensions."""

Key = tuple[str, int]
"""The origin of an instruction: its op_name and its stack frame."""

NO_KEY: Key = ("", 0)


class HloValue(NamedTuple):
    """A value of an instruction: its result, or an element of a tuple.

    `element` is the number of the element, or several numbers for nested tuples, outermost first;
    empty for the full result.
    """

    name: str
    element: tuple[int, ...] = ()

    def at(self, *element: int) -> HloValue:
        """Return an element of this value, a tuple."""
        return HloValue(self.name, self.element + element)


@dataclass(eq=False)
class Instruction:
    """One instruction, with the texts of its shape, its operands and its attributes."""

    name: str
    opcode: str
    shape: str
    operand_text: str
    attributes: str
    computation: str
    is_root: bool = False

    @cached_property
    def value(self) -> HloValue:
        """The full result."""
        return HloValue(self.name)

    @cached_property
    def results(self) -> tuple[HloValue, ...]:
        """The result, or its elements if it is a tuple."""
        if not self.is_tuple:
            return (self.value,)
        return tuple(self.value.at(index) for index in range(len(self.arrays)))

    @cached_property
    def operands(self) -> tuple[HloValue, ...]:
        """The operands, in order, as the text names them."""
        if self.opcode in NO_OPERANDS:
            return ()
        if "%" in self.operand_text:
            words = _OPERAND.findall(self.operand_text)
        else:
            plain = _COMMENT.sub("", self.operand_text)
            words = [part.split()[-1] for part in split(plain) if part.strip()]
        if "#" in self.operand_text:
            return tuple(map(_value, words))
        return tuple([HloValue(word) for word in words])

    @cached_property
    def arrays(self) -> tuple[Array, ...]:
        """Element types and dimensions of the result's leaves."""
        return parse_shape(self.shape)

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Dimensions of the result's leaves."""
        return _dimensions(self.shape)

    @property
    def is_tuple(self) -> bool:
        """Whether the result is a tuple."""
        return self.shape.startswith("(")

    @property
    def number(self) -> int:
        """The number of a parameter."""
        return int(self.operand_text)

    def attribute(self, name: str) -> str | None:
        """Return the text of an attribute such as `replica_groups`, or None."""
        return attribute(self.attributes, name)

    def integer(self, name: str) -> int | None:
        """Return an integer attribute such as `index`, or None."""
        if f"{name}=" not in self.attributes:
            return None
        match = re.search(rf"\b{name}=(\d+)", self.attributes)
        return int(match.group(1)) if match else None

    def string(self, name: str) -> str:
        """Return a quoted item of the metadata or frontend attributes, or ""."""
        if f'{name}="' not in self.attributes:
            return ""
        match = re.search(rf'\b{name}="((?:[^"\\]|\\.)*)"', self.attributes)
        return _ESCAPED.sub(r"\1", match.group(1)) if match else ""

    @cached_property
    def channel(self) -> int | None:
        """The channel of a collective, None if it has none."""
        return self.integer("channel_id")

    @cached_property
    def op_name(self) -> str:
        """The name that JAX gave the operation, such as `jit(f)/dot_general`."""
        return self.string("op_name")

    @cached_property
    def key(self) -> Key:
        """Its op_name and stack frame; `NO_KEY` without a name."""
        start = self.attributes.rfind("metadata={")
        return key_of(self.attributes[start:]) if start >= 0 else NO_KEY

    @cached_property
    def called(self) -> tuple[tuple[str, str], ...]:
        """The computations that it calls, each with its role (`body`, `calls`, `branch`...)."""
        called = _CALLED.findall(self.attributes)
        for names in _BRANCHES.findall(self.attributes):
            called += [("branch", name.strip().lstrip("%")) for name in names.split(",")]
        return tuple(called)

    def calls(self, role: str) -> str:
        """Return the computation that it calls in a role, "" if there is none."""
        return next((name for known, name in self.called if known == role), "")

    @property
    def trip_count(self) -> int | None:
        """How often a while loop runs, if the compiler knows."""
        match = _TRIPS.search(self.attributes)
        return int(match.group(1)) if match else None

    @property
    def text(self) -> str:
        """The instruction as HLO."""
        return f"%{self.name} = {self.shape} {self.opcode}({self.operand_text}){self.attributes}"


def _value(word: str) -> HloValue:
    """Read `x#1`, the element 1 of the tuple `x`."""
    name, *rest = word.split("#")
    return HloValue(name, tuple(int(part) for part in rest if part.isdigit()))


def _remembered[T](read: Callable[[str], T]) -> Callable[[str], T]:
    """Remember what is read of short texts, which programs repeat; long ones would fill memory."""
    # As many as a model of a hundred layers has of different ones, each some hundred bytes.
    known = lru_cache(1 << 14)(read)
    return wraps(read)(lambda text: known(text) if len(text) <= _SHORT else read(text))


@_remembered
def key_of(metadata: str) -> Key:
    """Read a key from metadata; unrolled layers repeat it."""
    name = _NAME.search(metadata)
    if name is None or not name[1]:
        return NO_KEY
    frame = _FRAME.search(metadata)
    return name[1], int(frame[1]) if frame else 0


def split(text: str) -> list[str]:
    """Split at the commas outside brackets."""
    parts, depth, start = [], 0, 0
    for index, char in enumerate(text):
        depth += (char in "([{") - (char in ")]}")
        if char == "," and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    return [*parts, text[start:]]


@_remembered
def parse_shape(text: str) -> tuple[Array, ...]:
    """Read the leaves of a shape; most instructions share theirs with others.

    >>> parse_shape("(s32[], /*index=1*/f32[64,1024]{1,0:T(8,128)})")
    (('s32', ()), ('f32', (64, 1024)))
    """
    return tuple(
        (dtype, tuple(int(size.lstrip("<=")) for size in sizes.split(",") if size))
        for dtype, sizes in _ARRAY.findall(text)
    )


@_remembered
def _dimensions(text: str) -> tuple[tuple[int, ...], ...]:
    return tuple(shape for _, shape in parse_shape(text))


def attribute(text: str, name: str) -> str | None:
    """Return the text of an attribute in `, a=..., b={...}`, with balanced brackets."""
    if f"{name}=" not in text:
        return None
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
