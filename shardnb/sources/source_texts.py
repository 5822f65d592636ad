"""The texts that a program was written in, and the lines of them that led to a collective."""

from __future__ import annotations

import itertools
import linecache
import os
import re
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import shardnb
from shardnb.jax_compat.frames import is_jaxs_own
from shardnb.jax_compat.lowering import lower
from shardnb.report.model import Location, Source
from shardnb.sources.quotable import Quotable, any_file
from shardnb.texts.hlo import Frame

_LIBRARIES = tuple(
    os.path.realpath(path)
    for path in (*sysconfig.get_paths().values(), *(shardnb.__path__))
    if path
)
_OWN = tuple(os.path.realpath(path) + os.sep for path in shardnb.__path__)
# Torch code is traced from within its own calls: these frames are between JAX and the user's line.
_TORCH = tuple(f"{path}torch{os.sep}" for path in _OWN)
# Whose a line is, those first that say most: a framework's line is the same for all layers of a
# kind, so the library that uses it says more. What runs every program says nothing.
_USERS, _LIBRARYS, _FRAMEWORKS, _HIDDEN = range(4)
_OF_MODELS = re.compile(
    r"-packages[/\\](flax|haiku|equinox|penzai|optax|chex|einops|jaxtyping|torch)\b"
)
_MACHINERY = re.compile(
    r"-packages[/\\](jax|jaxlib|IPython|ipykernel|traitlets|tornado|absl|pytest|_pytest|pluggy)\b"
    # Of torch only the layers say something: a call of torch's, and torchax's of JAX, none.
    r"|-packages[/\\](torchax|torch_xla|torch(?![/\\]nn[/\\]modules[/\\](?!module\.py)))\b"
    r"|lib[/\\]python3\.\d+[/\\](?!(site|dist)-packages)"
)
_OF_TORCH = re.compile(r"-packages[/\\](torch|torchax)[/\\]")
# Lines of a file that a report keeps: the used ones of a training script may be far apart.
_EXCERPT = 200


