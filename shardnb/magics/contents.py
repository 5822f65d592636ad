"""What an object holds: read without running its code, and written back in calls of C alone.

A plain cell changes lists, attributes, closures, the state of a random generator. To take such a
change back, or to make it later, shardnb reads what an object holds and writes it again.

Every write is a call of a function of C with what it needs. Between two of these Python runs no
bytecode, so neither an interrupt nor another thread can see a half of them (see `made`).
"""

from __future__ import annotations

import array
import functools
import operator
import pickle
import random
import types
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from itertools import starmap
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

SIMPLE = frozenset(
    {int, float, complex, bool, str, bytes, type(None), range, type(...), type(NotImplemented)}
    | {types.CodeType, types.GetSetDescriptorType}
    | {types.MemberDescriptorType, types.WrapperDescriptorType, types.MethodDescriptorType}
    | {np.float32, np.float64, np.int32, np.int64, np.bool_, np.uint8}
)
"""What holds no other object: a list of a million of these is passed over in some milliseconds."""

Keyed = dict[Any, Any]
Call = tuple[Any, ...]
"""A function, and the arguments to call it with."""

_CONTAINERS = (dict, list, deque, set)
_SLOTS: WeakKeyDictionary[type, tuple[str, ...]] = WeakKeyDictionary()
_NOT_WRITTEN = ("__dict__", "__weakref__")
# Host arrays above this, all together, are not copied before a cell is traced: 64 MiB take some
# hundredths of a second to copy and to compare.
MOST_HOST_BYTES = 1 << 26
_CHUNK = 1 << 20


class State:
    """What an object holds that is not a Python object: numbers of an array, a random state."""

    def __init__(self, value: Any) -> None:
        """Keep the state; an array's goes on changing with it (see `lasting`)."""
        self.value = value

    def __eq__(self, other: object) -> bool:
        """Whether both are the same, to the bit."""
        if not isinstance(other, State):
            return False
        mine, theirs = self.value, other.value
        if isinstance(mine, np.ndarray) and isinstance(theirs, np.ndarray):
            return mine.dtype == theirs.dtype and _same_bytes(mine, theirs)
        return pickle.dumps(mine) == pickle.dumps(theirs)

    __hash__ = None  # type: ignore[assignment]


