"""The search for edits: what it finds in programs whose answers are known, and how it ends."""

from __future__ import annotations

import re
import time
from dataclasses import replace

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.compiler import Request
from shardnb.engine import compile_and_analyse
from shardnb.jax_compat.parts import NotAvailable
from shardnb.mesh import make_grid
from shardnb.rewrite.program_edits import ConstraintEdit, InputEdit, OutputEdit
from shardnb.rewrite.source_units import units_of
from shardnb.search.fixes import find_fixes
from shardnb.search.fixes.candidates import constraint_edits, seen_points, together
from shardnb.search.fixes.search import Search
from shardnb.search.trial import compile_trial
from shardnb.worker.process import WORKER
from tests.causes import training
from tests.causes.cases import CASES
from tests.search.fixing import (
    M8,
    M42,
    case_3,
    edits_of,
    f32,
    made,
    operations,
    searched,
    tanh_matmul,
)


@pytest.fixture(scope="module")
def case():
    """Return the program of case 3, its report, and the report with what was found."""
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
        lines = fix.edit.splitlines()
        if not any(line.startswith(("after", "line")) for line in lines):
            given = ", ".join(line for line in lines if not line.startswith("--out"))
            specs = eval(f"dict({given.replace(') ', '), ')})")  # noqa: S307
            outs = [line.partition("=")[2] for line in lines if line.startswith("--out")]
            out = eval(outs[0]) if outs else None  # noqa: S307
            arrays = {name: array for name, (array, _) in inputs.items()}
            asked = {name: specs.get(name, spec) for name, (_, spec) in inputs.items()}
            again = sn.explain(mlp, *arrays.values(), mesh=M8, in_specs=asked, out_specs=out)
            assert (len(again.collectives), again.wire_bytes) == (
                fix.collectives[1],
                fix.wire_bytes[1],
            )
            assert again.memory.total == fix.memory_bytes[1]


@pytest.mark.parametrize("rows", [8, 1024])
def test_a_small_product_beside_a_large_one_may_be_repeated(rows):
    # v @ m on each device: 2 * 128 * 7 * 7/8 operations more, and 7 * 4 * 2 * 7/8 = 49 bytes less.
    # That is more than 16 for a byte, and less than a tenth of 2 * 128 * 1024 * 1024, not of
    # 2 * 1 * 32 * 32. Columns of m cannot be sharded: 7 is not divisible by 8.
    def fn(a, b, m, v):
        return a @ b, v @ m

    columns = 1024 if rows == 1024 else 32
    report = searched(
        fn,
        M8,
        a=(f32(rows, columns), P("data")),
        b=(f32(columns, columns), P()),
        m=(f32(128, 7), P("data")),
        v=(f32(128), P("data")),
    )
    (collective,) = report.collectives
    assert ("m=P() v=P()" in edits_of(collective)) == (rows == 1024)


def test_nothing_to_find_is_an_answer():
    def total(x):
        return x.sum()

    # A sum over a split array is an all-reduce of 4 bytes, or the array is replicated: 8 times the
    # work.
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


def test_the_constraint_on_the_embedding_of_a_training_step():
    step, args, specs, out = training.training_step()
    names = ("params", "opt", "tokens", "labels")
    program, report = compile_and_analyse(
        Request(
            step,
            dict(zip(names, args, strict=True)),
            make_grid(training.MESH),
            dict(zip(names, specs, strict=True)),
            out,
        )
    )

    def enough(what, done, total):
        assert total < 300  # with other specs of each result there would be twice as many
        best = re.search(r"the best sends (\d+)%", what)
        if best and int(best[1]) < 50:
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


# The order


def test_constraints_come_first_where_a_collective_points():
    def fn(a, b, c):
        h = a @ b
        k = jnp.tanh(h)
        return 2 * k, c + 1

    a, b = (f32(256, 512), P("data", "model")), (f32(512, 1024), P("model", None))
    program, report = made(fn, M42, a=a, b=b, c=(f32(1024), P("model")))
    points = seen_points(program, units_of(program, report.sources))
    ranked = list(constraint_edits(program, report, report.collectives, points))
    first = [r.edit for r in ranked if r.wave == 0]
    # Of the specs that inputs suggest for 256 x 1024, the collective's are tried first, on the
    # first value of that shape.
    assert {edit.point.name for edit in first} == {"h"}
    assert len(first) == 2
    (collective,) = report.collectives
    assert first[0].spec in {collective.producer_spec, collective.needed_spec}


