"""Tracers in what is no pytree are found and taken out again."""

from __future__ import annotations

from collections import deque
from functools import partial
from types import SimpleNamespace

import jax
import pytest

from shardnb.magics.leaks import Guard, tracer_in
from shardnb.magics.reach import names_through
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


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (SimpleNamespace(w=TRACER), "v.w"),
        (SimpleNamespace(a=SimpleNamespace(b=[1, {"k": TRACER}])), "v.a.b[1]['k']"),
        (deque([TRACER]), "v[0]"),
        (closing_over(TRACER), "v.value"),
        (closing_over([TRACER]), "v.value[0]"),
        (with_default(TRACER), "v.__defaults__"),
        ((v for v in [TRACER]), "v..0.__reduce__()[1][0][0]"),
        (iter([TRACER]), "v.__reduce__()[1][0][0]"),
        (map(len, [TRACER]), "v.__reduce__()[1][1].__reduce__()[1][0][0]"),
        (zip([TRACER]), "v.__reduce__()[1][0].__reduce__()[1][0][0]"),
        (partial(len, TRACER), "v.args[0]"),
        (partial(len, k=TRACER), "v.keywords['k']"),
    ],
)
def test_a_tracer_is_found_by_its_path(value, path):
    assert tracer_in("v", value) == path


@pytest.mark.parametrize("value", [1, "a", [1], SimpleNamespace(), len, jax, dict, lambda: 3])
def test_where_there_is_none_there_is_none(value):
    assert tracer_in("v", value) is None


def test_circles_end():
    value = SimpleNamespace()
    value.self = value
    assert tracer_in("v", value) is None


def change_attribute(value):
    value.w, value.other = TRACER, 2


def change_new_attribute(value):
    value.new = TRACER


def change_list(value):
    value.items.append(TRACER)


def change_dictionary(value):
    value.table["a"], value.table["b"], value.table["c"] = 5, TRACER, TRACER


def change_queue(value):
    value.queue.append([TRACER])


@pytest.mark.parametrize(
    ("change", "paths"),
    [
        (change_attribute, ["v.w"]),
        (change_new_attribute, ["v.new"]),
        (change_list, ["v.items[1]"]),
        (change_dictionary, ["v.table['b']", "v.table['c']"]),
        (change_queue, ["v.queue[1][0]"]),
    ],
)
def test_a_tracer_is_taken_out_of_an_object(change, paths):
    value = SimpleNamespace(w=1, items=[1], table={"a": 1, "b": 2}, queue=deque([1]))
    guard = Guard([("v", value)])
    change(value)
    assert guard.release() == paths
    assert tracer_in("v", value) is None
    assert (value.w, value.items, value.queue) == (1, [1], deque([1]))
    assert value.table in ({"a": 1, "b": 2}, {"a": 5, "b": 2})


def test_what_holds_no_tracer_keeps_its_change():
    value = SimpleNamespace(w=1)
    guard = Guard([("v", value)])
    value.w = 2
    assert guard.release() == []
    assert value.w == 2


def test_a_tracer_is_taken_out_of_a_closure():
    log = []
    function = closing_over(log)
    guard = Guard([("f", function)])
    log.append(TRACER)
    assert guard.release() == ["f.value[0]"]
    assert function() == []


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
    assert set(names_through(Names((name,), ()), NOTEBOOK).read) == read


def test_names_are_assigned_through_functions_of_the_notebook():
    assert names_through(Names(("counts",), ("y",)), NOTEBOOK).assigned == ("y", "count")
