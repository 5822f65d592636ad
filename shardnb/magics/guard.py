"""Objects as they were before a cell was traced, so that they can be restored.

A tracer is useless after the trace. If a cell put one into an object that is not a pytree, the
object gets back what it held before. A body that is traced only to be compiled leaves no change at
all in the notebook's own objects.
"""

from __future__ import annotations

import functools
import types
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from shardnb.magics.object_graph import reach, tracer_in
from shardnb.magics.trees import is_array

Content = dict[Any, Any]
_PLAIN = (list, dict, deque, set, tuple, frozenset, types.FunctionType, types.MethodType)


@dataclass
class _Kept:
    path: str
    holder: Any
    before: Content


class Guard:
    """Records what objects hold, to remove tracers from them later.

    `roots` are named values; everything reachable from them is recorded.
    """

    def __init__(self, roots: Sequence[tuple[str, Any]]) -> None:
        """Record the present contents."""
        self._roots = roots
        self._objects = list(reach(roots))
        self._kept = list(_kept(self._objects))

    def arrays(self) -> Iterator[tuple[str, Any]]:
        """Yield the arrays among the recorded objects, with their paths."""
        return ((path, value) for path, value in self._objects if is_array(value))

    def release(self) -> list[str]:
        """Remove tracers from every object; returns the paths where they were."""
        return [path for kept in self._kept for path in _cleaned(kept)]

    def past(self) -> Past:
        """Record the present contents of the notebook's own objects."""
        return Past(self._roots)


class Past:
    """The recorded contents of the notebook's own classes, instances, closures and containers.

    Objects of libraries are left alone: their contents may mirror state that Python cannot see.
    """

    def __init__(self, roots: Iterable[tuple[str, Any]]) -> None:
        """Record the present contents."""
        self._kept = list(_kept(reach(roots, _is_of_notebook)))

    def restore(self) -> None:
        """Restore the contents of every object."""
        for kept in self._kept:
            if _is_of_notebook(kept.holder) and not _same(_content(kept.holder), kept.before):
                _put(kept.holder, kept.before)


def _is_of_notebook(value: Any) -> bool:
    if isinstance(value, (*_PLAIN, functools.partial)):
        return True
    cls = value if isinstance(value, type) else type(value)
    return cls.__module__ == "__main__"


def _kept(objects: Iterable[tuple[str, Any]]) -> Iterator[_Kept]:
    for path, holder in objects:
        content = _content(holder)
        if content is not None:
            yield _Kept(path, holder, content)


def _content(holder: Any) -> Content | None:
    """Return the contents of an object by key, or None if it holds nothing that can change."""
    if isinstance(holder, dict):
        return dict(holder)
    if isinstance(holder, list | deque | set):
        return dict(enumerate(holder))
    if isinstance(holder, types.FunctionType):
        return {name: cell.cell_contents for name, cell in _cells(holder)}
    if isinstance(holder, type):
        return dict(vars(holder)) if holder.__module__ == "__main__" else None
    try:
        return dict(object.__getattribute__(holder, "__dict__"))
    except AttributeError:
        return None


def _put(holder: Any, content: Content) -> None:
    """Replace the contents of an object."""
    if isinstance(holder, dict):
        holder.clear()
        holder.update(content)
    elif isinstance(holder, list | deque | set):
        holder.clear()
        (holder.update if isinstance(holder, set) else holder.extend)(content.values())
    elif isinstance(holder, types.FunctionType):
        for name, cell in _cells(holder):
            cell.cell_contents = content.get(name, cell.cell_contents)
    elif isinstance(holder, type):
        for name in [name for name in vars(holder) if name not in content]:
            delattr(holder, name)
        for name, value in content.items():
            if vars(holder).get(name) is not value:
                setattr(holder, name, value)
    else:
        _put(object.__getattribute__(holder, "__dict__"), content)


def _cells(function: types.FunctionType) -> Iterator[tuple[str, types.CellType]]:
    """Yield the variables of a closure that have a value."""
    names = function.__code__.co_freevars
    for name, cell in zip(names, function.__closure__ or (), strict=True):
        try:
            _ = cell.cell_contents
        except ValueError:
            continue
        yield name, cell


def _same(now: Content | None, before: Content) -> bool:
    return (
        now is not None
        and list(now) == list(before)
        and all(now[key] is before[key] for key in before)
    )


def _cleaned(kept: _Kept) -> list[str]:
    """Restore what an object held where it holds tracers now; returns their paths."""
    now, before = _content(kept.holder) or {}, kept.before
    changed = {k: v for k, v in now.items() if k not in before or before[k] is not v}
    lost = {
        key: path
        for key, value in changed.items()
        if (path := tracer_in(kept.path + _step(kept.holder, key), value))
    }
    if lost and isinstance(kept.holder, list | deque | set):
        _put(kept.holder, before)
    elif lost:
        old = {key: before[key] for key in lost if key in before}
        _put(kept.holder, {k: v for k, v in {**now, **old}.items() if k in old or k not in lost})
    return list(lost.values())


def _step(holder: Any, key: Any) -> str:
    if isinstance(holder, set):
        return "{...}"
    return f"[{key!r}]" if isinstance(holder, dict | list | deque) else f".{key}"
