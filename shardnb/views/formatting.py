"""Numbers as people read them: sizes, seconds, counts, ranges of devices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_SIGNED = {True: "+", False: "-"}


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


def change(count: int) -> str:
    """Write a difference in bytes with its sign.

    >>> change(131072), change(-512), change(0)
    ('+128 KiB', '-512 B', '+0 B')
    """
    return _SIGNED[count >= 0] + size(abs(count))


def seconds(value: float) -> str:
    """Write seconds with three digits.

    >>> seconds(0.1804), seconds(12.345), seconds(0.00123), seconds(4.56e-6)
    ('0.180 s', '12.3 s', '1.23 ms', '4.56 us')
    """
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
    """Give the plural of a noun.

    >>> plural("copy"), plural("all-reduce"), plural("collective-broadcast")
    ('copies', 'all-reduces', 'collective-broadcasts')
    """
    if noun.endswith("y"):
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


def names(values: Sequence[str], limit: int = 3) -> str:
    """Write names, or the first of many with the number of the others.

    >>> names(["x", "y"]), names(["p0", "p1", "p2", "p3"])
    ('x, y', 'p0 and 3 alike')
    """
    if len(values) <= limit:
        return ", ".join(values)
    return f"{values[0]} and {len(values) - 1:,} alike"


def clean(text: str) -> str:
    r"""Make a text of unknown origin safe to print: control characters become visible.

    >>> clean("a\x1b[31mb\nc\u202e")
    'a\\x1b[31mb\\nc\\u202e'
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escape(char) for char in text.expandtabs(4))


def _escape(char: str) -> str:
    return " " if char == "\xa0" else char.encode("unicode_escape").decode()
