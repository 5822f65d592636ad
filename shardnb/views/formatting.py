"""Numbers as people read them: sizes, seconds, counts, ranges of devices."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from shardnb.report.printable import clean as clean  # noqa: PLC0414 - a part of this vocabulary

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_WIDTH = 100  # characters of a line of text


def size(count: int) -> str:
    """Write a number of bytes in binary units.

    >>> size(0), size(65536), size(1 << 20), size(1114112)
    ('0 B', '64 KiB', '1.0 MiB', '1.1 MiB')
    """
    value, unit = float(count), 0
    while unit < len(_UNITS) - 1 and float(_digits(value, unit)) >= 1024:
        value, unit = value / 1024, unit + 1
    return f"{_digits(value, unit)} {_UNITS[unit]}"


def _digits(value: float, unit: int) -> str:
    whole = unit == 0 or value >= 99.95 or (value >= 10 and value == int(value))
    return f"{value:.0f}" if whole else f"{value:.1f}"


def seconds(value: float) -> str:
    """Write seconds with three digits, and none for less than the last of them.

    >>> seconds(0.1804), seconds(12.345), seconds(0.00123), seconds(4.56e-6)
    ('0.180 s', '12.3 s', '1.23 ms', '4.56 us')
    >>> seconds(2e-11), seconds(0.0)
    ('< 0.001 us', '0.000 us')
    """
    if 0 < value < 0.5e-9:
        return "< 0.001 us"
    if value >= 999.5:
        return f"{value:,.0f} s"
    if value >= 0.0995:
        return f"{_three(value)} s"
    if value >= 0.0009995:
        return f"{_three(value * 1e3)} ms"
    return f"{_three(value * 1e6)} us"


def _three(value: float) -> str:
    decimals = next((d for d, limit in ((3, 0.9995), (2, 9.995), (1, 99.95)) if value < limit), 0)
    return f"{value:.{decimals}f}"


def count(number: int, noun: str) -> str:
    """Write a number with its noun, in the plural where it is not one.

    >>> count(1, "collective"), count(5000, "collective"), count(2, "copy"), count(2, "all-to-all")
    ('1 collective', '5,000 collectives', '2 copies', '2 all-to-alls')
    """
    return f"{number:,} {noun if number == 1 else plural(noun)}"


def plural(noun: str) -> str:
    """Return the plural of a noun.

    >>> plural("copy"), plural("array"), plural("all-reduce"), plural("collective-broadcast")
    ('copies', 'arrays', 'all-reduces', 'collective-broadcasts')
    """
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "x", "ch", "sh")) else f"{noun}s"


def dims(shape: Iterable[int]) -> str:
    """Write a shape as people say it.

    >>> dims((64, 512)), dims((8,)), dims(())
    ('64 x 512', '8', 'scalar')
    """
    return " x ".join(map(str, shape)) or "scalar"


def numbers(values: Sequence[int], limit: int = 8) -> str:
    """Write numbers briefly: as they are, as a range, or their ends with the count.

    >>> numbers((0, 1)), numbers(range(8)), numbers((0, 2, 4, 6))
    ('0 1', '0-7', '0 2 4 6')
    >>> numbers(range(0, 2048, 4))
    '0 4 8 ... 2044 (512)'
    """
    if len(values) > 2 and all(b - a == 1 for a, b in pairwise(values)):
        return f"{values[0]}-{values[-1]}"
    if len(values) <= limit:
        return " ".join(map(str, values))
    return f"{' '.join(map(str, values[:3]))} ... {values[-1]} ({len(values)})"


def names(values: Sequence[str], limit: int = 2) -> str:
    """Write names, or the first of many with the number of the others.

    >>> names(["x", "y"]), names(["p0", "p1", "p2", "p3"])
    ('x, y', 'p0 and 3 others')
    """
    if len(values) <= limit:
        return ", ".join(values)
    return f"{values[0]} and {len(values) - 1:,} others"


def listed(values: Sequence[str]) -> str:
    """Write names as a sentence lists them.

    >>> listed(["x"]), listed(["x", "y"]), listed(["x", "y", "z"])
    ('x', 'x and y', 'x, y and z')
    """
    return " and ".join(filter(None, (", ".join(values[:-1]), *values[-1:])))


def clean_lines(text: str) -> str:
    """Make each line of a text safe to print."""
    return "\n".join(map(clean, text.splitlines()))


def columns(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> Iterator[str]:
    """Write rows in aligned columns; those in `right` are aligned to their right ends.

    A row of one cell is a sentence: no column is as wide as it.

    >>> list(columns([("a", "1"), ("bcd", "12"), ("a sentence",)], right=[1]))
    ['a      1', 'bcd   12', 'a sentence']
    """
    tables = [row for row in rows if len(row) > 1]
    widths = [max(map(len, column)) for column in zip(*tables, strict=True)]
    for row in rows:
        cells = [
            f"{cell:{'>' if i in right else '<'}{width}}"
            for i, (cell, width) in enumerate(zip(row, widths, strict=False))
        ]
        yield "   ".join(cells if len(row) > 1 else row).rstrip()


def wrapped(text: str, first: int, later: int) -> list[str]:
    """Break a text into lines; `first` and `later` are the indents of the first and the others."""
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=" " * first,
        subsequent_indent=" " * later,
        break_on_hyphens=False,
        replace_whitespace=False,
    )
