"""What a cell can reach, and the names that the notebook's own functions use."""

from __future__ import annotations

import itertools
import sys
import time
import types
import weakref
from collections import ChainMap, UserDict, deque
from functools import lru_cache, partial
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from shardnb.magics.captured_names import names_through
from shardnb.magics.reachable import Reachable, holders_in_process, text_of
from shardnb.magics.scope import Names

TRACERS = []
jax.make_jaxpr(TRACERS.append)(1.0)
TRACER = TRACERS[0]


def closing_over(value):
    return lambda: value


def with_default(value):
    def function(a=value):
        return a

    return function


def objects(value):
    held = np.empty(2, object)
    held[1] = value
    return held


def cached(value):
    function = lru_cache(lambda: value)
    function()
    return function


class Slots:
    __slots__ = ("__weakref__", "w")

    def __init__(self, value):
        self.w = value


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (SimpleNamespace(w=TRACER), "v.w"),
        (SimpleNamespace(a=SimpleNamespace(b=[1, {"k": TRACER}])), "v.a.b[1]['k']"),
        (deque([TRACER]), "v[0]"),
        (UserDict(a=TRACER), "v.data['a']"),
        (ChainMap({}, {"a": TRACER}), "v.maps[1]['a']"),
        (Slots(TRACER), "v.w"),
        (objects(TRACER), "v[1]"),
        (closing_over(TRACER), "v.value"),
        (closing_over([TRACER]), "v.value[0]"),
        (with_default(TRACER), "v.__defaults__[0]"),
        (partial(len, k=TRACER), "v.keywords['k']"),
        (iter([TRACER]), "v[0]"),
        ([1, 2].append, None),
        ([TRACER].append, "v[0]"),
        (map(len, [TRACER]), "v[0][0]"),
        (cached(TRACER), "v"),
        ((v for v in [TRACER]), "v[0]"),
        ([SimpleNamespace(w=1)] * 3 + [SimpleNamespace(w=TRACER)], "v[3].w"),
    ],
)
def test_a_traced_value_is_found_by_its_path(value, path):
    leaves = Reachable().add_all([("v", value)]).leaves
    assert [text_of(path) for path, _ in leaves] == ([] if path is None else [path])


@pytest.mark.parametrize("value", [1, "a", [1], SimpleNamespace(), len, jax, dict, lambda: 3, sys])
def test_where_there_is_none_there_is_none(value):
    assert Reachable().add_all([("v", value)]).leaves == []


def test_loops_end():
    value = SimpleNamespace()
    value.me = [value]
    value.me.append(value.me)
    assert len(Reachable().add_all([("v", value)]).held) == 3


def test_what_is_weakly_held_is_found():
    value = Slots(TRACER)
    assert len(Reachable().add_all([("v", weakref.ref(value))]).leaves) == 1


def test_numbers_and_texts_take_no_time():
    numbers, texts = list(range(1_000_000)), dict.fromkeys(map(str, range(300_000)), "t")
    start = time.perf_counter()
    Reachable().add_all([("numbers", numbers), ("texts", texts)])
    assert time.perf_counter() - start < 0.5


def test_no_number_of_objects_stops_it():
    values = [SimpleNamespace(w=None) for _ in range(20_000)]
    values[-1].w = TRACER
    (leaf,) = Reachable().add_all([("v", values)]).leaves
    assert text_of(leaf[0]) == "v[19999].w"


def test_the_place_in_a_module_is_named():
    module = types.ModuleType("library_of_a_test")
    sys.modules[module.__name__] = module
    value = SimpleNamespace()
    module.table = {"k": [value]}
    try:
        assert holders_in_process([value]) == "library_of_a_test.table['k'][0]"
    finally:
        del sys.modules[module.__name__]


def test_an_iterator_of_c_is_looked_into():
    assert len(Reachable().add_all([("v", itertools.chain([TRACER]))]).leaves) == 1


# The names that a notebook's own functions use

NOTEBOOK = {"__name__": "__main__"}
exec(  # noqa: S102
    """
def inner(v): return v @ W
def outer(v): return [inner(k) for k in v]
def counts():
    global count
    count = count + 1
class Model:
    def __call__(self, v): return self.scale * outer(v)
model = Model()
import functools
part = functools.partial(outer, 1)
""",
    NOTEBOOK,
)


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("outer", {"outer", "inner", "W"}),
        ("part", {"part", "inner", "W"}),
        ("model", {"model", "outer", "inner", "W"}),
        ("counts", {"counts", "count"}),
        ("unknown", {"unknown"}),
    ],
)
def test_names_are_read_through_functions_of_the_notebook(name, read):
    assert set(names_through(Names((name,), ()), NOTEBOOK)[0].read) == read


def test_names_are_assigned_through_functions_of_the_notebook():
    names, _ = names_through(Names(("counts",), ("y",)), NOTEBOOK)
    assert names.assigned == ("y", "count")
