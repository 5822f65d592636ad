"""Sizes of memory as a person writes them."""

from __future__ import annotations

import re

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
# `16GiB`, `1.5 MB`, `4096`.
_SIZE = re.compile(r"\s*([\d.]+)\s*([kmgt]?)(i?)b?\s*", re.IGNORECASE)


def read_size(text: int | str) -> int:
    """Read a number of bytes; raises `ValueError` with the form.

    >>> read_size("16GiB"), read_size("1.5 MB"), read_size(4096)
    (17179869184, 1500000, 4096)
    """
    if isinstance(text, int):
        return text
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a size; a size is written as 16GiB, 900MB or in bytes")
    number, unit, binary = match.groups()
    units = _BINARY if binary else _UNITS
    return int(float(number) * units[unit.lower()]) if unit else int(float(number))
