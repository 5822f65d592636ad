"""Colours: of blocks, each with a border or a hatch, and of labels that say cost and cause."""

from __future__ import annotations

import colorsys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

TEXT = "#1b1b1b"
EMPTY = "#c8c8c8"
STRIPE = "rgba(0,0,0,0.22)"

HUES = ("#8ecae6", "#ffc75f", "#a8d98a", "#f2a0a0", "#cdb4f0", "#f7b6d9", "#b8b8a0", "#7fd6c2")
# A grey from 0 (black) to 255 (white), and how much of it is mixed into a hue.
_SHADES = ((0, 0), (255, 0.5), (60, 0.25), (255, 0.75))
_BORDERS = ("solid", "dashed", "dotted", "double")
_HATCHES = ("", "..", "++", "oo")  # diagonal stripes mean a pending sum

Tone = Literal["neutral", "amber", "red"]
"""What a colour says of a collective or a finding: its cost and its cause, nothing else."""

TONES: Mapping[Tone, tuple[str, str]] = {
    "neutral": ("#dfe3e8", "#22262b"),
    "amber": ("#fbd38d", "#4a2f00"),
    "red": ("#f5a3a0", "#5c0b08"),
}
"""The ground and the text of a label; both read on light and dark pages."""


@dataclass(frozen=True)
class Tint:
    """A ground colour, the border that goes with it in HTML, and the hatch in a figure."""

    ground: str
    border: str = "solid"
    hatch: str = ""


def tint(rank: int, total: int, down: float = 0, across: float = 0) -> Tint:
    """Return the tint of one of `total` things that are drawn.

    Up to 32 have a hue, a shade and a border of their own; more shade by their place in the
    drawing, from 0 to 1 down (the hue) and across (how light), so that the pattern shows.

    >>> tint(0, 4).ground != tint(1, 4).ground, tint(0, 16).border, tint(8, 16).border
    (True, 'solid', 'dashed')
    """
    if total <= len(HUES) * len(_BORDERS):
        style, hue = divmod(rank, len(HUES))
        grey, part = _SHADES[style]
        channels = [int(HUES[hue][i : i + 2], 16) for i in (1, 3, 5)]
        mixed = _hex(channel + (grey - channel) * part for channel in channels)
        return Tint(mixed, _BORDERS[style], _HATCHES[style])
    shade = colorsys.hls_to_rgb(0.85 * down, 0.66 + 0.24 * across, 0.6)
    return Tint(_hex(255 * channel for channel in shade))


def _hex(channels: Iterable[float]) -> str:
    return "#" + "".join(f"{round(channel):02x}" for channel in channels)


def letter(number: int) -> str:
    """Name a group: A to Z, then AA, AB and so on.

    >>> letter(0), letter(25), letter(26), letter(701), letter(702)
    ('A', 'Z', 'AA', 'ZZ', 'AAA')
    """
    name = ""
    number += 1
    while number:
        number, rest = divmod(number - 1, 26)
        name = chr(65 + rest) + name
    return name
