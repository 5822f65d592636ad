"""What changed from one report to another, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from shardnb.report import shown
from shardnb.terms.collectives import Kind


@dataclass(frozen=True)
class Change:
    """One figure or sharding that differs; None where one of the reports has none."""

    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True)
class KindChange:
    """Collectives of a kind that came (`number` is positive) or went, and what they send per run.

    `wire_bytes` are one device's; `at_least` says that more than these may be sent.
    """

    kind: Kind
    number: int
    wire_bytes: int
    at_least: bool = False


@dataclass(frozen=True)
class Diff:
    """The changes from one report to another; false where they say the same.

    `kinds` counts the collectives that went and came, `wire_bytes` and `memory` are one device's
    bytes, sent per run and held at once, before and after; None where the memory is not known.
    """

    changes: tuple[Change, ...] = ()
    kinds: tuple[KindChange, ...] = ()
    wire_bytes: tuple[int, int] = (0, 0)
    memory: tuple[int, int] | None = None

    def __bool__(self) -> bool:
        """Whether anything changed."""
        return bool(self.changes)

    def __str__(self) -> str:
        """Return the changes as text for a terminal."""
        text: str = shown.by("diff text", self)
        return text

    def _repr_mimebundle_(self, **_selection: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = shown.by("diff", self)
        return bundle


OutcomeOption = Literal["forbid", "check"]


@dataclass(frozen=True)
class Outcome:
    """How an option of `%%shard` that checks something ended: whether it passed, None if unknown.

    `words` are what `--forbid` forbids, or what `--check` compared.
    """

    option: OutcomeOption
    passed: bool | None
    words: tuple[str, ...] = field(default=())
