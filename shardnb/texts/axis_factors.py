"""Mesh axes factored into prime parts, from which every sharding is made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

Piece = tuple[str, int, int]
"""A factor of an axis: its name, the product of the factors before it, its size."""


def pieces_of(axes: Iterable[str], shape: Mapping[str, int]) -> list[Piece]:
    """Factor axes, or parts of them, into primes, major first; `shape` has the axes' sizes.

    >>> pieces_of(("data", "model:(2)2"), {"data": 4, "model": 4})
    [('data', 1, 2), ('data', 2, 2), ('model', 2, 2)]
    """
    pieces: list[Piece] = []
    for axis in axes:
        name, colon, rest = axis.rpartition(":(")
        before, _, size = rest.partition(")")
        pieces += _primes(name, int(before), int(size)) if colon else _primes(axis, 1, shape[axis])
    return pieces


def _primes(name: str, before: int, size: int) -> list[Piece]:
    parts: list[Piece] = []
    divisor = 2
    while size > 1:
        if size % divisor:
            divisor += 1
            continue
        parts.append((name, before, divisor))
        before, size = before * divisor, size // divisor
    return parts


def merged(pieces: Iterable[Piece], shape: Mapping[str, int]) -> tuple[str, ...]:
    """Merge neighbouring factors of an axis; a complete axis is written by its name.

    >>> merged([("data", 1, 2), ("data", 2, 2), ("model", 2, 2)], {"data": 4, "model": 4})
    ('data', 'model:(2)2')
    """
    joined: list[Piece] = []
    for name, before, size in pieces:
        if joined and joined[-1][0] == name and joined[-1][1] * joined[-1][2] == before:
            joined[-1] = (name, joined[-1][1], joined[-1][2] * size)
        else:
            joined.append((name, before, size))
    return tuple(
        name if size == shape[name] else f"{name}:({before}){size}" for name, before, size in joined
    )
