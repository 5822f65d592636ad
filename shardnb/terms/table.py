"""One row for each member of a vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import get_args


@dataclass(frozen=True)
class Term[Name: str]:
    """A member of a vocabulary of which no more is known than what it means."""

    name: Name
    prose: str


def table[Name: str, Row](members: object, row: Callable[[Name], Row]) -> Mapping[Name, Row]:
    """Return the rows of a vocabulary by name, in its order.

    `members` is the `Literal`, `row` matches on each of its members and returns in every case:
    mypy reports a missing return where a member has no row.
    """
    return {name: row(name) for name in get_args(members)}


def terms[Name: str](members: object, prose: Mapping[Name, str]) -> Mapping[Name, Term[Name]]:
    """Return the terms of a vocabulary by name, in its order; each member of the `Literal` has one.

    A member that has none stops the import.
    """
    return {name: Term(name, prose[name]) for name in get_args(members)}
