"""`--compare`: the same cell with several types of axes, side by side."""

from __future__ import annotations

import numpy as np
import pytest
from IPython.core.error import UsageError

from tests.needs import needs_gpu_compiler, needs_libtpu


@pytest.fixture
def cell(run):
    run("x = np.ones((16, 8), np.float32); W = np.ones((8, 4), np.float32)")
    run("P = jax.P")
    run("%mesh data=4,model=2")
    return run


def text(shown):
    return next(data["text/plain"] for data in shown.data)


def test_programs_that_are_the_same_say_so(cell):
    shown = cell("%%shard x=P('data') --compare auto,explicit\ny = jnp.tanh(x @ W)")
    assert "auto and explicit: identical except the permission to choose the output." in text(shown)


def test_where_explicit_axes_refuse_it_the_annotation_is_found(cell, ip):
    shown = cell(
        "%%shard x=P('data', 'model') W=P('model') --compare auto,explicit --save c\n"
        "h = jnp.tanh(x)\ny = h @ W"
    )
    assert "refused: ShardingTypeError" in text(shown)
    assert "Fix: y = jnp.matmul(h, W, out_sharding=P('data', None))" in text(shown)
    plan = ip.user_ns["c"].plan
    assert plan.same_collectives
    assert plan.texts[0].text.splitlines()[0].startswith("%%shard x=")


def test_the_last_expression_is_annotated_too(cell, ip):
    cell(
        "%%shard x=P('data', 'model') W=P('model') --compare auto,explicit --save c\n"
        "jnp.tanh(x) @ W"
    )
    assert [one.before for one in ip.user_ns["c"].plan.annotations] == ["jnp.tanh(x) @ W"]


def test_the_cell_runs_with_the_first_type(cell, ip):
    cell("%%shard x=P('data') --compare auto,explicit\ny = x @ W\nprint('once')")
    np.testing.assert_array_equal(ip.user_ns["y"], np.full((16, 4), 8))


def test_what_it_prints_is_printed_once(cell):
    shown = cell("%%shard x=P('data') --compare auto,explicit\nprint('once')\ny = x @ W")
    assert shown.out.count("once") == 1


def test_without_running_no_name_changes(cell, ip):
    cell("%%shard x=P('data') --compare auto,explicit --no-run\ny = x @ W")
    assert "y" not in ip.user_ns


def test_an_error_of_the_first_type_is_raised_after_the_comparison(cell):
    shown = cell(
        "%%shard x=P('data', 'model') W=P('model') --compare explicit,auto\ny = x @ W", fails=True
    )
    assert type(shown.result.error_in_exec).__name__ == "ShardingTypeError"
    assert "explicit | auto" in text(shown)


def test_manual_takes_the_same_cell(cell):
    shown = cell("%%shard x=P('data') --compare auto,manual --out y=P('data')\ny = jnp.tanh(x) * 2")
    assert "refused" not in text(shown)
    assert "auto and manual: " in text(shown)


@pytest.mark.parametrize("modes", ["auto", "auto,auto", "auto,wrong"])
def test_two_different_types_are_needed(cell, modes):
    said = cell(f"%%shard --compare {modes}\ny = x", fails=True).err
    assert "--compare:" in said


def test_a_call_is_compared_too(cell):
    cell("def f(x, W): return jnp.tanh(x @ W)")
    assert "auto | explicit" in text(cell("%shard f(x, W) --compare auto,explicit x=P('data')"))


SENDING = "x=P('model', 'data') W=P()"


def test_what_is_forbidden_is_forbidden_here_too(cell, ip):
    shown = cell(
        f"%%shard {SENDING} --compare auto,manual --forbid all-reduce,all-gather\ny = x @ W",
        fails=True,
    )
    assert "--forbid all-reduce,all-gather" in str(shown.result.error_in_exec)
    assert "y" not in ip.user_ns


@needs_libtpu
def test_for_devices_that_are_not_there_nothing_runs_and_no_error_is_raised(cell, ip):
    shown = cell("%%shard x=P('data') --on v5e:2x4 --compare auto,explicit\ny = x @ W")
    assert "identical" in text(shown)
    assert "y" not in ip.user_ns


