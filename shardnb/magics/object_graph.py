"""What a value reaches: attributes, closures, queues, and the tracers lost in them."""

from __future__ import annotations

import functools
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from shardnb.magics.trees import is_array, is_tracer

# The most objects to look into: a name may lead to a data set, and each cell looks again.
_LIMIT = 5000
_ITERABLES: tuple[Iterable[Any], ...] = ("", [], (), set(), {}, {}.values(), {}.items())
_ITERATORS: tuple[type, ...] = (
    *(map, filter, zip, enumerate, reversed, type(reversed([]))),
    *(type(iter(iterable)) for iterable in _ITERABLES),
)
_KERNEL = ("IPython.", "ipykernel.", "traitlets.")
_OPAQUE = (str, bytes, int, float, complex, types.ModuleType, types.CodeType)


def entries(holder: Any) -> list[tuple[str, Any]]:
    """Yield what an object holds, with the text that selects it, such as `.w` or `[0]`.

    No code of the object runs: attributes are read from where they are stored.
    """
    if isinstance(holder, type):
        return list(_written_here(holder))
    if is_array(holder) or isinstance(holder, _OPAQUE):
        return []
    if isinstance(holder, dict):
        return [(f"[{key!r}]", value) for key, value in dict.items(holder)]
    if isinstance(holder, list | tuple | deque):
        return [(f"[{i}]", value) for i, value in enumerate(holder)]
    if isinstance(holder, set | frozenset):
        return [("{...}", value) for value in holder]
    return [*_called(holder), *_attributes(holder)]


def _called(holder: Any) -> Iterator[tuple[str, Any]]:
    """Yield what a function holds: its closure, its defaults, its bound arguments."""
    if isinstance(holder, types.MethodType):
        yield ".__self__", holder.__self__
    elif isinstance(holder, types.GeneratorType):
        frame = holder.gi_frame
        yield from (
            (f".{name}", value) for name, value in (frame.f_locals if frame else {}).items()
        )
    elif isinstance(holder, _ITERATORS):
        yield ".__reduce__()", holder.__reduce__()
    elif isinstance(holder, classmethod | staticmethod):
        yield ".__func__", holder.__func__
    elif isinstance(holder, property):
        yield from ((".fget", holder.fget), (".fset", holder.fset))
    elif isinstance(holder, functools.partial):
        yield from ((".func", holder.func), (".args", holder.args), (".keywords", holder.keywords))
    elif isinstance(holder, types.FunctionType):
        names = holder.__code__.co_freevars
        for name, cell in zip(names, holder.__closure__ or (), strict=True):
            try:
                yield f".{name}", cell.cell_contents
            except ValueError:  # a variable without a value yet
                continue
        yield from ((".__defaults__", value) for value in holder.__defaults__ or ())


def _written_here(cls: type) -> Iterator[tuple[str, Any]]:
    """Yield what a class of the notebook holds; the classes of libraries are left alone."""
    if cls.__module__ == "__main__":
        yield from ((f".{name}", value) for name, value in vars(cls).items())
        yield from ((".__bases__", base) for base in cls.__bases__)


def _attributes(holder: Any) -> Iterator[tuple[str, Any]]:
    if type(holder).__module__ == "__main__":
        yield ".__class__", type(holder)
    try:
        attributes = object.__getattribute__(holder, "__dict__")
    except AttributeError:
        return
    if isinstance(attributes, dict):
        yield from ((f".{name}", value) for name, value in attributes.items())


def reach(
    roots: Iterable[tuple[str, Any]], through: Callable[[Any], bool] = lambda _: True
) -> Iterator[tuple[str, Any]]:
    """Yield every object that can be reached from the roots, once, with its path.

    Only objects for which `through` is true are looked into.
    """
    waiting = deque(roots)
    seen: dict[int, Any] = {}
    while waiting and len(seen) < _LIMIT:
        path, value = waiting.popleft()
        if id(value) in seen or value is None or isinstance(value, _OPAQUE):
            continue
        if type(value).__module__.startswith(_KERNEL):
            continue
        seen[id(value)] = value
        yield path, value
        if through(value):
            waiting.extend((path + step, part) for step, part in entries(value))


def tracer_in(name: str, value: Any) -> str | None:
    """Return the path of a tracer that a value holds, or None."""
    return next((path for path, part in reach([(name, value)]) if is_tracer(part)), None)
