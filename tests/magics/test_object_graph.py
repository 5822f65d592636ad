"""Tracers in what is no pytree are found, and names through the notebook's own functions."""

from __future__ import annotations

from collections import deque
from functools import partial
from types import SimpleNamespace

import jax
import pytest

from shardnb.magics.captured_names import names_through
from shardnb.magics.object_graph import tracer_in
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
