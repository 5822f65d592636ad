"""Iterators that a cell reads: one that is traced more than once reads the same each time."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

from shardnb.magics.cell import CellError
from shardnb.magics.contents import attributes_of, slots_of
from shardnb.magics.reachable import Reachable, text_of


class Iterators:
    """Copies of the iterators that a cell can reach, from before it first ran.

    Those of Python's and itertools' classes can be copied; a generator, or an iterator around one,
    cannot. One of a class of the user's is an object like any other.
    """

    def __init__(self, reachable: Reachable, why: str) -> None:
        """Copy them; `why` says for an error why the cell cannot read them for good."""
        self._why = why
        found = ((path, holder) for path, holder in reachable.held if _is_iterator(holder))
        self._copies = [(text_of(path), holder, _copy(holder)) for path, holder in found]

    def pairs(self, *, only_fixed: bool) -> list[tuple[Any, Any]]:
        """Return for each iterator what a run may read; with `only_fixed` for generators alone.

        In the place of a generator that is what raises `CellError` as soon as it is read.
        """
        pairs = []
        for path, holder, copied in self._copies:
            fresh = None if copied is None else _copy(copied)
            if fresh is None:
                pairs.append((holder, _unreadable(path, holder, self._why)))
            elif not only_fixed:
                pairs.append((holder, fresh))
        return pairs


def _is_iterator(holder: Any) -> bool:
    own = attributes_of(holder) is None and not slots_of(type(holder))
    return own and isinstance(holder, Iterator)


def _copy(iterator: Any) -> Any:
    """Return an iterator that goes on where this one is, or None where there can be none."""
    try:
        with warnings.catch_warnings():
            # itertools lets its iterators be taken apart up to Python 3.13, and says so.
            warnings.simplefilter("ignore", DeprecationWarning)
            function, arguments, *state = iterator.__reduce__()
            return _rebuilt(function, arguments, state)
    except (TypeError, ValueError):
        return None


def _rebuilt(function: Callable[..., Any], arguments: tuple[Any, ...], state: list[Any]) -> Any:
    parts = []
    for argument in arguments:
        part = _copy(argument) if isinstance(argument, Iterator) else argument
        if part is None and argument is not None:
            return None
        parts.append(part)
    copied = function(*parts)
    if state and state[0] is not None:
        copied.__setstate__(state[0])
    return copied


def _unreadable(path: str, holder: Any, why: str) -> Iterator[Any]:
    kind = type(holder).__name__
    message = f"{path} is a {kind}, which can be read only once, but {why}; nothing was changed"
    if message:
        raise CellError(message)
    yield
