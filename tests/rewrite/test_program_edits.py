"""Edits of a text, of closed-over arrays, of products: what they compile to, and what they leave."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from shardnb.bugs import Inconclusive
from shardnb.compiler import Request, SourceTexts, build
from shardnb.engine import compile_and_analyse
from shardnb.mesh import make_grid
from shardnb.rewrite.program_edits import ConstraintEdit, InputEdit
from shardnb.rewrite.rewrite_points import hooked, points_of
from shardnb.rewrite.source_units import units_of
from shardnb.search.fixes import find_fixes
from shardnb.search.fixes.candidates import other_specs, product_edits
from shardnb.search.trial import compile_trial
from tests.search.fixing import M8, M42, case_3, edits_of, f32, made

# The edit of the text


def inner(h, w):
    h = h @ w
    return jnp.tanh(h)


jitted = jax.jit(inner)


def outer(x, w):
    loss = jax.grad(lambda x: jitted(x, w).sum())
    return loss(x)


def constraint(fn, name, spec, **inputs):
    program, _ = made(fn, M8, **inputs)
    for unit in units_of(program, ()):
        for point in unit.points:
            if (point.name, point.kind, point.function) == (name, "assigned", "inner"):
                return program, ConstraintEdit(unit, point, spec, explicit=False)
    raise AssertionError(name)


XW: dict[str, Any] = {"x": (f32(64, 32), P("data")), "w": (f32(32, 32), P())}


def test_an_edit_is_in_the_compiled_program_forward_and_backward():
    program, edit = constraint(outer, "h", (("data",), ()), **XW)
    assert "sdy.sharding_constraint" not in program.lowered.as_text()
    assert edit.lowered(program).as_text().count("sdy.sharding_constraint") == 2


def test_an_edit_leaves_the_user_s_functions_and_caches_alone():
    program, edit = constraint(outer, "h", ((), ("data",)), **XW)
    code = inner.__code__
    edit.lowered(program)
    assert inner.__code__ is code
    assert "sdy.sharding_constraint" not in program.request.lower(program.request.trace()).as_text()
    assert "sharding_constraint" not in str(jax.make_jaxpr(outer)(jnp.ones((64, 32)), jnp.eye(32)))


def test_an_edit_is_traced_where_the_cache_knows_the_function():
    program, edit = constraint(outer, "h", (("data",), ()), **XW)
    for _ in range(2):
        assert "sdy.sharding_constraint" in edit.lowered(program).as_text()


TRACED: list[str] = []


@jax.jit
def counted(x):
    TRACED.append("counted")
    h = x * 2
    return jnp.sort(h)


def test_what_jax_has_cached_for_the_user_stays_cached():
    x = jnp.arange(64.0)
    counted(x)
    program, report = made(counted, M8, x=(f32(64), P("data")))
    find_fixes(program, report, seconds=120)
    before = len(TRACED)
    counted(x)
    made(counted, M8, x=(f32(64), P("data")))
    assert len(TRACED) == before


def test_a_failing_edit_gives_the_code_back():
    program, edit = constraint(outer, "h", (("nothing",), ()), **XW)
    code = inner.__code__
    with pytest.raises(Inconclusive, match="nothing"):
        edit.lowered(program)
    assert inner.__code__ is code


def talkative(x):
    print("traced")  # noqa: T201
    h = x * 2
    return jnp.sort(h)


def test_a_constraint_in_explicit_mode_is_a_reshard():
    program, _ = made(talkative, M8, axes="explicit", x=(f32(8, 64), P("data")))
    (unit,) = (unit for unit in units_of(program, ()) if unit.file == __file__)
    (point,) = (p for p in unit.points if (p.name, p.function) == ("h", "talkative"))
    edit = ConstraintEdit(unit, point, ((), ()), explicit=True)
    assert edit.text.endswith("h = jax.sharding.reshard(h, P())")
    text = edit.lowered(program).as_text()
    assert "[{}, {}]> : tensor<8x64xf32>" in text


def test_what_the_function_prints_is_not_heard_again(capsys):
    program, report = made(talkative, M8, x=(f32(64), P("data")))
    assert capsys.readouterr().out == "traced\n"
    find_fixes(program, report, seconds=120)
    assert capsys.readouterr() == ("", "")


def test_random_numbers_go_on_where_they_were():
    import random

    def noisy(x):
        h = x * random.random()  # noqa: S311
        return jnp.sort(h)

    random.seed(7)
    expected = [random.random() for _ in range(2)]  # noqa: S311
    random.seed(7)
    program, report = made(noisy, M8, x=(f32(64), P("data")))
    find_fixes(program, report, seconds=120)
    assert random.random() == expected[1]  # noqa: S311


CELL = """
h = x * 2
y = jnp.sort(h)
"""


class Cell:
    """A cell as a function: its text runs in a namespace of its own."""

    file, text, namespace = "<cell>", CELL, {"jnp": jnp}

    def __init__(self, tree):
        self.tree = tree

    def edited(self, transform):
        return Cell(transform(self.tree))

    def __call__(self, x):
        names = {**self.namespace, "x": x}
        exec(compile(self.tree, self.file, "exec"), names)  # noqa: S102
        return {"y": names["y"]}


def test_a_cell_is_edited_in_its_own_text():
    program, report = made(Cell(ast.parse(CELL)), M8, x=(f32(64), P("data")))
    (collective,) = find_fixes(program, report, seconds=120).collectives
    assert "x=P()" in edits_of(collective)
    (unit,) = [unit for unit in units_of(program, ()) if unit.cell]
    edit = ConstraintEdit(unit, unit.points[0], (("data",),), explicit=False)
    assert edit.text == "after line 2: h = jax.lax.with_sharding_constraint(h, P('data'))"
    assert edit.lowered(program).as_text().count("sdy.sharding_constraint") == 1


def test_points_are_names_assigned_and_given_and_what_is_returned():
    text = """
