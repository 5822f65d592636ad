"""Functions with an edited text: who runs which branch, and what they have afterwards."""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import threading
from types import FunctionType

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from shardnb.rewrite.edited_code import edited_functions, made_by, traced_functions
from shardnb.rewrite.products import ProductEdit
from shardnb.rewrite.program_edits import ConstraintEdit
from shardnb.rewrite.source_units import units_of
from tests.search.fixing import M8, M42, f32, made


def module(name, text):
    """Run a text as a file's, whose text Python knows; gives its names."""
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    names = {"jax": jax, "jnp": jnp, "__name__": name}
    exec(compile(text, name, "exec"), names)  # noqa: S102
    return names


def edited(function, text, change):
    """Return a context in which a function has `change(text)`, for this thread."""
    file = function.__code__.co_filename
    return edited_functions([function], file, ast.parse(text), ast.parse(change(text)))


def doubled(text):
    return text.replace("x + 1", "2 * (x + 1)")


CLOSURES = """
def make():
    count = 0
    def step(x):
        'Count the calls.'
        nonlocal count
        global last
        count += 1
        last = count
        return (lambda y: y + count)(x + 1)
    return step

class Layer:
    def __call__(self, x):
        return self.scale(x + 1)
    def scale(self, x):
        return x

last = 0
plain = lambda x: x + 1

def numbers(x):
    yield x + 1
"""


@pytest.fixture
def names():
    return module("/home/user/closures.py", CLOSURES)


def test_a_closure_keeps_its_cells_and_globals(names):
    step = names["make"]()
    assert step(0) == 2
    with edited(step, CLOSURES, doubled):
        assert step(0) == 4
        assert names["last"] == 2
        assert step.__doc__ == "Count the calls."
    assert step(0) == 4


def test_methods_lambdas_and_generators_are_edited(names):
    layer = names["Layer"]()
    with edited(names["Layer"].__call__, CLOSURES, doubled):
        assert layer(0) == 2
    with edited(names["plain"], CLOSURES, doubled):
        assert names["plain"](0) == 2
    with edited(names["numbers"], CLOSURES, doubled):
        assert list(names["numbers"](0)) == [2]
    assert (layer(0), names["plain"](0), list(names["numbers"](0))) == (1, 1, [1])


def test_a_function_made_in_the_trace_is_edited_there_and_nowhere_else(names):
    with edited(names["make"], CLOSURES, doubled):
        step = names["make"]()
        assert step(0) == 3
    # Somebody kept it: it is called later, and does what the user wrote.
    assert step(0) == 3 == 0 + 1 + 2


def test_another_thread_runs_what_the_user_wrote(names):
    plain = names["plain"]
    results = []
    with edited(plain, CLOSURES, doubled):
        thread = threading.Thread(target=lambda: results.append(plain(0)))
        thread.start()
        thread.join()
        assert (results, plain(0)) == ([1], 2)


def test_two_threads_with_edits_wait_for_each_other(names):
    plain = names["plain"]
    before = plain.__code__
    entered, results = threading.Event(), []

    def other():
        entered.set()
        with edited(plain, CLOSURES, lambda text: text.replace("x + 1", "x + 7")):
            results.append(plain(0))

    with edited(plain, CLOSURES, doubled):
        thread = threading.Thread(target=other)
        thread.start()
        entered.wait()
        thread.join(0.2)
        assert (results, plain(0)) == ([], 2)
    thread.join()
    assert results == [7]
    assert plain.__code__ is before


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, RuntimeError])
def test_an_interrupt_restores(names, error):
    functions = [names["plain"], names["make"], names["Layer"].__call__]
    before = [function.__code__ for function in functions]
    tree, changed = ast.parse(CLOSURES), ast.parse(doubled(CLOSURES))

    def interrupted():
        with edited_functions(functions, "/home/user/closures.py", tree, changed):
            assert all(f.__code__ is not c for f, c in zip(functions, before, strict=True))
            raise error

    with pytest.raises(error):
        interrupted()
    assert all(f.__code__ is code for f, code in zip(functions, before, strict=True))
    assert names["plain"](0) == 1


def test_an_edit_that_names_what_is_not_closed_over_is_left_out():
    text = "def make(w):\n    def f(x):\n        return x + 1\n    return f\n"
    f = module("/home/user/open.py", text)["make"](5)
    with edited(f, text, lambda text: text.replace("x + 1", "x + w")):
        assert f(0) == 1


def test_a_text_with_another_number_is_not_the_one_that_runs(names):
    file = "/home/user/closures.py"
    plain = names["plain"]
    assert made_by(ast.parse(CLOSURES), file, [plain]) == [plain]
    assert made_by(ast.parse(CLOSURES.replace("x + 1", "x + 2")), file, [plain]) == []


# In a trace


class Model:
    def __init__(self, scale):
        self.scale = scale

    def __call__(self, x):
        h = self.widened(x)
        return jnp.sort(h)

    @functools.partial(jax.jit, static_argnums=0)
    def widened(self, x):
        k = x * self.scale
        return -k


def constraints(program, name):
    for unit in units_of(program, ()):
        for point in unit.points:
            if (point.name, point.kind) == (name, "assigned"):
                yield ConstraintEdit(unit, point, (("data",),), explicit=False)


def test_the_functions_are_those_on_the_stack_of_an_equation():
    model = Model(2.0)
    program, _ = made(lambda x: 2 * model(x), M8, x=(f32(64), P("data")))
    (functions,) = traced_functions(program).values()
    called = {function.__qualname__.rpartition(".")[2] for function in functions}
    assert called == {"__call__", "widened", "<lambda>"}
    assert all(type(function) is FunctionType for function in functions)


@pytest.mark.parametrize("name", ["h", "k"])
def test_methods_and_jitted_methods_are_constrained(name):
    model = Model(2.0)
    program, _ = made(model.__call__, M8, x=(f32(64), P("data")))
    edits = [e for e in constraints(program, name) if e.point.function.startswith("Model")]
    assert len(edits) == 1
    assert "sdy.sharding_constraint" in edits[0].lowered(program).as_text()
    assert inspect.getclosurevars(Model.__call__).globals == {"jnp": jnp}


def test_what_another_thread_computes_during_a_trace_is_right():
    results = []

    def product(a, b):
        return a @ b

    def program_fn(a, b):
        thread = threading.Thread(target=lambda: results.append(product(np.eye(2), np.eye(2))))
        thread.start()
        thread.join()
        return product(a, b)

    a, b = (f32(8, 4), P("data", "model")), (f32(4, 8), P("model"))
    program, _ = made(program_fn, M42, a=a, b=b)
    (unit,) = (unit for unit in units_of(program, ()) if unit.file == __file__)
    (point,) = (p for p in unit.points if (p.kind, p.function[-7:]) == ("product", "product"))
    spec = (("data",), ())
    ProductEdit(unit, point, spec, ("model",), 0).lowered(program)
    assert [result.tolist() for result in results] == [np.eye(2).tolist()] * 2
