"""The reports of all programs that a run or a block of code compiled."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from hashlib import sha256
from typing import Protocol

from shardnb.report.invalid_input import InvalidInput
from shardnb.report.model import Report
from shardnb.report.programs import Dumped, Programs
from shardnb.terms.collectives import KINDS

SENDS = re.compile(rf"\b(?:{'|'.join(KINDS)}|send|recv)(?:-start)?\(")
# Instructions of an optimized program. A sum or a reshard that is called outside of any jit has
# fewer than 20 with its fusions, the smallest training step hundreds
# (test_a_small_program_is_a_line).
_LARGE = 50


class Compiled(Protocol):
    """A program that was compiled: `name` tells it from others, `title` is its own name."""

    @property
    def name(self) -> str:
        """A name that no other program has."""

    @property
    def title(self) -> str:
        """What the program itself is called."""

    def text(self) -> str:
        """Return its optimized text; raises `InvalidInput`."""


def explain_each[P: Compiled](
    every: Sequence[P],
    explain: Callable[[P], Report],
    *,
    only: str | None = None,
    first: int | None = None,
) -> Programs:
    """Explain the large programs, those with the same text once.

    With `only`, programs of such a name, whether large or not; at most the `first` ones. A program
    at which `explain` raises `InvalidInput` is in `Programs.unread`. Raises `InvalidInput` where no
    program has the name.
    """
    check_first(first)
    chosen = named(every, only)
    return _Reader(explain, by_name=only is not None, first=first).read(chosen)


def check_first(first: int | None) -> None:
    """Raise `InvalidInput` for a number of programs that is not positive."""
    if first is not None and first < 1:
        raise InvalidInput(f"expected at least 1 program, got {first}")


def named[P: Compiled](every: Sequence[P], only: str | None) -> list[P]:
    """Return the programs of such a name, all without one; raises `InvalidInput` for none."""
    chosen = [each for each in every if only is None or is_named(each.title, only)]
    if every and not chosen:
        titles = ", ".join(dict.fromkeys(each.title for each in every))
        raise InvalidInput(f"none of the programs is named {only}; there are {titles}")
    return chosen


def is_named(title: str, pattern: str) -> bool:
    """Whether a pattern is the name of a program, which JAX begins with `jit_`.

    >>> is_named("jit_train_step", "train*"), is_named("jit_train_step", "step")
    (True, False)
    """
    return fnmatchcase(title, pattern) or fnmatchcase(title.removeprefix("jit_"), pattern)


def is_wanted(program: Compiled, only: str | None) -> bool:
    """Whether a program has the name that is asked for, or is large and may have collectives."""
    if only is not None:
        return is_named(program.title, only)
    text = program.text()
    return SENDS.search(text) is not None and _is_large(text)


def _is_large(text: str) -> bool:
    """Whether an optimized program is more than one operation that was called by itself."""
    return text.count(" = ") >= _LARGE


@dataclass
class _Reader[P: Compiled]:
    """Explains programs one after another, until there are enough."""

    explain: Callable[[P], Report]
    by_name: bool
    first: int | None
    _large: list[Dumped] = field(default_factory=list)
    _small: list[Dumped] = field(default_factory=list)
    _silent: list[str] = field(default_factory=list)
    _unread: list[tuple[str, str]] = field(default_factory=list)

    def read(self, programs: Sequence[P]) -> Programs:
        """Explain programs, none after the `first`; without large ones, the small ones count."""
        alike: dict[str, list[P]] = {}
        for program in programs:
            try:
                alike.setdefault(sha256(program.text().encode()).hexdigest(), []).append(program)
            except InvalidInput as error:
                self._unread.append((program.name, str(error)))
        left = list(alike.values())
        while left and (self.first is None or len(self._large) < self.first):
            program, *others = left.pop(0)
            try:
                self._add(program, 1 + len(others))
            except InvalidInput as error:
                self._unread.append((program.name, str(error)))
        if not self._large and not left:
            self._large, self._small = self._small[: self.first], []
        return Programs(
            tuple(self._large),
            tuple(self._small),
            tuple(self._silent),
            tuple(self._unread),
            sum(map(len, left)),
        )

    def _add(self, program: P, compiles: int) -> None:
        text = program.text()
        if not self.by_name and not SENDS.search(text):
            self._silent += [program.title] * compiles
            return
        report = self.explain(program)
        explained = Dumped(report, program.name, compiles)
        if self.by_name or (report.collectives and _is_large(text)):
            self._large.append(explained)
        elif report.collectives:
            self._small.append(explained)
        else:
            self._silent += [program.title] * compiles
