"""The search for edits: what it finds in programs whose answers are known, and what it leaves."""

from __future__ import annotations

import ast
import io
import time
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.compiler import build, private
from shardnb.engine import compile_and_analyse
from shardnb.fixes import find_fixes
from shardnb.fixes.candidates import other_specs, product_edits
from shardnb.fixes.edits import ConstraintEdit, InputEdit
from shardnb.fixes.marks import marked, places_of
from shardnb.fixes.progress import line, shown
from shardnb.fixes.trial import Bench, optimized_text
from shardnb.fixes.units import units_of
from shardnb.mesh import make_grid
from shardnb.report import Fix
from tests.analysis import training
from tests.analysis.cases import CASES

M42 = "data=4,model=2"
M8 = "data=8"


def f32(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def made(fn, mesh, axes="auto", out_specs=None, **inputs):
    """Build a program of arrays given as `name=(array, spec)`, and its report."""
    return compile_and_analyse(
        fn,
        {name: array for name, (array, _) in inputs.items()},
        make_grid(mesh, axes),
        title="test",
        in_specs={name: spec for name, (_, spec) in inputs.items()},
        out_specs=out_specs,
        sources=sn.engine._own_source(fn),
        files=sn.engine._own_file(fn),
    )


def searched(*args, seconds=120.0, **options):
    program, report = made(*args, **options)
    return find_fixes(program, report, seconds=seconds)


def operations(report):
    """Count the collectives of a report, combined ones as one."""
    return len({min((c.id, *c.combined_with)) for c in report.collectives})


def edits_of(collective):
    return [fix.edit for fix in collective.fixes]


def tanh_matmul(a, b):
    return jnp.tanh(a @ b)


def case_3():
    a, b = (f32(256, 512), P("data", "model")), (f32(512, 1024), P("model", None))
    return made(tanh_matmul, M42, a=a, b=b)


@pytest.fixture(scope="module")
def case():
    """Give the program of case 3, its report, and the report with what was found."""
    program, report = case_3()
    return program, report, find_fixes(program, report, seconds=120)


# What is found


def test_a_partial_sum_is_avoided_by_splitting_columns(case):
    # One device then has 64x512 of a, 512x512 of b and 64x512 of the result.
    (collective,) = case[2].collectives
    fix = next(fix for fix in collective.fixes if fix.edit == "a=P('data') b=P(None, 'model')")
    assert fix.collectives == (1, 0)
    assert fix.wire_bytes == (64 * 1024 * 4, 0)
    assert fix.memory_bytes[1] == 4 * (64 * 512 + 512 * 512 + 64 * 512)


def test_a_contracting_dimension_is_left_whole():
    # One device then has 128x512 of a, all of b, and 128x1024 of the result.
    a, b = (f32(256, 512), P("model", "data")), (f32(512, 1024), P())
    (collective,) = searched(tanh_matmul, M42, a=a, b=b).collectives
    assert "a=P(('model', 'data'))" in edits_of(collective)
    fix = collective.fixes[0]
    assert (fix.collectives, fix.wire_bytes) == ((1, 0), (128 * 512 * 4 * 3 // 4, 0))


def test_of_two_that_want_an_axis_one_gives_way():
    a, b = (f32(256, 256), P("data", None)), (f32(256, 256), P(None, "data"))
    (collective,) = searched(jnp.matmul, M8, a=a, b=b).collectives
    (fix,) = collective.fixes
    assert fix.edit in {"a=P()", "b=P()"}
    assert fix.memory_bytes[1] == 4 * (256 * 256 + 2 * 32 * 256)


def test_the_memory_before_is_the_report_s(case):
    _, report, found = case
    (collective,) = found.collectives
    assert {fix.memory_bytes[0] for fix in collective.fixes} == {report.memory.total}


def test_no_device_repeats_the_work_of_another(case):
    # With a and b whole there is no collective, and each device does all the work.
    (collective,) = case[2].collectives
    assert not {"a=P() b=P()", "a=P('data') b=P()"} & set(edits_of(collective))


def test_every_fix_beats_the_program_and_does_what_it_says():
    inputs = {
        "x": (f32(64, 128), P("data", None)),
        "up": (f32(128, 256), P(None, "data")),
        "down": (f32(256, 128), P("data", None)),
    }

    def mlp(x, up, down):
        h = jax.nn.relu(x @ up)
        return h @ down

    report = searched(mlp, M8, **inputs)
    found = {fix for c in report.collectives for fix in c.fixes or ()}
    assert found
    for fix in found:
        assert fix.wire_bytes[1] < fix.wire_bytes[0] or fix.collectives[1] < fix.collectives[0]
        if not fix.edit.startswith(("after", "line", "--out")):
            specs = eval(f"dict({fix.edit.replace(') ', '), ')})")  # noqa: S307
            arrays = {name: array for name, (array, _) in inputs.items()}
            asked = {name: specs.get(name, spec) for name, (_, spec) in inputs.items()}
            again = sn.explain(mlp, *arrays.values(), mesh=M8, in_specs=asked)
            assert (len(again.collectives), again.wire_bytes) == (
                fix.collectives[1],
                fix.wire_bytes[1],
            )
            assert again.memory.total == fix.memory_bytes[1]


def test_nothing_to_find_is_an_answer():
    def total(x):
        return x.sum()

    # A sum over a split array is an all-reduce of 4 bytes, or the array is whole: 8 times the work.
    (collective,) = searched(total, M8, x=(f32(8192), P("data"))).collectives
    assert collective.fixes == ()


def test_what_was_called_is_not_searched():
    def body(x):
        return jax.lax.psum(x, "data")

    program, report = made(body, M8, axes="manual", out_specs=P(), x=(f32(8), P("data")))
    (collective,) = find_fixes(program, report).collectives
    assert collective.fixes is None


def test_only_the_collectives_asked_for_are_searched():
    def two(a, b):
        return jnp.sort(a), jnp.sort(b)

    program, report = made(two, M8, a=(f32(64), P("data")), b=(f32(128), P("data")))
    one, other = find_fixes(program, report, collectives=[0], seconds=120).collectives
    assert one.fixes
    assert other.fixes is None


def test_an_explicit_program_is_traced_anew_for_other_specs():
    case = CASES["11 LU through the FFI"]
    (collective,) = searched(case.fn, M8, axes="explicit", x=(case.args[0], P("data"))).collectives
    assert edits_of(collective) == ["x=P()"]


def test_a_constraint_in_explicit_mode_is_a_reshard():
    program, _ = made(talkative, M8, axes="explicit", x=(f32(8, 64), P("data")))
    (unit,) = (unit for unit in units_of(program, ()) if unit.file == __file__)
    (number,) = (n for n, p in enumerate(unit.places) if (p.name, p.function) == ("h", "talkative"))
    edit = ConstraintEdit(unit, number, unit.places[number], ((), ()), explicit=True)
    assert edit.text.endswith("h = jax.sharding.reshard(h, P())")
    text = edit.lowered(program).as_text()
    assert "[{}, {}]> : tensor<8x64xf32>" in text


def test_the_constraint_on_the_embedding_of_a_training_step():
    step, args, specs, out = training.training_step()
    names = ("params", "opt", "tokens", "labels")
    program, report = compile_and_analyse(
        step,
        dict(zip(names, args, strict=True)),
        make_grid(training.MESH),
        title="step",
        in_specs=dict(zip(names, specs, strict=True)),
        out_specs=out,
    )

    def enough(done, total, best):
        if best is not None and best.wire_bytes[1] < best.wire_bytes[0] / 2:
            raise KeyboardInterrupt

    found = find_fixes(program, report, seconds=300, progress=enough)
    fixes = {fix for c in found.collectives for fix in c.fixes or ()}
    (fix,) = (fix for fix in fixes if "with_sharding_constraint(x, P('data'))" in fix.edit)
    assert found.sources[fix.location.source].line(fix.location.line).strip() == (
        "x = self.embed(tokens)"
    )
    by_hand = training.training_step(training.ConstrainedModel)
    same = sn.explain(
        by_hand[0], *by_hand[1], mesh=training.MESH, in_specs=by_hand[2], out_specs=out
    )
    assert fix.collectives == (len(report.collectives), len(same.collectives))
    assert fix.wire_bytes == (report.wire_bytes, same.wire_bytes)
    assert fix.memory_bytes == (report.memory.total, same.memory.total)
    assert fix.wire_bytes[1] < fix.wire_bytes[0] / 3
    assert (operations(report), operations(same)) == (109, 33)


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
        for number, place in enumerate(unit.places):
            if place.name == name and place.kind == "assigned" and place.function == "inner":
                return program, ConstraintEdit(unit, number, place, spec, explicit=False)
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
    assert "sdy.sharding_constraint" not in program.recipe.lower(program.recipe.trace()).as_text()
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
    with pytest.raises(ValueError, match="nothing"):
        edit.lowered(program)
    assert inner.__code__ is code


def talkative(x):
    print("traced")  # noqa: T201
    h = x * 2
    return jnp.sort(h)


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

    file = "<cell>"

    def __init__(self, tree):
        self.tree = tree

    def edited(self, transform):
        return Cell(transform(self.tree))

    def __call__(self, x):
        names = {"jnp": jnp, "x": x}
        exec(compile(self.tree, self.file, "exec"), names)  # noqa: S102
        return {"y": names["y"]}


def test_a_cell_is_edited_in_its_own_text():
    program, report = made(Cell(ast.parse(CELL)), M8, x=(f32(64), P("data")))
    (collective,) = find_fixes(program, report, seconds=120).collectives
    assert "x=P()" in edits_of(collective)
    (unit,) = [unit for unit in units_of(program, ()) if not unit.file]
    edit = ConstraintEdit(unit, 0, unit.places[0], (("data",),), explicit=False)
    assert edit.text == "after line 2: h = jax.lax.with_sharding_constraint(h, P('data'))"
    assert edit.lowered(program).as_text().count("sdy.sharding_constraint") == 1


def test_places_are_names_assigned_and_given_and_what_is_returned():
    text = """
def f(a, *, b):
    "A function."
    c, (d, _) = a
    d += 1
    class Inner:
        e = 1
    return d + b
"""
    places = [(p.kind, p.name, p.line) for p in places_of(ast.parse(text))]
    assert places == [
        ("argument", "a", 2),
        ("argument", "b", 2),
        ("assigned", "c", 4),
        ("assigned", "d", 4),
        ("assigned", "_", 4),
        ("assigned", "d", 5),
        ("returned", "d + b", 8),
    ]


def test_products_are_places_too():
    (product, *_) = places_of(ast.parse("def f():\n    return (x @ y) @ z"))
    assert (product.kind, product.name, product.operands) == ("product", "x @ y", ("x", "y"))


def test_an_edited_text_does_what_it_did():
    text = "def f(a, n=2):\n    b = a * n\n    return b + 1\n"
    names: dict[str, Any] = {}
    exec(compile(marked(ast.parse(text)), "<test>", "exec"), names)  # noqa: S102
    assert names["f"](3) == 7


# The search


def test_a_time_limit_is_kept_and_said():
    program, report = case_3()
    start = time.perf_counter()
    found = find_fixes(program, report, seconds=0)
    assert time.perf_counter() - start < 5
    assert found.collectives[0].fixes == ()
    assert found.notes[-1].startswith("the search for fixes ran out of time: 0 of ")


def test_an_interrupt_keeps_what_was_found():
    program, report = case_3()

    def interrupt(done, total, best):
        if best is not None:
            raise KeyboardInterrupt

    found = find_fixes(program, report, seconds=120, progress=interrupt)
    assert found.collectives[0].fixes
    assert "was interrupted" in found.notes[-1]


CALLS = []


def only_once(x):
    CALLS.append(1)
    if len(CALLS) > 1:
        raise RuntimeError("not twice")
    return jnp.sort(x)


def test_a_function_that_cannot_be_traced_again_is_said():
    found = searched(only_once, M8, x=(f32(64), P("data")))
    assert edits_of(found.collectives[0]) == ["x=P()"]
    assert found.notes[-1] == (
        "no edit of the text was tried: tracing it again raised RuntimeError: not twice"
    )


def test_a_whole_compile_stands_in_for_what_is_gone(monkeypatch):
    def gone(name, callback):
        raise private.NotAvailable("the optimized program before machine code")

    program, report = case_3()
    monkeypatch.setattr("shardnb.compiler.private.optimized_modules", gone)
    assert Bench(report.mesh).look(program.lowered).wire_bytes == report.wire_bytes


def test_progress_counts_up_to_the_total():
    program, report = case_3()
    calls = []
    find_fixes(program, report, seconds=120, progress=lambda *call: calls.append(call))
    assert [done for done, _, _ in calls] == sorted(done for done, _, _ in calls)
    done, total, best = calls[-1]
    assert done == total
    assert best.wire_bytes[1] == 0


def test_the_report_is_otherwise_the_same(case):
    _, report, found = case
    bare = tuple(replace(c, fixes=None) for c in found.collectives)
    assert replace(found, collectives=bare) == report


# The measure


def test_a_look_sees_what_a_whole_compile_sees():
    program, report = case_3()
    bench = Bench(report.mesh)
    looked, weighed = bench.look(program.lowered), bench.weigh(program.lowered)
    signatures = [
        [(c.kind, c.axes, c.dtype, c.shape, c.trips) for c in found.collectives]
        for found in (looked, weighed, report)
    ]
    assert signatures[0] == signatures[1] == signatures[2]
    assert weighed.memory == report.memory.total


def test_a_look_leaves_other_compiles_alone():
    program, _ = case_3()
    optimized_text(program.lowered, "cpu")
    assert jax.jit(lambda x: x + 1)(1.0) == 2


def test_the_replayed_program_is_the_program():
    program, report = case_3()
    outcome = Bench(report.mesh).weigh(InputEdit(()).lowered(program))
    assert outcome.wire_bytes == report.wire_bytes
    assert outcome.memory == report.memory.total


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

    program = build(fn, {"x": f32(64)}, mesh=grid.mesh, in_specs={"x": P()}, donate_argnums=0)
    lowered = InputEdit((("x", ("x",), ((),)),)).lowered(program)
    (info,) = jax.tree.leaves(lowered.args_info)
    assert info.donated


# The line of progress


def test_a_line_of_progress_says_how_far_it_is():
    best = Fix("x=P()", (2, 1), (400, 100), (8, 16))
    assert line(10, 20, best) == (
        "fixes [##########          ] 10 of 20 edits tried, best: 25% of the bytes sent"
    )


def test_a_quick_search_draws_nothing():
    out = io.StringIO()
    with shown(out) as progress:
        progress(1, 2, None)
    assert not out.getvalue()


def test_a_line_of_progress_is_wiped_out(monkeypatch):
    monkeypatch.setattr("shardnb.fixes.progress._SILENT", 0.0)
    out = io.StringIO()
    with shown(out) as progress:
        progress(1, 2, None)
    first, drawn, wiped, end = out.getvalue().split("\r")
    assert drawn.startswith("fixes [")
    assert (first, wiped.strip(), len(wiped), end) == ("", "", len(drawn), "")


# Arrays that a function closes over


def closing(table):
    def rows(i):
        return table[i]

    return rows


def test_an_array_that_is_closed_over_is_placed_otherwise():
    grid = make_grid(M8)
    table = jax.device_put(jnp.zeros((64, 16)), jax.NamedSharding(grid.mesh, P("data")))
    rows = closing(table)
    report = sn.explain(rows, jax.ShapeDtypeStruct((4,), jnp.int32), mesh=grid.mesh)
    assert [c.kind for c in report.collectives] == ["all-reduce"]
    program, report = compile_and_analyse(
        rows,
        {"i": jax.ShapeDtypeStruct((4,), jnp.int32)},
        grid,
        title="rows",
        names={id(table): "table"},
    )
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
        f"line {edit.place.line}: in place of a @ b, jax.shard_map(lambda a, b: "
        "jax.lax.psum_scatter(a @ b, 'model', scatter_dimension=0, tiled=True), "
        "in_specs=(P('data', 'model'), P('model')), out_specs=P(('data', 'model')))(a, b)"
    )
    (collective,) = Bench(report.mesh).look(edit.lowered(program)).collectives
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
