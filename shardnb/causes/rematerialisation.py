"""What the partitioner wrote to file descriptor 2 about full rematerialisation."""

from __future__ import annotations

from dataclasses import dataclass

from shardnb.texts.instruction import Key, key_of

_MARK = "Involuntary full rematerialization"
_SCRATCH = "%fake_parameter"


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
        elif _SCRATCH not in line and (key := key_of(line))[0]:
            keys.add(key)
    rest = "".join(left)
    return Warnings(frozenset(keys), rest if rest.strip() else "")
