"""What can be reached from the names that a cell reads: one walk, which no loop and no size stops.

Nothing of the user's is called or moved. What is a number or a text is passed over: a list of a
million of these is looked at in a few milliseconds.
"""

from __future__ import annotations

import functools
import gc
import sys
import types
import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextvars import Context
from typing import Any

import jax
import numpy as np

from shardnb.jax_compat.tracing import is_of_jax, trace_state
from shardnb.magics.contents import SIMPLE, attributes_of, content_of, module_of
from shardnb.torch.traced import Traced, is_torch_tensor

# The kernel's own objects, and those that every module shares, lead to all of the process.
_APART = ("IPython.", "ipykernel.", "traitlets.", "ipywidgets.", "zmq.", "logging", "shardnb.")
_KINDS: weakref.WeakKeyDictionary[type, str] = weakref.WeakKeyDictionary()

# Each step up from a lost value looks at all of the process, for about 0.1 s.
_FURTHEST = 40

Path = str | tuple[Any, str, Any]
"""Where a value stands: a name, or the path of what holds it, how it holds it, and the key."""


def text_of(path: Path) -> str:
    """Write a path as Python, such as `params['w'][0].bias`."""
    if isinstance(path, str):
        return path
    before, how, key = path
    shown = {"item": f"[{key!r}]", "attribute": f".{key}", "member": "{...}"}.get(how, "")
    return text_of(before) + shown


def _kind(cls: type) -> str:
    """Say how objects of a class are treated: a leaf, an array, apart, or looked into."""
    if cls not in _KINDS:
        _KINDS[cls] = _find_kind(cls)
    return _KINDS[cls]


def _find_kind(cls: type) -> str:
    if issubclass(cls, jax.core.Tracer) or cls is type(trace_state()):
        return "leaf"
    if issubclass(cls, jax.Array | jax.ShapeDtypeStruct | np.ndarray):
        return "array"
    if issubclass(cls, types.FrameType | types.TracebackType | Context):
        return "apart"
    module = module_of(cls)
    if is_of_jax(module):
        called = callable(cls.__dict__.get("__call__")) and not issubclass(cls, jax.stages.Compiled)
        return "held" if called or issubclass(cls, functools.partial) else "apart"
    return "apart" if module.startswith(_APART) else "held"


def _torch_kind(value: Any) -> str:
    """Say how a tensor of torch's is treated: traced, data, or around another; "" for the rest."""
    if isinstance(value, Traced):
        return "leaf"
    if not is_torch_tensor(value):
        return ""
    return "held" if hasattr(value, "global_tensor") else "array"


def _holds_objects(array: Any) -> bool:
    return isinstance(array, np.ndarray) and array.dtype.hasobject


def _is_of_library(value: Any) -> bool:
    """Whether a module or a class is from a library: what these hold is shared by the process."""
    if isinstance(value, types.ModuleType):
        return value.__spec__ is not None or value.__name__ == "__main__"
    return isinstance(value, type) and module_of(value) != "__main__"


class Reachable:
    """All objects that were reached so far.

    `held` are the objects that hold others, `arrays` the arrays, `leaves` the traced values and
    what remembers a trace, each with the path to it, in the order in which they were found.
    """

    def __init__(self, before: Reachable | None = None, *, of_torch: bool = False) -> None:
        """Begin with nothing, or beyond what was reached before.

        With `of_torch` the tensors of torch are the arrays.
        """
        self.of_torch: bool = of_torch or (before is not None and before.of_torch)
        self._before: Mapping[int, Any] = {} if before is None else before.seen
        self.seen: dict[int, Any] = {}
        self.held: list[tuple[Path, Any]] = []
        self.arrays: list[tuple[Path, Any]] = []
        self.leaves: list[tuple[Path, Any]] = []

    def add(self, roots: Iterable[tuple[Path, Any]]) -> Iterator[Any]:
        """Reach further; gives each object that holds others and was not reached before."""
        waiting, seen, before = deque(roots), self.seen, self._before
        while waiting:
            path, value = waiting.popleft()
            if id(value) in seen or id(value) in before or type(value) in SIMPLE:
                continue
            seen[id(value)] = value
            kind = (self.of_torch and _torch_kind(value)) or _kind(type(value))
            if kind == "leaf":
                self.leaves.append((path, value))
            elif kind == "array" and not _holds_objects(value):
                self.arrays.append((path, value))
            elif kind != "apart" and not _is_of_library(value):
                self.held.append((path, value))
                yield value
                waiting.extend(parts_of(path, value))

    def add_all(self, roots: Iterable[tuple[Path, Any]]) -> Reachable:
        """Reach all that there is from these."""
        deque(self.add(roots), maxlen=0)
        return self


