"""The notebook names that its functions read and assign when a cell calls them."""

from __future__ import annotations

import dis
import types
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from shardnb.magics.reachable import Reachable
from shardnb.magics.scope import Names


def names_through(
    names: Names, namespace: Mapping[str, Any], *, of_torch: bool = False
) -> tuple[Names, Reachable]:
    """Add to a cell's names those that the notebook functions it reaches use.

    A function belongs to the notebook if its globals are `namespace`. Gives all that the names
    lead to as well.
    """
    read, assigned = dict.fromkeys(names.read), dict.fromkeys(names.assigned)
    waiting, reachable = list(names.read), Reachable(of_torch=of_torch)
    while waiting:
        name = waiting.pop()
        roots = [(name, namespace[name])] if name in namespace else []
        for value in reachable.add(roots):
            if not isinstance(value, types.FunctionType) or value.__globals__ is not namespace:
                continue
            loaded, stored = globals_of(value.__code__)
            waiting.extend(other for other in loaded if other not in read)
            read.update(dict.fromkeys(loaded))
            assigned.update(dict.fromkeys(stored))
    return Names(tuple(read), tuple(assigned)), reachable


@lru_cache(maxsize=1024)
def globals_of(code: types.CodeType) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the global names that a function, and those inside it, read and assign."""
    loaded: dict[str, None] = {}
    stored: dict[str, None] = {}
    for inner in _nested(code):
        for instruction in dis.get_instructions(inner):
            if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                loaded.setdefault(instruction.argval)
            elif instruction.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
                stored.setdefault(instruction.argval)
    return tuple(loaded), tuple(stored)


def _nested(code: types.CodeType) -> Iterable[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _nested(constant)