@pytest.mark.parametrize("name", ["x", "y", "h"])
def test_a_report_is_not_saved_over_a_name_of_the_cell(cell, ip, name):
    shown = cell(f"%%shard x=P('data') --save {name}\nh = x @ W\ny = h", fails=True)
    assert f"--save {name} would replace {name}" in shown.err + str(shown.result.error_in_exec)
    assert ip.user_ns["x"].shape == (16, 8)


def test_an_option_without_a_call_is_refused(cell):
    shown = cell("%shard --forbid inferred", fails=True)
    assert "--forbid needs a call" in shown.err + str(shown.result.error_in_exec)


@pytest.fixture
def step(run):
    run("import jax, jax.numpy as jnp")
    run("P, S = jax.P, jax.ShapeDtypeStruct")
    run("x, w = S((256, 1024), jnp.bfloat16), S((1024, 4096), jnp.bfloat16)")
    run("%mesh data=4,model=2")
    cell = """%%shard x=P('data') w=P('data','model') --out g=P('data','model') {options}
g = jax.grad(lambda w: jnp.mean((x @ w).astype(jnp.float32) ** 2))(w)"""
    return lambda options: run(cell.format(options=options))


@needs_libtpu
@needs_gpu_compiler
def test_one_cell_is_compiled_for_several_targets(step, ip):
    shown = text(step("--compare cpu,v5e:2x4,h100:8 --save c"))
    comparison = ip.user_ns["c"]
    assert [column.report.mesh.target for column in comparison.columns] == [
        *("cpu", "v5e:2x4", "h100:8"),
    ]
    # The gradient of w, 1024 x 2048 on each device in the type that is sent: summed and kept in
    # full on CPU, 2 x 3/4 of it; three shards of it elsewhere.
    whole = 1024 * 2048
    sent = {
        column.name: {(one.kind, one.dtype, one.wire_bytes) for one in column.report.collectives}
        for column in comparison.columns
    }
    assert ("all-reduce", "f32", 2 * whole * 4 * 3 // 4) in sent["cpu"]
    for target in ("v5e:2x4", "h100:8"):
        assert ("reduce-scatter", "bf16", whole * 2 * 3 // 4) in sent[target]
    assert "gradient of w, line 2 [data]" in shown
    assert "1 x all-reduce f32, 12 MiB" in shown
    assert "1 x reduce-scatter bf16, 3.0 MiB" in shown
    words = " ".join(shown.split())
    assert "which the partitioner made as an all-reduce" in words
    assert words.startswith(
        "cpu | v5e:2x4 | h100:8: each device sends 18 MiB on cpu, 6.0 MiB on v5e:2x4 and h100:8 per "
        "run; the largest difference is for gradient of w, line 2 [data]: 1 x all-reduce f32, "
        "12 MiB on cpu, 1 x reduce-scatter bf16, 3.0 MiB on v5e:2x4 and h100:8"
    )
    assert (
        "cpu sends 2 collectives in f32 what the program has in bf16, because XLA for CPU computes "
        "bf16 in f32 and sends what it computed" in words
    )
    assert "of 16 GiB: fits" in words
    assert "instructions differ" not in words


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--compare cpu,moon", "'moon' is not a target, such as cpu, v5e:2x4 or h100:8"),
        ("--compare cpu", "expected different targets such as cpu,h100:8, got 'cpu'"),
        ("--compare h100:8,h100:1x8", "expected different targets"),
        ("--compare cpu,h100:16", "did you mean h100:2x8"),
        ("--compare cpu,attached --on cpu", "--compare names the targets, so leave out --on"),
    ],
)
def test_targets_that_cannot_be_compared(step, options, message):
    with pytest.raises(UsageError, match=message):
        step(options)


def test_a_target_whose_compiler_is_missing_names_the_command(step, monkeypatch):
    from shardnb.mesh import compilers

    monkeypatch.setattr(compilers, "gpu_plugin", lambda: None)
    with pytest.raises(UsageError, match="run `shardnb targets add gpu`"):
        step("--compare cpu,h100:7x8 --mesh data=28,model=2")