def _same_bytes(some: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    """Whether an array and a copy of it have the same bytes; no further copy is made of either."""
    a, b = (array.ravel(order="K").view(np.uint8) for array in (some, other))
    parts = (slice(start, start + _CHUNK) for start in range(0, len(a), _CHUNK))
    return len(a) == len(b) and all(np.array_equal(a[part], b[part]) for part in parts)


Content = Keyed | list[Any] | State


def content_of(holder: Any) -> Content | None:
    """Return what an object holds and may hold otherwise, or None for what cannot change.

    The attributes of an object are not in it: its `__dict__` holds them (see `attributes_of`).
    """
    if isinstance(holder, _CONTAINERS):
        return _in_container(holder)
    if isinstance(holder, functools.partial):
        held = {name: getattr(holder, name) for name in ("func", "args", "keywords")}
        return {**held, "__dict__": holder.__dict__ or None}
    if isinstance(holder, np.ndarray) and holder.dtype == object:
        return list(holder.flat)
    state = _state(holder)
    return _in_attributes(holder) if state is None else state


def _in_attributes(holder: Any) -> Keyed | None:
    """Return what a function, a closure's variable, a class or the slots of an object hold."""
    if isinstance(holder, types.FunctionType):
        return {name: getattr(holder, name) for name in ("__defaults__", "__kwdefaults__")}
    if isinstance(holder, types.CellType):
        try:
            return {"cell_contents": holder.cell_contents}
        except ValueError:  # of a name that has no value yet
            return {}
    if isinstance(holder, type):
        return {k: v for k, v in type.__getattribute__(holder, "__dict__").items() if _written(k)}
    return _in_slots(holder)


def _in_container(holder: Any) -> Content:
    if isinstance(holder, OrderedDict):
        return dict(OrderedDict.items(holder))
    if isinstance(holder, dict):
        return dict.copy(holder)
    if isinstance(holder, list):
        return list.copy(holder)
    return list(type(holder).__iter__(holder) if type(holder) in _CONTAINERS else _plain(holder))


def _plain(holder: Any) -> Iterator[Any]:
    return deque.__iter__(holder) if isinstance(holder, deque) else set.__iter__(holder)


def _written(name: str) -> bool:
    return name not in _NOT_WRITTEN


def _state(holder: Any) -> State | None:
    if isinstance(holder, np.ndarray):
        return State(holder) if holder.flags.writeable else None
    if isinstance(holder, bytearray | array.array):
        return State(holder[:])
    if isinstance(holder, np.random.Generator):
        return State(holder.bit_generator.state)
    if isinstance(holder, np.random.RandomState):
        return State(holder.get_state())
    if isinstance(holder, random.Random) and not isinstance(holder, random.SystemRandom):
        return State(holder.getstate())
    return None


def _in_slots(holder: Any) -> Keyed | None:
    names = tuple(slots_of(type(holder)))
    held = {}
    for name in names:
        try:
            held[name] = object.__getattribute__(holder, name)
        except AttributeError:
            continue
    return held if names else None


def slots_of(cls: type) -> tuple[str, ...]:
    """Return the names of the slots of a class and its bases, as they are stored."""
    if cls not in _SLOTS:
        _SLOTS[cls] = tuple(_find_slots(cls))
    return _SLOTS[cls]


def _find_slots(cls: type) -> Iterator[str]:
    for base in cls.__mro__:
        slots = base.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else tuple(slots):
            private = name.startswith("__") and not name.endswith("__")
            stored = f"_{base.__name__.lstrip('_')}{name}" if private else name
            if isinstance(base.__dict__.get(stored), types.MemberDescriptorType):
                yield stored


def attributes_of(holder: Any) -> dict[str, Any] | None:
    """Return the dictionary of an object's attributes, or None where it has none."""
    if isinstance(holder, type):
        return None
    try:
        # A thread's own attributes are found by the class of `threading.local` alone.
        found = (
            holder.__dict__
            if module_of(type(holder)) == "_thread"
            else object.__getattribute__(holder, "__dict__")
        )
    except AttributeError:
        return None
    return found if type(found) is dict else None


def module_of(cls: type) -> str:
    """Return the name of the module of a class; a class of C's may have anything there."""
    module = getattr(cls, "__module__", None)
    return module if isinstance(module, str) else ""


def lasting(content: Content) -> Content:
    """Give a content that stays as it is when the object changes."""
    if isinstance(content, State) and isinstance(content.value, np.ndarray):
        return State(np.array(content.value))
    return content


def values_of(content: Content | None) -> Iterable[Any]:
    """Return the objects of a content."""
    if isinstance(content, dict):
        return content.values()
    return content if isinstance(content, list) else ()


def same(some: Content | None, other: Content | None) -> bool:
    """Whether two contents of an object are the same objects, in the same order."""
    if some is None or other is None or isinstance(some, State) or isinstance(other, State):
        return some == other
    if len(some) != len(other) or not all(map(operator.is_, values_of(some), values_of(other))):
        return False
    return isinstance(some, list) or list(some) == list(other)


def writes(holder: Any, now: Content, content: Content) -> Iterator[Call]:
    """Yield the calls after which an object that holds `now` holds `content`."""
    if isinstance(content, State):
        yield _state_written(holder, content.value)
    elif isinstance(holder, dict):
        yield from _dictionary_written(holder, now, content)
    elif isinstance(holder, list):
        yield list.__setitem__, holder, slice(None), content
    elif isinstance(holder, deque):
        yield deque.clear, holder
        yield deque.extend, holder, content
    elif isinstance(holder, set):
        yield set.clear, holder
        yield set.update, holder, content
    elif isinstance(holder, functools.partial):
        yield functools.partial.__dict__["__setstate__"], holder, tuple(values_of(content))
    elif isinstance(holder, np.ndarray):
        places = zip(np.ndindex(holder.shape), values_of(now), content, strict=True)
        yield from (
            (np.ndarray.__setitem__, holder, at, new) for at, old, new in places if old is not new
        )
    else:
        yield from _attributes_written(holder, now, content)


def _dictionary_written(holder: Any, now: Any, content: Any) -> Iterator[Call]:
    set_item = OrderedDict.__setitem__ if isinstance(holder, OrderedDict) else dict.__setitem__
    if list(now) == list(content):
        changed = {key for key in content if content[key] is not now[key]}
    else:
        changed = set(content)
        yield (OrderedDict.clear if isinstance(holder, OrderedDict) else dict.clear), holder
    yield from ((set_item, holder, key, content[key]) for key in content if key in changed)


def _attributes_written(holder: Any, now: Any, content: Any) -> Iterator[Call]:
    """Set what a function, a closure's variable, a class or an object with slots holds."""
    if isinstance(holder, type):
        set_one, delete = type.__setattr__, type.__delattr__
    elif isinstance(holder, types.FunctionType | types.CellType):
        set_one, delete = setattr, delattr
    else:
        set_one, delete = object.__setattr__, object.__delattr__
    yield from ((delete, holder, name) for name in now if name not in content)
    for name, value in content.items():
        if name not in now or now[name] is not value:
            yield set_one, holder, name, value


def _state_written(holder: Any, value: Any) -> Call:
    if isinstance(holder, np.ndarray):
        return np.copyto, holder, value
    if isinstance(holder, np.random.Generator):
        return setattr, holder.bit_generator, "state", value
    if isinstance(holder, np.random.RandomState):
        return holder.set_state, value
    if isinstance(holder, random.Random):
        return holder.setstate, value
    return type(holder).__setitem__, holder, slice(None), value


def made(calls: Iterable[Call]) -> None:
    """Make calls of C, all of them or none: no interrupt comes between two."""
    deque(starmap(operator.call, list(calls)), maxlen=0)
