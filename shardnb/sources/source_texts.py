"""The texts that a program was written in, and the lines of them that led to a collective."""

from __future__ import annotations

import linecache
import os
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import shardnb
from shardnb.report.model import Location, Source
from shardnb.texts.hlo import Frame

_LIBRARIES = tuple(
    os.path.realpath(path)
    for path in (*sysconfig.get_paths().values(), *(shardnb.__path__))
    if path
)
_OWN = tuple(os.path.realpath(path) + os.sep for path in shardnb.__path__)
# Lines of a file that a report keeps: the used ones of a training script may lie far apart.
_EXCERPT = 200


class Sources:
    """Finds the user's lines in stacks of frames, and keeps the texts that they stand in.

    `known` are texts that are there from the start, `files` says which of them a file name is.
    Other files of the user's join as they are met; those of libraries do not.
    """

    def __init__(
        self, known: Sequence[Source] = (), files: Mapping[str, int] | None = None
    ) -> None:
        """Start with the texts that are known."""
        self._known = list(known)
        self._files = dict(files or {})
        self._lines: dict[str, set[int]] = {}
        self._library: dict[str, bool] = {}
        self._own: dict[str, bool] = {}
        self._chains: dict[tuple[Frame, ...], tuple[Location, ...]] = {}

    def locate(self, frames: tuple[Frame, ...]) -> tuple[Location, ...]:
        """Give the user's own lines of a stack, innermost first."""
        if frames not in self._chains:
            self._chains[frames] = tuple(dict.fromkeys(self._locations(frames)))
        return self._chains[frames]

    def _locations(self, frames: tuple[Frame, ...]) -> Iterator[Location]:
        for frame in frames:
            if self.is_own(frame.file):
                return  # what called shardnb is no part of the program
            index = self._index(frame)
            if index is not None:
                yield Location(index, frame.line, frame.function)

    def _index(self, frame: Frame) -> int | None:
        index = self._files.get(frame.file)
        if index is not None and self._covers(self._known[index], frame.line):
            return index
        if self._is_library(frame.file):
            return None
        key = f"{frame.file}#rest" if index is not None else frame.file
        if key not in self._files:
            self._files[key] = len(self._known)
            self._known.append(Source(_short(frame.file)))
        self._lines.setdefault(key, set()).add(frame.line)
        return self._files[key]

    @staticmethod
    def _covers(source: Source, line: int) -> bool:
        count = source.text.count("\n") + 1
        return not source.text or source.first_line <= line < source.first_line + count

    def _is_library(self, file: str) -> bool:
        if file not in self._library:
            path = os.path.realpath(file)
            inside = any(path.startswith(root + os.sep) for root in _LIBRARIES)
            self._library[file] = inside or "-packages" + os.sep in path or not file
        return self._library[file]

    def is_own(self, file: str) -> bool:
        """Whether a file is one of shardnb's."""
        if file not in self._own:
            self._own[file] = os.path.realpath(file).startswith(_OWN)
        return self._own[file]

    def texts(self) -> tuple[Source, ...]:
        """Give every text, those of files that were met cut to the lines between the used ones."""
        return tuple(self._with_text(index, source) for index, source in enumerate(self._known))

    def _with_text(self, index: int, source: Source) -> Source:
        key = next((key for key, at in self._files.items() if at == index), "")
        lines = self._lines.get(key)
        if not lines or source.text:
            return source
        first, last = min(lines), min(max(lines), min(lines) + _EXCERPT)
        text = linecache.getlines(key.removesuffix("#rest"))[first - 1 : last]
        return Source(source.name, "".join(text), first)


def whole_file(file: str) -> str:
    """Give the text of a file or cell as Python knows it, "" where it is gone."""
    return "".join(linecache.getlines(file))


def _short(file: str) -> str:
    """Name a file so that no folder of one machine stands in a report; a cell by its number."""
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    cell = shell.compile.format_code_name(file) if shell is not None else None
    return " ".join(cell) if cell else Path(file).name
