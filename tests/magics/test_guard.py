"""Objects get back what they held before a cell was traced."""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace

import jax
import pytest

from shardnb.magics.guard import Guard
from shardnb.magics.object_graph import tracer_in

TRACERS = []
jax.make_jaxpr(TRACERS.append)(1.0)
TRACER = TRACERS[0]


def closing_over(value):
    return lambda: value


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


# Everything is taken back

NOTEBOOK = {"__name__": "__main__"}
exec(  # noqa: S102
    """
class Counter:
    total = 0
    def __init__(self): self.n, self.seen = 0, []
    def count(self, v):
        self.n += 1
        self.seen.append(v)
        Counter.total += 1
        Counter.last = v
def counting():
    n = 0
    def count(v):
        nonlocal n
        n += 1
        return n
    return count
""",
    NOTEBOOK,
)


def test_instances_and_classes_of_the_notebook_get_back_what_they_held():
    cls, counter = NOTEBOOK["Counter"], NOTEBOOK["Counter"]()
    counter.count(1)
    past = Guard([("counter", counter)]).past()
    counter.count(2)
    past.restore()
    assert (counter.n, counter.seen, cls.total, cls.last) == (1, [1], 1, 1)


def test_closures_get_back_what_they_held():
    count = NOTEBOOK["counting"]()
    past = Guard([("count", count)]).past()
    count(1)
    past.restore()
    assert count(1) == 1


def test_containers_get_back_what_they_held():
    value = ({"a": 1}, deque([1]), {1}, [1])
    past = Guard([("value", value)]).past()
    value[0]["b"] = 2
    value[1].append(2)
    value[2].add(2)
    value[3].clear()
    past.restore()
    assert value == ({"a": 1}, deque([1]), {1}, [1])


def test_the_objects_of_libraries_are_left_alone():
    value = SimpleNamespace(w=1)
    past = Guard([("value", value)]).past()
    value.w = 2
    past.restore()
    assert value.w == 2