def f(a, *, b):
    "A function."
    c, (d, _) = a
    d += 1
    class Inner:
        e = 1
    return d + b
"""
    points = [(p.kind, p.name, p.line) for p in points_of(ast.parse(text))]
    assert points == [
        ("argument", "a", 2),
        ("argument", "b", 2),
        ("assigned", "c", 4),
        ("assigned", "d", 4),
        ("assigned", "_", 4),
        ("assigned", "d", 5),
        ("returned", "d + b", 8),
    ]


def test_products_are_points_too():
    (product, *_) = points_of(ast.parse("def f():\n    return (x @ y) @ z"))
    assert (product.kind, product.name, product.operands) == ("product", "x @ y", ("x", "y"))


def test_an_edited_text_does_what_it_did():
    text = "def f(a, n=2):\n    b = a * n\n    return b + 1\n"
    names: dict[str, Any] = {}
    exec(compile(hooked(ast.parse(text)), "<test>", "exec"), names)  # noqa: S102
    assert names["f"](3) == 7


# The measure


def test_a_look_sees_what_a_whole_compile_sees():
    program, report = case_3()
    looked, weighed = (
        compile_trial(program.lowered, report.mesh, whole=whole) for whole in (False, True)
    )
    signatures = [
        [(c.kind, c.axes, c.dtype, c.shape, c.trips) for c in found.collectives]
        for found in (looked, weighed, report)
    ]
    assert signatures[0] == signatures[1] == signatures[2]
    assert weighed.memory == replace(report.memory, peak=None)


def test_a_look_leaves_other_compiles_alone():
    program, report = case_3()
    compile_trial(program.lowered, report.mesh, whole=False)
    assert jax.jit(lambda x: x + 1)(1.0) == 2


def test_the_replayed_program_is_the_program():
    program, report = case_3()
    outcome = compile_trial(InputEdit(()).lowered(program), report.mesh, whole=True)
    assert outcome.wire_bytes == report.wire_bytes
    assert outcome.memory == replace(report.memory, peak=None)


def test_other_specs_move_one_axis():
    sizes = {"data": 4, "model": 2}
    assert other_specs((("data",), ("model",)), (8, 6), "model", sizes) == [
        (("data",), ()),
        (("data", "model"), ()),
    ]


def test_donation_stays_in_an_edited_program():
    grid = make_grid(M8)

    def fn(x):
        return jnp.sort(x)

    program = build(
        Request(fn, {"x": f32(64)}, grid, {"x": P()}, jit_options={"donate_argnums": 0})
    )
    lowered = InputEdit((("x", ("x",), ((),)),)).lowered(program)
    (info,) = jax.tree.leaves(lowered.args_info)
    assert info.donated


# Arrays that a function closes over


def closing(table):
    def rows(i):
        return table[i]

    return rows


def test_an_array_that_is_closed_over_is_placed_otherwise():
    grid = make_grid(M8)
    table = jax.device_put(jnp.zeros((64, 16)), jax.NamedSharding(grid.mesh, P("data")))
    rows = closing(table)
    program, report = compile_and_analyse(
        Request(
            rows,
            {"i": jax.ShapeDtypeStruct((4,), jnp.int32)},
            grid,
            texts=SourceTexts("rows", names={id(table): "table"}),
            in_jit=False,
        )
    )
    assert [c.kind for c in report.collectives] == ["all-reduce"]
    (collective,) = find_fixes(program, report, seconds=120).collectives
    # Columns on the devices: each takes its own columns of a row, and nothing is sent.
    placed = "NamedSharding(mesh, P(None, 'data'))"
    assert f"table = jax.device_put(table, {placed})" in edits_of(collective)
    assert rows.__closure__[0].cell_contents is table


# Products whose sums are scattered


def test_a_partial_sum_is_scattered_by_a_shard_map():
    def fn(a, b):
        h = a @ b
        return jnp.tanh(h)

    a, b = (f32(256, 512), P("data", "model")), (f32(512, 1024), P("model", None))
    program, report = made(fn, M42, a=a, b=b)
    (edit,) = (
        ranked.edit
        for ranked in product_edits(program, report, report.collectives, units_of(program, ()))
        if ranked.edit.dim == 0
    )
    assert edit.text == (
        f"line {edit.point.line}: in place of a @ b, jax.shard_map(lambda a, b: "
        "jax.lax.psum_scatter(a @ b, 'model', scatter_dimension=0, tiled=True), "
        "in_specs=(P('data', 'model'), P('model')), out_specs=P(('data', 'model')))(a, b)"
    )
    (collective,) = compile_trial(edit.lowered(program), report.mesh, whole=False).collectives
    # Each device of two keeps half of the 64 rows that it had the sum of.
    assert (collective.kind, collective.shape) == ("reduce-scatter", (32, 1024))
    assert collective.wire_bytes == report.wire_bytes // 2


def test_a_scattered_product_is_the_product():
    def fn(a, b):
        return a @ b

    a = np.arange(32, dtype=np.float32).reshape(8, 4)
    b = np.arange(24, dtype=np.float32).reshape(4, 6)
    inputs = {"a": (a, P("data", "model")), "b": (b, P("model"))}
    program, report = made(fn, M42, **inputs)
    edits = [
        ranked.edit
        for ranked in product_edits(program, report, report.collectives, units_of(program, ()))
    ]
    assert {edit.dim for edit in edits} == {0, 1}
    for edit in edits:
        compiled = edit.lowered(program).compile()
        placed = [
            jax.device_put(array, sharding)
            for array, sharding in zip((a, b), compiled.input_shardings[0], strict=True)
        ]
        assert np.array_equal(compiled(*placed), a @ b)
