"""The reports of a whole run: those of its large programs, and what else it compiled."""

from __future__ import annotations

from dataclasses import dataclass

from shardnb.report import shown
from shardnb.report.model import Report


@dataclass(frozen=True)
class Dumped:
    """The report of a program in a folder of dumps, its name there, how often it was compiled."""

    report: Report
    name: str
    compiles: int = 1


@dataclass(frozen=True)
class Programs:
    """The programs that a run compiled.

    `explained` are those with collectives that are not small, or those that were asked for by name,
    in the order of their compiles; `small` have collectives and a few instructions. `silent` names
    those without collectives, `unread` those whose text is not valid, each with what is wrong with
    it. `left` counts those that were not read, as enough had been.
    """

    explained: tuple[Dumped, ...] = ()
    small: tuple[Dumped, ...] = ()
    silent: tuple[str, ...] = ()
    unread: tuple[tuple[str, str], ...] = ()
    left: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing was compiled."""
        return not (self.explained or self.small or self.silent or self.unread or self.left)

    @property
    def communicating(self) -> tuple[Report, ...]:
        """All reports, also those of small programs."""
        return tuple(dumped.report for dumped in (*self.explained, *self.small))

    @property
    def reports(self) -> tuple[Report, ...]:
        """The reports of `explained`."""
        return tuple(dumped.report for dumped in self.explained)

    def __str__(self) -> str:
        """Return the reports and what else was compiled as text for a terminal."""
        text: str = shown.by("programs text", self)
        return text
