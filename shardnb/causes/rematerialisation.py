"""What the partitioner wrote to file descriptor 2 about full rematerialisation."""

from __future__ import annotations

import re
from dataclasses import dataclass

from shardnb.texts.graph import Key

_MARK = "Involuntary full rematerialization"
_SCRATCH = "%fake_parameter"
_NAME = re.compile(r'op_name="((?:[^"\\]|\\.)*)"')
_FRAME = re.compile(r"stack_frame_id=(\d+)")


@dataclass(frozen=True)
class Warnings:
    """The keys of the values that were rematerialised in full, and the rest of the text."""

    keys: frozenset[Key]
    left: str


def read_warnings(text: str) -> Warnings:
    """Read the compiler's warnings; those about a scratch computation are dropped."""
    keys, left = set(), []
    for line in text.splitlines(keepends=True):
        if _MARK not in line:
            left.append(line)
        elif _SCRATCH not in line and (name := _NAME.search(line)):
            frame = _FRAME.search(line)
            keys.add((name[1], int(frame[1]) if frame else 0))
    rest = "".join(left)
    return Warnings(frozenset(keys), rest if rest.strip() else "")
