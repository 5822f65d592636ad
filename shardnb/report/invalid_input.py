"""The one error for what comes from elsewhere and cannot be read: HLO, JSON, dumps, notebooks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

MOST_DEVICES = 1 << 18
"""More than any system has: a text of a few bytes must not take all memory.

Groups of so many devices, written out, in JSON and in pictures, stay below 1 GiB
(test_the_largest_mesh_stays_small).
"""


class InvalidInput(ValueError):
    """Text or data that is malformed, or larger than anything that a program can be.

    The message says where: the file, the line or the thing; what was expected, and what is there.
    `sn.explain_hlo` raises it, as do `Report.from_json` and whatever reads a mesh or a target. The
    command line prints it and exits with status 2.

    >>> from shardnb.report import InvalidInput, Report
    >>> try:
    ...     Report.from_json("[1, 2]")
    ... except InvalidInput as error:
    ...     print(error)
    this JSON is not a report: it has no version number
    """


@contextmanager
def place(name: str) -> Iterator[None]:
    """Say where it is that the block meets input that is not valid."""
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput(f"{name}: {error}") from error


def check_devices(count: int) -> None:
    """Raise `InvalidInput` for a number of devices that no system has."""
    if not 1 <= count <= MOST_DEVICES:
        raise InvalidInput(f"expected 1 to {MOST_DEVICES:,} devices, got {shown_number(count)}")


def shown_number(number: int) -> str:
    """Give a number as text, one of hundreds of digits by its bits.

    >>> shown_number(10**9), shown_number(10**30)
    ('1,000,000,000', 'one of 100 bits')
    """
    return f"{number:,}" if abs(number) < 1 << 64 else f"one of {number.bit_length()} bits"
