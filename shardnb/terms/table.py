"""One row for each member of a vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import get_args


def table[Name: str, Row](members: object, row: Callable[[Name], Row]) -> Mapping[Name, Row]:
    """Give the rows of a vocabulary by name, in its order.

    `members` is the `Literal`, `row` matches on each of its members and returns in every case:
    mypy reports a missing return where a member has no row.
    """
    return {name: row(name) for name in get_args(members)}
