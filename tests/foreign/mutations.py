"""Texts and JSON as they come from elsewhere: cut, repeated, swapped, and with numbers too large.

Each mutation is made with a `random.Random`, which hypothesis gives.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

NUMBERS = ("0", "1", "-1", "3", "7", "64", "1000003", "2147483648", "9223372036854775808")
HUGE = (str(10**30), "9" * 400, "9" * 5000)
HOSTILE = (
    "<script>window.harmed=1</script>",
    '"><img src=x onerror=window.harmed=1>',
    "javascript:window.harmed=1",
    "\x1b[31mred\x1b[0m",
    "\u202egnp.exe",
    "\x00",
    "\ud800",
    "x" * 3000,
    "/etc/passwd",
)
PIECES = (
    *(
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        '"',
        "'",
        "\\",
        ",",
        "=",
        "<=",
        "->",
        "%",
        "#1",
        "\n",
        " = ",
        "/*",
    ),
    *("ROOT ", "ENTRY ", "HloModule ", "T(1,0)", "@", ":", "?", "x", "->", "!", "//", ";"),
    *(
        "replica_groups={}",
        "replica_groups=[1000000,1000]<=[1000000000]",
        "devices=[99999999,1]<=[99999999]",
    ),
    "replica_groups=mesh['a'=1000000,'b'=1000000] {'a'}",
    'metadata={source_file="/dev/zero" source_line=1}',
    'backend_config={"known_trip_count":{"n":"99999999999999999999"}}',
)
_NUMBER = re.compile(r"\d+")
_NAME = re.compile(r"%[\w.\-]+")
_QUOTED = re.compile(r'"[^"\n]*"')
_DEEP = (50, 2000, 100_000)


def mutated(text: str, random: Random) -> str:
    """Change a text at one to four places."""
    for _ in range(random.randint(1, 4)):
        text = random.choice(_EDITS)(text, random)
    return text


def _span(text: str, random: Random) -> tuple[int, int]:
    start = random.randrange(len(text) + 1)
    return start, min(len(text), start + random.choice((1, 1, 2, 8, 60, 2000)))


def _cut(text: str, random: Random) -> str:
    start, end = _span(text, random)
    return text[:start] + text[end:]


def _cut_off(text: str, random: Random) -> str:
    return text[: random.randrange(len(text) + 1)]


def _repeated(text: str, random: Random) -> str:
    start, end = _span(text, random)
    return text[:end] + text[start:end] * random.choice((1, 1, 3, 50)) + text[end:]


def _moved(text: str, random: Random) -> str:
    start, end = _span(text, random)
    rest = text[:start] + text[end:]
    at = random.randrange(len(rest) + 1)
    return rest[:at] + text[start:end] + rest[at:]


def _inserted(text: str, random: Random) -> str:
    at = random.randrange(len(text) + 1)
    return text[:at] + random.choice((*PIECES, *HOSTILE, *NUMBERS)) + text[at:]


def _nested(text: str, random: Random) -> str:
    at = random.randrange(len(text) + 1)
    return text[:at] + random.choice("([{<\"'") * random.choice(_DEEP) + text[at:]


def _lines(text: str, random: Random) -> str:
    lines = text.split("\n")
    one, other = random.randrange(len(lines)), random.randrange(len(lines))
    match random.randrange(3):
        case 0:
            lines[one], lines[other] = lines[other], lines[one]
        case 1:
            del lines[one]
        case _:
            lines.insert(other, lines[one])
    return "\n".join(lines)


def _exchanged(pattern: re.Pattern[str], others: Sequence[str]) -> Callable[[str, Random], str]:
    """Put another text, or one that the pattern matches elsewhere, where it matches."""

    def edit(text: str, random: Random) -> str:
        matches = list(pattern.finditer(text))
        if not matches:
            return text
        match = random.choice(matches)
        elsewhere = random.choice(matches)[0]
        new = random.choice((*others, elsewhere, elsewhere)) if others else elsewhere
        return text[: match.start()] + new + text[match.end() :]

    return edit


_EDITS: tuple[Callable[[str, Random], str], ...] = (
    _cut,
    _cut_off,
    _repeated,
    _moved,
    _inserted,
    _nested,
    _lines,
    _lines,
    *[_exchanged(_NUMBER, (*NUMBERS, *HUGE))] * 3,
    *[_exchanged(_NAME, ())] * 2,
    _exchanged(_QUOTED, tuple(f'"{text}"' for text in HOSTILE)),
)


VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 3, 7, 64, 2**31, 2**63 - 1, 2**63, 2**64, 10**30),
    *(0.0, -1.5, 1e308, 1e-308, "", "x", "data", "data:(2)2", "data:(0)0", "data:(", "f32", "key<"),
    *([], {}, [[]], [0], [-1], ["data"], [["data"]], [["data", "data"]], {"a": 1}, {"": []}),
    *HOSTILE,
)


def mutated_data(data: Any, random: Random) -> Any:
    """Change plain data at one to four places."""
    data = copy.deepcopy(data)
    for _ in range(random.randint(1, 4)):
        _change(data, random)
    return data


def _change(data: Any, random: Random) -> None:
    """Change something in a list or a dict, at any depth."""
    holders = list(_holders(data))
    holder = random.choice(holders)
    other = random.choice(holders)
    key = random.choice(list(holder)) if isinstance(holder, dict) else random.randrange(len(holder))
    match random.randrange(5):
        case 0:
            del holder[key]
        case 1:
            taken = random.choice(list(other.values()) if isinstance(other, dict) else other)
            holder[key] = copy.deepcopy(taken)
        case 2 if isinstance(holder, dict):
            holder[random.choice((*HOSTILE, "new", "version", "texts"))] = holder[key]
        case 2:
            holder += copy.deepcopy(holder[: random.choice((1, 3, 1000))])
        case _:
            holder[key] = copy.deepcopy(random.choice(VALUES))


def _holders(data: Any) -> list[Any]:
    """Return the lists and dicts in data that are not empty."""
    found, left = [], [data]
    while left:
        one = left.pop()
        if isinstance(one, dict | list) and one:
            found.append(one)
            left += one.values() if isinstance(one, dict) else one
    return found or [[None]]
