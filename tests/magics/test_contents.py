"""What objects hold is read and written back, to the bit and in its order."""

from __future__ import annotations

import array
import functools
import random
import threading
from collections import Counter, OrderedDict, defaultdict, deque
from types import SimpleNamespace

import numpy as np
import pytest

from shardnb.magics.contents import attributes_of, content_of, lasting, made, same, slots_of, writes


class Slots:
    __slots__ = ("__private", "a")

    def __init__(self):
        self.a, self.__private = 1, 2

    def change(self):
        del self.a
        self.__private = 3

    def held(self):
        return getattr(self, "a", None), self.__private


class Strict(dict):
    def __setitem__(self, key, value):
        raise KeyError(key)


class Held:
    kind = "a"


def closing_over(value):
    def function(more=(1,)):
        nonlocal value
        value = more
        return value

    return function


def plain(value=1, *, key=2):
    return value, key


def objects(*values):
    held = np.empty(len(values), object)
    held[:] = values
    return held


def moved(mapping):
    mapping.move_to_end("a")
    mapping["a"] = 2


RANDOM = random.Random(1)  # noqa: S311  nothing is to be kept secret
CASES = {
    "list": ([1, [2]], lambda v: v.append(3), list),
    "dict": ({"a": 1, "b": 2}, lambda v: (v.pop("a"), v.update(c=3, a=1)), lambda v: [*v.items()]),
    "strict": (Strict(a=1), lambda v: dict.update(v, a=2), dict),
    "order": (OrderedDict(a=1, b=2), moved, lambda v: [*v.items()]),
    "defaultdict": (defaultdict(list, a=[1]), lambda v: v["b"], lambda v: [*v.items()]),
    "counter": (Counter("aab"), lambda v: v.update("c"), lambda v: [*v.items()]),
    "deque": (deque([1, 2], 2), lambda v: v.append(3), lambda v: ([*v], v.maxlen)),
    "set": ({1, 2}, lambda v: v.add(3), set),
    "slots": (Slots(), Slots.change, Slots.held),
    "class": (Held, lambda v: (setattr(v, "kind", 2), setattr(v, "new", 1)), lambda v: [*vars(v)]),
    "function": (plain, lambda v: setattr(v, "__defaults__", (5,)), lambda v: v()),
    "cell": (
        closing_over(4).__closure__[0],
        lambda v: setattr(v, "cell_contents", 5),
        lambda v: v.cell_contents,
    ),
    "partial": (
        functools.partial(max, 1, key=abs),
        lambda v: v.__setstate__((min, (2,), {}, None)),
        lambda v: v(-3),
    ),
    "objects": (objects(1, [2]), lambda v: v.__setitem__(0, [7]), list),
    "array": (np.arange(3.0), lambda v: v.fill(np.nan), lambda v: v.tobytes()),
    "bytes": (bytearray(b"ab"), lambda v: v.extend(b"c"), bytes),
    "numbers": (array.array("i", [1]), lambda v: v.append(2), list),
    "random": (RANDOM, lambda v: v.random(), lambda v: v.getstate()),
    "generator": (np.random.default_rng(1), lambda v: v.random(), lambda v: v.bit_generator.state),
    "old random": (np.random.RandomState(1), lambda v: v.rand(), lambda v: v.get_state()[2]),
}


@pytest.mark.parametrize("name", CASES)
def test_what_an_object_holds_comes_back(name):
    holder, change, seen = CASES[name]
    before, shown = lasting(content_of(holder)), seen(holder)
    assert same(content_of(holder), before)
    change(holder)
    after, changed = lasting(content_of(holder)), seen(holder)
    assert not same(after, before)
    made(writes(holder, after, before))
    assert seen(holder) == shown
    made(writes(holder, before, after))
    assert seen(holder) == changed
    made(writes(holder, after, before))


@pytest.mark.parametrize("value", [1, "a", (1, [2]), frozenset(), len, iter([1])])
def test_what_cannot_change_has_no_content(value):
    assert content_of(value) is None


def test_attributes_are_read_where_they_are_stored():
    class Proxy:
        def __getattr__(self, name):
            raise RuntimeError(name)

        @property
        def w(self):
            raise RuntimeError

    assert attributes_of(Proxy()) == {}
    assert attributes_of(SimpleNamespace(a=1)) == {"a": 1}
    assert attributes_of(3) is None


def test_a_thread_has_its_own_attributes():
    local = threading.local()
    local.a = 1
    assert attributes_of(local) == {"a": 1}


def test_private_slots_have_the_name_of_their_class():
    assert slots_of(Slots) == ("_Slots__private", "a")
