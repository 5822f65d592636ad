"""Element types by their HLO names, and their sizes."""

from __future__ import annotations

import math
import re

from shardnb.report.invalid_input import InvalidInput

NAMED = {
    "pred": 8,
    "token": 0,
    "opaque": 0,
    "key<fry>": 64,
    "key<rbg>": 128,
    "key<urbg>": 128,
}
_FIRST_NUMBER = re.compile(r"[0-9]{1,4}")


def bits(dtype: str) -> int:
    """Return the bits per element of an HLO element type, such as `f32`, `bf16`, `c64`, `s4`.

    >>> bits("f8e4m3fn"), bits("c64"), bits("pred")
    (8, 64, 8)
    """
    if dtype in NAMED:
        return NAMED[dtype]
    # A key type that JAX does not have names its bits: `key<mine:96>`.
    number = _FIRST_NUMBER.search(dtype.partition(":")[2] if dtype.startswith("key<") else dtype)
    if number is None:
        raise InvalidInput(f"expected an HLO element type, such as f32, bf16 or s8, got {dtype!r}")
    return int(number.group())


def size_in_bytes(dtype: str, shape: tuple[int, ...]) -> int:
    """Return the bytes of an array: its elements in their bits, rounded up to a byte.

    >>> size_in_bytes("f32", (64, 1024))
    262144
    """
    return -(-bits(dtype) * math.prod(shape) // 8)