def parts_of(path: Path, holder: Any) -> Iterator[tuple[Path, Any]]:
    """Yield what an object holds that may matter, with the paths that lead there."""
    immutable = isinstance(holder, tuple | frozenset)
    content = list(holder) if immutable else content_of(holder)
    how = _how(path, holder)
    if isinstance(content, dict) and not SIMPLE.issuperset(map(type, content.values())):
        yield from (((path, how, key), value) for key, value in content.items())
    elif isinstance(content, list) and not SIMPLE.issuperset(map(type, content)):
        yield from (((path, how, i), value) for i, value in enumerate(content))
    if isinstance(holder, dict) and not SIMPLE.issuperset(map(type, holder)):
        yield from (((path, "member", None), key) for key in dict.keys(holder))
    attributes = attributes_of(holder)
    if attributes is not None:
        yield (path, "attributes", None), attributes
    yield from _further(path, holder)


def _how(path: Path, holder: Any) -> str:
    if isinstance(holder, set | frozenset):
        return "member"
    if isinstance(holder, dict):
        return "attribute" if isinstance(path, tuple) and path[1] == "attributes" else "item"
    if isinstance(holder, types.CellType):
        return ""
    return "item" if isinstance(holder, list | tuple | deque | np.ndarray) else "attribute"


def _further(path: Path, holder: Any) -> Iterator[tuple[Path, Any]]:
    if isinstance(holder, types.FunctionType):
        names = holder.__code__.co_freevars
        cells = zip(names, holder.__closure__ or (), strict=True)
        yield from (((path, "attribute", name), cell) for name, cell in cells)
    elif isinstance(holder, type):
        yield from (((path, "attribute", "__bases__"), base) for base in holder.__bases__)
    else:
        if module_of(type(holder)) == "__main__":
            yield (path, "attribute", "__class__"), type(holder)
        yield from (((path, "", None), part) for part in inside(holder))


def inside(holder: Any) -> list[Any]:
    """Return what an object of C's holds, which can be seen and not be written."""
    if isinstance(holder, dict | list | deque | set | tuple | frozenset | type | np.ndarray):
        return []
    if isinstance(holder, types.FunctionType | types.CellType | functools.partial):
        return []
    if isinstance(holder, weakref.ref):
        return [holder()]
    return gc.get_referents(holder)


def holders_in_process(values: Iterable[Any]) -> str:
    """Say what holds objects that no name of the notebook leads to, or "" where only JAX does.

    That is a place in a module, or what is known of an object. Only for an error: each step looks
    at all of the process.
    """
    held, kind = list(values), ""
    if not held:
        return ""
    modules = {id(vars(m)): name for name, m in list(sys.modules.items()) if hasattr(m, "__dict__")}
    seen = {id(held), *map(id, held)}
    waiting = deque((value, "") for value in held)
    while waiting:
        value, rest = waiting.popleft()
        for holder in gc.get_referrers(value):
            if id(holder) in seen or isinstance(holder, types.FrameType | types.GeneratorType):
                continue
            if is_of_jax(module_of(type(holder))) or holder is waiting:
                continue
            seen.add(id(holder))
            step = _step(holder, value)
            if id(holder) in modules:
                return f"{modules[id(holder)]}.{step[2:-2]}{rest}"
            if not isinstance(holder, list | tuple | dict | types.CellType):
                kind = kind or f"an object of the type {type(holder).__name__}"
            elif len(seen) < _FURTHEST:
                waiting.append((holder, step + rest))
    return kind


def _step(holder: Any, held: Any) -> str:
    if isinstance(holder, dict):
        return next((f"[{key!r}]" for key, value in holder.items() if value is held), "")
    if isinstance(holder, list | tuple):
        return next((f"[{i}]" for i, value in enumerate(holder) if value is held), "")
    return ""
