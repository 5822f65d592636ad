"""Values in the place of others, wherever they stand in what a cell reaches."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

from shardnb.magics.contents import SIMPLE, Content, State, values_of


class Replacing:
    """Gives what stands in the place of a value: what `pairs` say, else the value itself.

    A tuple that holds such a value is made anew; all else is changed where it is (see `content`).
    """

    def __init__(self, pairs: Iterable[tuple[Any, Any]]) -> None:
        """Replace the first of each pair by the second; the earlier of two pairs holds."""
        self._new: dict[int, tuple[Any, Any]] = {}
        for old, new in pairs:
            self._new.setdefault(id(old), (old, new))

    def __call__(self, value: Any) -> Any:
        """Return what stands in the place of a value."""
        known = self._new.get(id(value))
        if known is not None:
            return known[1]
        if not isinstance(value, tuple):
            return value
        parts = [self(part) for part in value]
        unchanged = all(map(operator.is_, parts, value))
        new = value if unchanged else tuple.__new__(type(value), parts)
        self._new[id(value)] = (value, new)
        return new

    def content(self, content: Content) -> Content:
        """Return what an object holds with these in their places; itself where nothing changes."""
        if isinstance(content, State) or SIMPLE.issuperset(map(type, values_of(content))):
            return content
        if isinstance(content, dict):
            values = list(map(self, content.values()))
            unchanged = all(map(operator.is_, values, content.values()))
            return content if unchanged else dict(zip(content, values, strict=True))
        values = list(map(self, content))
        return content if all(map(operator.is_, values, content)) else values

    def back(self) -> Iterable[tuple[Any, Any]]:
        """Return the pairs that undo this, those of the tuples that were made anew among them."""
        return [(new, old) for old, new in self._new.values() if new is not old]
