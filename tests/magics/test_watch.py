"""`--watch`: what a cell's own jit calls compile, with the cell as it stands."""

from __future__ import annotations

import jax
import pytest
from jax._src import compiler

import shardnb as sn
from shardnb.jax_compat import parts
from shardnb.magics.watched import watching

PLACED = """
from jax.sharding import PartitionSpec as Q
m = jax.make_mesh((1,), ('one',), axis_types=(jax.sharding.AxisType.Auto,))
f = jax.jit(lambda a, b: a @ b)
"""


@pytest.fixture
def cell(ip, run):
    run("%mesh data=4,model=2")
    run("x = np.ones((16, 8), np.float32)\nW = np.ones((8, 4), np.float32)")
    run(
        "%%shard --view none x=P(None, 'model') W=P('model') --out a=P(None, 'model') b=P('model')\na, b = x, W"
    )
    run(PLACED)
    return run


def session(ip):
    return ip.magics_manager.registry["ShardMagics"].session


def test_a_jitted_call_is_reported_with_axes_and_lines(ip, cell):
    shown = cell("%%shard --watch\nn = 3\ny = f(a, b)")
    (report,) = shown.reports
    (collective,) = session(ip).last.collectives
    assert (collective.kind, collective.axes, collective.shape) == (
        "all-reduce",
        ("model",),
        (16, 4),
    )
    # Both operands are sharded over model on the dimension that is summed over.
    assert (collective.asked_by, collective.reason) == ("inferred", "partial-sum")
    assert collective.line is None or collective.line <= 3
    assert ip.user_ns["n"] == 3
    assert float(ip.user_ns["y"][0, 0]) == 8
    assert report["mesh"]["axes"][1]["name"] == "model"


def test_a_watched_program_has_the_findings_that_its_text_shows(ip, cell):
    cell("%%shard --watch\ntotal = jax.jit(lambda v: v.sum(), donate_argnums=0)(b)")
    (finding,) = [f for f in session(ip).last.findings if f.kind == "donation"]
    # b is 8x4 floats, sharded over model alone: 4 rows of it are on each device.
    assert finding.wasted_bytes == 4 * 4 * 4


def test_a_program_that_is_lowered_by_hand_is_reported(cell):
    assert len(cell("%%shard --watch\nc = f.lower(a, b).compile()").reports) == 1


def test_a_function_of_the_cell_is_reported_at_its_line(ip, cell):
    cell("%%shard --watch\n@jax.jit\ndef g(a, b):\n    h = a @ b\n    return h * 2\ny = g(a, b)")
    assert session(ip).last.collectives[0].line == 4


def test_programs_without_collectives_are_counted_in_one_line(cell):
    shown = cell(
        "%%shard --watch\ny = jax.jit(lambda v: v * 2)(x)\ny2 = jax.jit(lambda v: v * 3)(x)"
    )
    assert shown.reports == []
    assert shown.out == "2 programs were compiled, without collectives.\n"


def test_a_second_run_says_that_nothing_was_compiled(cell):
    cell("g = jax.jit(lambda v: v * 2)")
    cell("%%shard --watch\ny = g(x)")
    assert cell("%%shard --watch\ny = g(x)").out.startswith("Nothing was compiled.")


def test_the_reports_are_saved_as_a_list(ip, cell):
    cell("%%shard --watch --save rs\ny = f(a, b)")
    assert [len(report.collectives) for report in ip.user_ns["rs"]] == [1]


def test_specs_have_no_meaning(cell):
    assert "takes no name=SPEC" in cell("%%shard --watch x=P()\ny = x", fails=True).err


def test_the_last_expression_shows(cell):
    assert cell("%%shard --watch\nx.sum()").result.result == 128


def test_a_forbidden_collective_is_an_error(cell):
    shown = cell("%%shard --watch --forbid all-reduce\ny = f(a, b)", fails=True)
    assert type(shown.result.error_in_exec).__name__ == "ForbiddenCollectives"


def test_an_error_shows_what_was_compiled_and_the_users_line(cell):
    shown = cell("%%shard --watch\ny = f(a, b)\n1 / 0", fails=True)
    assert len(shown.reports) == 1
    assert "----> 3 1 / 0" in shown.out


def test_the_hook_is_always_removed():
    before = compiler.backend_compile_and_load
    seen = []

    def interrupted():
        with watching() as programs:
            seen.append(programs)
            jax.jit(lambda v: v + 41)(1.0)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [program.title for program in seen[0]] == ["jit__lambda"]
    assert compiler.backend_compile_and_load is before


def test_a_watched_cell_leaves_the_options_of_a_compile_as_they_were(cell):
    options = []

    def kept(*given, **named):
        options.append(given[3] if len(given) > 3 else named["options"])
        return original(*given, **named)

    original = compiler.backend_compile_and_load
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiler, "backend_compile_and_load", kept)
        cell("%%shard --watch\ny = f(a, b)")
    assert [each.env_option_overrides for each in options] == [[]]


def test_a_report_inside_a_watched_block_has_its_own_dumps():
    shape = jax.ShapeDtypeStruct((8,), "float32")
    with watching() as programs:
        report = sn.explain(
            lambda v: v.sum(), shape, mesh="data=4", in_specs=(jax.P("data"),), origins=False
        )
    assert [c.reason for c in report.collectives] == ["partial-sum"]
    assert programs == []


def test_without_dumps_a_program_is_reported_as_far_as_its_text_goes(cell, monkeypatch):
    monkeypatch.setattr(parts, "_gone", {})
    monkeypatch.delattr("jax._src.compiler.backend_compile_and_load")
    monkeypatch.setattr("jax._src.compiler.compile_or_get_cached", _without_cache)
    (report,) = cell("%%shard --watch\ny = f(a, b)").reports
    (collective,) = report["collectives"]
    assert (collective["kind"], collective.get("reason")) == ("all-reduce", None)


def _without_cache(backend, computation, devices, options, callbacks, executable_devices, *_):
    """Compile as JAX does where its function for that has another name."""
    return backend.compile_and_load(
        computation, executable_devices=executable_devices, compile_options=options
    )


def test_where_jax_cannot_show_what_it_compiles_the_cell_does_not_run(ip, run, monkeypatch):
    monkeypatch.setattr(parts, "_gone", {})
    for part in (parts.BACKEND_COMPILE, parts.COMPILED_MODULES):
        monkeypatch.delattr(f"{part.module}.{part.attribute}")
    shown = run("%%shard --watch\nran = True", fails=True)
    what = parts.COMPILED_MODULES.what
    assert f"--watch is not available: {what} is not available" in shown.err + shown.out
    assert "Nothing was compiled" not in shown.out
    assert "ran" not in ip.user_ns
