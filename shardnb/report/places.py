"""Locations in a text, and specs in mesh axes."""

from __future__ import annotations

from dataclasses import dataclass

Spec = tuple[tuple[str, ...], ...]
"""The mesh axes that shard each dimension, major first; `()` if it is not sharded."""


@dataclass(frozen=True)
class Location:
    """A line of one of the report's sources (`Report.sources[source]`), counted from 1."""

    source: int
    line: int
    function: str = ""


@dataclass(frozen=True)
class Source:
    """A text that the program was written in: a cell or a Python file.

    `text` is empty for a file of a library. `first_line` is the number of the text's first line.
    """

    name: str
    text: str = ""
    first_line: int = 1
    cell_id: str | None = None

    def line(self, number: int) -> str:
        """Return the text of a line, or "" if the source does not have it."""
        lines = self.text.splitlines()
        index = number - self.first_line
        return lines[index] if 0 <= index < len(lines) else ""