class Sources:
    """Finds the user's lines in stacks of frames, and keeps the texts that they stand in.

    `known` are texts that are there from the start, `files` says which of them a file name is.
    Other files join as they are met: those of libraries only where a stack has no line of the
    user's, as in a training program that is installed as a library itself.
    """

    def __init__(
        self,
        known: Sequence[Source] = (),
        files: Mapping[str, int] | None = None,
        may_quote: Quotable = any_file,
    ) -> None:
        """Start with the texts that are known; `may_quote` says of which files lines are shown."""
        self._may_quote = may_quote
        self._known = list(known)
        self._files = dict(files or {})
        self._lines: dict[str, set[int]] = {}
        self._ranks: dict[str, int] = {}
        self._own: dict[str, bool] = {}
        self._chains: dict[tuple[tuple[Frame, ...], int], tuple[Location, ...]] = {}

    def locate(self, frames: tuple[Frame, ...]) -> tuple[Location, ...]:
        """Return the user's own lines of a stack, innermost first."""
        return self._located(frames, _USERS)

    def locate_anywhere(self, frames: tuple[Frame, ...]) -> tuple[Location, ...]:
        """Return the user's own lines of a stack, else those of the libraries that it is in."""
        return (
            self._located(frames, _USERS)
            or self._located(frames, _LIBRARYS)
            or self._located(frames, _FRAMEWORKS)
        )

    def _located(self, frames: tuple[Frame, ...], rank: int) -> tuple[Location, ...]:
        key = frames, rank
        if key not in self._chains:
            shown = [frame for frame in self.of_program(frames) if self._rank(frame) == rank]
            places = (Location(self._index(f), f.line, f.function) for f in shown)
            self._chains[key] = tuple(dict.fromkeys(places))
        return self._chains[key]

    def of_program(self, frames: tuple[Frame, ...]) -> tuple[Frame, ...]:
        """Return the lines of the program in a stack, innermost first, without its callers.

        JAX keeps the function that takes the elements of a loop, and with it the stack of the loop
        or of the program that first needed it. It puts this stack before that of a later loop
        (`test_a_loop_is_not_at_the_line_of_an_earlier_one_like_it`).
        """
        below = itertools.takewhile(lambda frame: not self._lowers(frame), frames)
        ours = itertools.groupby(below, lambda frame: self.is_own(frame.file))
        stacks = [tuple(stack) for is_own, stack in ours if not is_own]
        for stack, outer in itertools.pairwise(stacks):
            if stack[-len(outer) :] == outer:
                return stack
        return stacks[0] if stacks else ()

    def _lowers(self, frame: Frame) -> bool:
        return frame.function == lower.__qualname__ and self.is_own(frame.file)

    def _index(self, frame: Frame) -> int:
        key = frame.file
        if self._is_given(frame):
            return self._files[key]
        if key in self._files and key not in self._lines:
            key = f"{key}#rest"
        if key not in self._files:
            self._files[key] = len(self._known)
            self._known.append(Source(_short(frame.file)))
        self._lines.setdefault(key, set()).add(frame.line)
        return self._files[key]

    def _is_given(self, frame: Frame) -> bool:
        """Whether a line is in one of the texts that were there from the start."""
        if frame.file not in self._files or frame.file in self._lines:
            return False
        source = self._known[self._files[frame.file]]
        count = source.text.count("\n") + 1
        return not source.text or source.first_line <= frame.line < source.first_line + count

    def _rank(self, frame: Frame) -> int:
        """Say whose a line is."""
        if self._is_given(frame):
            return _USERS
        if frame.file not in self._ranks:
            path = _real(frame.file)
            inside = any(path.startswith(root + os.sep) for root in _LIBRARIES)
            hidden = is_jaxs_own(frame.file) or path.startswith(_TORCH) or _MACHINERY.search(path)
            if not frame.file or hidden:
                rank = _HIDDEN
            elif not (inside or "-packages" + os.sep in path):
                rank = _USERS
            else:
                rank = _FRAMEWORKS if _OF_MODELS.search(path) else _LIBRARYS
            self._ranks[frame.file] = rank
        return self._ranks[frame.file]

    def is_own(self, file: str) -> bool:
        """Whether a file is one of shardnb's."""
        if file not in self._own:
            path = _real(file)
            self._own[file] = path.startswith(_OWN) and not path.startswith(_TORCH)
        return self._own[file]

    def whole_file(self, file: str) -> str:
        """Return the text of a file or cell as Python knows it, "" where it may not be read."""
        return "".join(linecache.getlines(file)) if self._may_quote(file) else ""

    def texts(self) -> tuple[Source, ...]:
        """Give every text, those of files that were met cut to the lines between the used ones."""
        return tuple(self._with_text(index, source) for index, source in enumerate(self._known))

    def _with_text(self, index: int, source: Source) -> Source:
        key = next((key for key, at in self._files.items() if at == index), "")
        lines = self._lines.get(key)
        if not lines or source.text:
            return source
        file = key.removesuffix("#rest")
        if not self._may_quote(file):
            return source
        first, last = min(lines), min(max(lines), min(lines) + _EXCERPT)
        text = linecache.getlines(file)[first - 1 : last]
        return Source(source.name, "".join(text), first)


def is_of_torch(file: str) -> bool:
    """Whether a file is between torch code and JAX: one of torch, of torchax or of shardnb."""
    return bool(_OF_TORCH.search(file)) or _real(file).startswith(_TORCH)


def _real(file: str) -> str:
    """Return a file's path without links; a name that no file can have as it is."""
    return file if "\0" in file else os.path.realpath(file)


def _short(file: str) -> str:
    """Name a file so that no folder of one machine stands in a report; a cell by its number."""
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    cell = shell.compile.format_code_name(file) if shell is not None else None
    return " ".join(cell) if cell else Path(file).name
