"""What a test keeps of a report, so that a later program can be compared with it.

Collectives are known by what the user wrote and by what they are: the text of their line, the
operation, the kind and the axes. Numbers of lines, names in HLO and the order of instructions
differ between versions of JAX and after edits elsewhere, and take no part.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import msgspec

from shardnb.report.invalid_input import InvalidInput
from shardnb.terms.collectives import Kind

Key = tuple[str, str, str, tuple[str, ...]]
_VERSION = 1
_MOST = 1 << 62


@dataclass(frozen=True)
class Entry:
    """Collectives of one line, operation, kind and axes.

    `number` counts them, and `wire_bytes` is what one device sends for them per run, None where a
    loop's trip count is unknown. `place` and `why` are for a reader and not compared.
    """

    line: str
    op: str
    kind: Kind
    axes: tuple[str, ...]
    number: int = 1
    wire_bytes: int | None = 0
    place: str = ""
    why: str = ""

    @property
    def key(self) -> Key:
        """What it is known by."""
        return self.line, self.op, self.kind, self.axes


@dataclass(frozen=True)
class Golden:
    """The mesh of a program, such as `data=4,model=2`, and its collectives."""

    mesh: str
    entries: tuple[Entry, ...] = ()
    version: int = field(default=_VERSION, kw_only=True)

    def to_json(self) -> str:
        """Write it so that a change of one collective is a change of one line."""
        head = {"version": self.version, "mesh": self.mesh}
        lines = [msgspec.json.encode(_plain(entry)).decode() for entry in self.entries]
        body = ",\n    ".join(lines)
        shown = ", ".join(f'"{name}": {_json(value)}' for name, value in head.items())
        return (
            f'{{\n  {shown},\n  "entries": [\n    {body}\n  ]\n}}\n'
            if lines
            else (f'{{\n  {shown},\n  "entries": []\n}}\n')
        )

    @staticmethod
    def from_json(text: str) -> Golden:
        """Read it; raises `InvalidInput` for what is not one.

        >>> golden = Golden("data=8", (Entry("x.sum()", "reduce_sum", "all-reduce", ("data",)),))
        >>> Golden.from_json(golden.to_json()) == golden
        True
        """
        try:
            golden = msgspec.convert(msgspec.json.decode(text), Golden)
        except (msgspec.DecodeError, msgspec.ValidationError, UnicodeError) as error:
            raise InvalidInput(f"this is not a golden report: {error}") from error
        if golden.version > _VERSION:
            raise InvalidInput(
                f"the golden report has version {golden.version}, and this shardnb reads up to "
                f"{_VERSION}: update shardnb to read it"
            )
        for entry in golden.entries:
            if not 0 <= entry.number <= _MOST or not 0 <= (entry.wire_bytes or 0) <= _MOST:
                raise InvalidInput("this is not a golden report: expected counts that can be")
        return golden


@dataclass(frozen=True)
class EntryChange:
    """What changed at one key: how many more collectives, and what one device sends for them.

    `entry` is the later one where there is one. Bytes are None where they are unknown.
    """

    entry: Entry
    number: int
    wire_bytes: tuple[int | None, int | None]


def changes(before: Golden, after: Golden) -> tuple[EntryChange, ...]:
    """Return what changed from one to the other: those that went, then those that came or differ.

    >>> entry = Entry("y = x.sum()", "reduce_sum", "all-reduce", ("data",), 1, 6)
    >>> [(c.number, c.wire_bytes) for c in changes(Golden("data=4", (entry,)), Golden("data=4"))]
    [(-1, (6, 0))]
    """
    old = {entry.key: entry for entry in before.entries}
    new = {entry.key: entry for entry in after.entries}
    gone = [
        EntryChange(entry, -entry.number, (entry.wire_bytes, 0))
        for key, entry in old.items()
        if key not in new
    ]
    came = []
    for key, entry in new.items():
        was = old.get(key)
        number = entry.number - (was.number if was else 0)
        sent = (was.wire_bytes if was else 0), entry.wire_bytes
        if number or sent[0] != sent[1]:
            came.append(EntryChange(entry, number, sent))
    return (*gone, *came)


def _plain(entry: Entry) -> dict[str, Any]:
    data = asdict(entry)
    return {name: data[name] for name in data if data[name] or name not in ("place", "why")}


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