def test_what_a_collective_needs_is_tried_on_values_of_the_shape_of_what_it_moves():
    def fn(x, w, c):
        h = x @ w
        return jnp.tanh(h) + c

    # x goes from data to model, as c is sharded: a permute of 16 x 64 blocks, which says nothing of
    # the whole 64 x 64 by its own shape and the sharding that is needed.
    arrays = {"x": P("data"), "w": P(), "c": P("model")}
    program, report = made(fn, M42, **{name: (f32(64, 64), spec) for name, spec in arrays.items()})
    permute = next(c for c in report.collectives if c.kind == "collective-permute")
    assert (permute.shape, permute.producer_shape) == ((16, 64), (64, 64))
    points = seen_points(program, units_of(program, report.sources))
    ranked = list(constraint_edits(program, report, report.collectives, points))
    first = [r.edit.spec for r in ranked if r.wave == 0 and r.edit.point.name == "h"]
    assert set(first) == {permute.producer_spec, permute.needed_spec}


def test_a_value_with_many_dimensions_has_few_specs():
    def fn(x):
        h = x + 1
        return jnp.sort(h, 0)

    # Twelve dimensions of 4, each replicated or over one of two axes: 3^12 combinations.
    x = f32(*[4] * 12), P("data", *[None] * 10, "model")
    program, report = made(fn, "data=2,model=2", x=x)
    points = seen_points(program, units_of(program, report.sources))
    (h,) = (seen for seen in points if seen.point.name == "h")
    assert 0 < len(list(constraint_edits(program, report, report.collectives, [h]))) <= 70


# Several at once


def two_sorts(x, z):
    h = x * 2
    k = z * 3
    return jnp.sort(h, 0), jnp.sort(k, 0)


SORTED = {name: (f32(64, 64), P("data")) for name in "xz"}


def test_constraints_at_two_lines_are_composed(monkeypatch):
    first = Search._first

    def constraints(search):
        return [edit for edit in first(search) if isinstance(edit, ConstraintEdit)]

    monkeypatch.setattr(Search, "_first", constraints)
    found = searched(two_sorts, M8, **SORTED)
    fixes = {fix.edit: fix for c in found.collectives for fix in c.fixes or ()}
    (both,) = (fix for edit, fix in fixes.items() if len(edit.splitlines()) == 2)
    named = sorted(line.partition(": ")[2] for line in both.edit.splitlines())
    assert named == [
        f"{name} = jax.lax.with_sharding_constraint({name}, P(None, 'data'))" for name in "hk"
    ]
    # By columns an all-to-all sends 7/8 of a block of 8 x 64, where a gather sends 7 blocks.
    assert both.wire_bytes[1] == 2 * 7 * (8 * 64 * 4) // 8
    assert both.wire_bytes[0] > both.wire_bytes[1]


def test_edits_of_one_thing_are_not_made_together():
    x, z = (InputEdit(((name, (name,), ((), ())),)) for name in "xz")
    assert together(x, x) is None
    assert together(x, z).text == "x=P() z=P()"
    result = OutputEdit(0, "result", ((), ()))
    assert together(result, result) is None
    both = together(x, result)
    assert (both.text, both.size) == ("x=P()\n--out result=P()", 2)


def test_a_composed_edit_of_specs_and_a_line_does_both():
    program, report = made(two_sorts, M8, **SORTED)
    points = seen_points(program, units_of(program, report.sources))
    (h,) = (seen for seen in points if seen.point.name == "h")
    line = ConstraintEdit(h.unit, h.point, ((), ("data",)), explicit=False)
    both = together(InputEdit((("z", ("z",), ((), ("data",))),)), line)
    text = both.lowered(program).as_text()
    # The spec of z, and the constraint on h.
    assert text.count('[{}, {"data"}]') == 2
    trial = compile_trial(both.lowered(program), report.mesh, whole=False)
    assert [c.kind for c in trial.collectives] == ["all-to-all"]


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

    def interrupt(what, done, total):
        assert done < total
        if "best" in what:
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
        raise NotAvailable("the optimized program before machine code")

    program, report = case_3()
    monkeypatch.setattr("shardnb.jax_compat.compilation.optimized_modules", gone)
    monkeypatch.setattr(WORKER, "ask", lambda job: (job.answer(), ""))
    outcome = compile_trial(program.lowered, report.mesh, whole=False)
    assert outcome.wire_bytes == report.wire_bytes


def test_progress_counts_up_to_the_total():
    program, report = case_3()
    calls = []
    find_fixes(program, report, seconds=120, progress=lambda *call: calls.append(call))
    assert [done for _, done, _ in calls] == sorted(done for _, done, _ in calls)
    assert calls[0][0] == "edits tried"
    what, done, total = calls[-1]
    assert done == total
    assert what == "edits tried, the best sends 0% of the bytes"


def test_the_report_is_otherwise_the_same(case):
    _, report, found = case
    bare = tuple(replace(c, fixes=None) for c in found.collectives)
    assert replace(found, collectives=bare) == report
