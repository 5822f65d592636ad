"""The wire format of protocol buffers: the fields of a message, without a description of it.

A trace has hundreds of megabytes of events, of which `jax.profiler.ProfileData` reads those that
are wanted; this reader finds them, and the programs, by skipping the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from shardnb.report.invalid_input import InvalidInput

_VARINT, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5
_FIXED = {_EIGHT_BYTES: 8, _FOUR_BYTES: 4}
_LONGEST_VARINT = 10
CUT_OFF = "it is cut off, or not the profiler's: expected the protocol buffer of an XSpace"


class Field(NamedTuple):
    """A field of a message: its number, its value, and all its bytes, tag included.

    A message, a text or bytes are a view of the file; an integer is unsigned.
    """

    number: int
    value: memoryview | int
    raw: memoryview

    @property
    def message(self) -> memoryview:
        """The value as bytes; raises `InvalidInput` where it is a number."""
        if isinstance(self.value, int):
            raise InvalidInput(CUT_OFF)
        return self.value

    @property
    def text(self) -> str:
        """The value as text."""
        return bytes(self.message).decode("utf-8", "replace")

    @property
    def integer(self) -> int:
        """The value as a signed number of 64 bits; raises `InvalidInput` where it is bytes."""
        if not isinstance(self.value, int):
            raise InvalidInput(CUT_OFF)
        return self.value - (1 << 64) if self.value >> 63 else self.value


def fields(message: memoryview) -> Iterator[Field]:
    """Yield the fields of a message; raises `InvalidInput` where the bytes are not one."""
    at, end = 0, len(message)
    while at < end:
        start = at
        tag, at = _varint(message, at)
        number, kind = tag >> 3, tag & 7
        value: memoryview | int
        if kind == _VARINT:
            value, at = _varint(message, at)
        elif kind == _BYTES or kind in _FIXED:
            size, at = _varint(message, at) if kind == _BYTES else (_FIXED[kind], at)
            value = message[at : at + size]
            at += size
        else:
            raise InvalidInput(CUT_OFF)
        if at > end or not number:
            raise InvalidInput(CUT_OFF)
        yield Field(number, value, message[start:at])


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    """Read a number of variable length; returns it and where it ends."""
    number = shift = 0
    for place in range(at, min(at + _LONGEST_VARINT, len(message))):
        byte = message[place]
        number |= (byte & 127) << shift
        if byte < 128:
            return number, place + 1
        shift += 7
    raise InvalidInput(CUT_OFF)


def after_fields(message: memoryview, at: int, size: int) -> int:
    """Return where the field ends with which fields of messages from `at` on reach a size.

    There are millions of them, so that this does nothing but skip. Raises `InvalidInput`.
    """
    end = len(message)
    until = min(at + size, end)
    while at < until:
        if message[at] & 7 != _BYTES or at + 1 >= end:
            raise InvalidInput(CUT_OFF)
        length = message[at + 1]
        if length < 128:
            at += 2 + length
        else:
            length, at = _varint(message, at + 1)
            at += length
    if at > end:
        raise InvalidInput(CUT_OFF)
    return at


def varints(message: memoryview) -> list[int]:
    """Return the numbers of a packed field."""
    found, at = list[int](), 0
    while at < len(message):
        number, at = _varint(message, at)
        found.append(number)
    return found


def tagged(number: int, message: bytes) -> bytes:
    """Return a message as a field of another one."""
    return _written(number << 3 | _BYTES) + _written(len(message)) + message


def _written(number: int) -> bytes:
    written = bytearray()
    while number >= 128:
        written.append(number & 127 | 128)
        number >>= 7
    return bytes((*written, number))
