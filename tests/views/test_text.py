"""The terminal's text."""

import time
from dataclasses import replace

import pytest

from shardnb.report import (
    Axis,
    Finding,
    Fix,
    Location,
    Memory,
    Mesh,
    ProposedEdit,
    Report,
    Source,
    Value,
)
from shardnb.report.changes import Outcome
from shardnb.report.cost import Cost
from shardnb.views import text
from shardnb.views.sent import rows_of

SKETCH = """\
mesh data=4 x model=2 (Auto)   8 emulated CPU devices   jax 0.12.0.1   compiled in 0.180 s

Each device sends 256 KiB per run. A compiled fix avoids all of it.

1  all-reduce[model] at line 1: h = x @ W                                            256 KiB per run
   Both operands of x @ W are sharded over model on the contracting dim, so each device holds a
   partial sum.
   Fix: x=P('data') W=P(None, 'model')
        -> sends nothing, +128 KiB memory per device  [compiled]

What is sent        for                 times   per run   why
all-reduce[model]   h = x @ W, line 1       1   256 KiB   completes a partial sum

Memory    1.3 MiB per device: 1.1 MiB arguments, 256 KiB output, 0 B temporaries
Inputs    x   f32[256@data, 512@model]   64 x 256 per device      64 KiB
          W   f32[512@model, 1024]       256 x 1024 per device   1.0 MiB   replicated over data (x4)
Outputs   y   f32[256@data, 1024]        64 x 1024 per device    256 KiB   replicated over model (x2)

About     Bytes are estimated with the ring algorithm. Emulated on CPU: the compiler for another
          device may choose otherwise."""

QUIET = """\
mesh data=8 (Explicit)   8 TPU v5 lite devices (v5e:2x4)

No communication.

Memory    8 B per device: 4 B arguments, 4 B output, 0 B temporaries
Inputs    x   f32[8@data]   1 per device   4 B
Outputs   y   f32[8@data]   1 per device   4 B"""


def alone(report, **changes):
    """Return the report with its first collective changed."""
    return replace(report, collectives=(replace(report.collectives[0], **changes),))


def flat(told):
    """Return a text without its line breaks."""
    return " ".join(told.split())


def test_the_sketch_reads_as_the_look_says(report):
    assert text.render(report) == SKETCH


def test_a_report_as_a_string_is_its_text(report):
    assert str(report) == SKETCH


def test_no_communication_is_one_sentence():
    mesh = Mesh((Axis("data", 8, "explicit"),), tuple(range(8)), "v5e:2x4", "tpu", "TPU v5 lite")
    x, y = (Value(name, "f32", (8,), (("data",),), (1,)) for name in "xy")
    memory = Memory(4, 4, 0)
    sources = (Source("cell", "y = x * 2"),)
    quiet = Report("cell", mesh, (x,), (y,), memory=memory, sources=sources)
    assert text.render(quiet) == QUIET
    assert text.render(quiet, "brief") == f"{QUIET.splitlines()[0]}   No communication."


def test_brief_ends_with_what_is_sent(report):
    assert text.render(report, "brief") == SKETCH.partition("\n\nMemory")[0]


def test_another_view_is_refused_by_name(report):
    with pytest.raises(ValueError, match="expected the view 'full' or 'brief', got 'short'"):
        text.render(report, "short")


def test_executions_are_counted(report):
    told = text.render(alone(report, trips=4))
    assert "h = x @ W, line 1       4   1.0 MiB" in told
    assert "Each device sends 1.0 MiB per run" in told


def test_unknown_trips_are_said_to_be_unknown(report):
    told = flat(text.render(alone(report, trips=None)))
    assert "line 1 unknown unknown" in told
    assert "How much each device sends per run is not known." in told
    assert "1 collective is in a loop whose trip count is not known." in told


def test_who_asked_is_not_guessed(report):
    told = flat(text.render(alone(report, asked_by=None, reason=None, why="", fixes=None)))
    assert "inserted by the compiler, origin unknown" in told
    assert "1 all-reduce" not in told


def test_what_the_partitioner_did_not_make_is_called(report):
    changes = {"asked_by": None, "reason": None, "why": "", "generated": False, "fixes": None}
    told = text.render(alone(report, **changes))
    assert "256 KiB   you called this collective" in told
    assert "Each device sends 256 KiB per run, all of it in collectives that you called." in told


def test_groups_that_match_no_axes_are_counted(report):
    told = text.render(alone(report, axes=None, groups=((0, 3), (1, 2), (4, 5, 6))))
    assert "all-reduce[3 groups of 2 to 3]" in told


def test_equal_collectives_are_one_row(report):
    first = replace(report.collectives[0], fixes=None)
    third = replace(first, id=2, shape=(8,), wire_bytes=32)
    told = text.render(replace(report, collectives=(first, replace(first, id=1), third)))
    assert "h = x @ W, line 1       2   512 KiB" in told
    assert "h = x @ W, line 1       1      32 B" in told


def test_gradients_of_all_layers_are_one_row(report):
    first = replace(report.collectives[0], fixes=None, role="gradient")
    layers = tuple(replace(first, id=i, role_of=f"params['layers'][{i}]['w']") for i in range(12))
    told = flat(text.render(replace(report, collectives=layers)))
    assert "gradient of params['layers'][*]['w'], line 1 12 3.0 MiB" in told
    assert "Each device sends 3.0 MiB per run; all of it is typical of data parallelism." in told
    assert "1 all-reduce" not in told  # nothing to look at


def test_what_is_typical_is_told_apart_from_what_is_not(report):
    """Half of 256 KiB, and a reshard that the compiler inserted: it is what to look at."""
    gradient = replace(report.collectives[0], fixes=None, role="gradient", wire_bytes=128 * 1024)
    reshard = replace(gradient, id=1, role=None, kind="all-gather", reason="conflict", why="")
    told = flat(text.render(replace(report, collectives=(gradient, reshard))))
    assert "sends 256 KiB per run; 128 KiB is typical of data parallelism." in told
    assert "1 all-gather[model] at line 1: h = x @ W 128 KiB per run" in told


def test_only_a_compiled_fix_shows_what_is_avoidable(report):
    fix = Fix("W=P()", (1, 1), (256 * 1024, 64 * 1024), (0, 0))
    told = text.render(alone(report, fixes=(fix,)))
    assert "A compiled fix avoids 192 KiB of it." in told
    assert "None of the edits that were tried sends less." in text.render(alone(report, fixes=()))
    assert "fix" not in text.render(alone(report, fixes=None)).splitlines()[2]


def test_an_edit_that_was_not_compiled_is_called_so(report):
    found = Finding(
        "lost sharding", "x loses data", Location(0, 1), edits=(ProposedEdit("x = f(x)"),)
    )
    told = text.render(replace(report, collectives=(), findings=(found,)))
    assert "   Try: x = f(x)\n        [not compiled]" in told


def test_findings_are_ranked_by_what_they_cost(report):
    names = (("replicated", 3), ("donation", 7), ("moved", 5))
    findings = tuple(Finding(kind, "m", None, size << 20) for kind, size in names)
    told = text.render(replace(report, collectives=(), findings=findings)).splitlines()
    heads = [" ".join(line.split()) for line in told if line[:1].isdigit()]
    assert heads == [
        "1 Donated input not reused 7.0 MiB per device",
        "2 Argument resharded in each call 5.0 MiB per device",
        "3 Large input replicated 3.0 MiB per device",
    ]


def test_a_finding_takes_the_place_of_the_collectives_that_it_is_about(report):
    one = replace(report.collectives[0], kind="all-gather", reason="conflict")
    found = Finding("lost sharding", "x loses data", Location(0, 1), collectives=(0,))
    told = text.render(replace(report, collectives=(one,), findings=(found,)))
    heads = [line for line in told.splitlines() if line[:1].isdigit()]
    assert len(heads) == 1
    assert heads[0].split("  ")[1] == "Sharding lost at line 1: h = x @ W"
    assert "operands are sharded differently (see 1)" in told
    assert "Fix: x=P('data') W=P(None, 'model')" in told


def test_at_most_five_points_are_shown(report):
    findings = tuple(Finding("replicated", "m", None, i) for i in range(9))
    told = text.render(replace(report, collectives=(), findings=findings))
    assert [line[0] for line in told.splitlines() if line[:1].isdigit()] == list("12345")
    assert "   and 4 more\n" in told


def test_out_of_memory_comes_first(report):
    found = Finding("out-of-memory", "it needs 20 GiB and has 16 GiB")
    told = text.render(replace(report, findings=(found,)))
    assert "   It needs 20 GiB and has 16 GiB.\n2  all-reduce" in told
    assert "\n1  Out of memory" in told


def test_outcomes_stand_under_the_verdict(report):
    outcomes = (
        Outcome("forbid", passed=False, words=("inferred",)),
        Outcome("check", passed=True, words=("they agree",)),
    )
    told = text.render(replace(report, outcomes=outcomes)).splitlines()
    assert told[3:5] == [
        "[failed] --forbid inferred: the program has 1 such collective.",
        "[passed] --check: they agree.",
    ]


def test_what_changed_since_the_last_run_is_one_line(report):
    before = replace(report, collectives=())
    told = text.render(replace(report, since=before.diff(report))).splitlines()
    assert told[3] == "Since the last run of this cell: +1 all-reduce (256 KiB)."
    told = text.render(replace(report, since=report.diff(report))).splitlines()
    assert told[3] == "Since the last run of this cell: nothing changed."


def test_a_brief_report_of_nothing_still_says_what_changed_and_what_was_checked(report):
    quiet = replace(report, collectives=())
    told = text.render(replace(quiet, since=report.diff(quiet)), "brief").splitlines()
    assert told[2:] == [
        "No communication.",
        "Since the last run of this cell: -1 all-reduce (256 KiB).",
    ]
    outcome = Outcome("check", passed=True, words=("they agree",))
    told = text.render(replace(quiet, outcomes=(outcome,)), "brief").splitlines()
    assert told[2:] == ["No communication.", "[passed] --check: they agree."]


def test_a_module_is_told_without_the_subscripts_of_einsum(report):
    told = text.render(alone(report, module="Net/Dense_0/bd,df->bf"))
    assert "line 1 in Net/Dense_0 " in told


def test_library_lines_are_never_shown(rich_report):
    assert "lax.py" not in text.render(rich_report)


def test_a_finding_has_its_line_and_price(rich_report):
    told = flat(text.render(rich_report))
    head = "Less sharded than the spec that you wrote at line 2: y = jnp.tanh(h) 1.0 MiB per device"
    assert head in told


def test_an_unknown_sharding_is_said(rich_report):
    assert "sharding not known" in text.render(replace(rich_report, inputs=rich_report.inputs[-2:]))


def test_a_spec_that_was_not_followed_is_said(rich_report):
    assert "replicated over data, model (x8); you wrote P('data')" in text.render(rich_report)


def test_sharded_arrays_come_before_replicated_ones(report):
    value = report.inputs[0]
    plain = replace(value, name="b", spec=((), ()), shard_shape=value.shape)
    told = text.render(replace(report, inputs=(plain, value)))
    assert told.index("x   f32") < told.index("b   f32")


def test_a_report_of_nothing_is_still_a_report():
    empty = Report("f", Mesh((), (0,)))
    assert text.render(empty).splitlines()[0] == "no mesh   1 CPU device"


def test_a_line_that_the_source_lacks_still_shows_its_collective(report):
    assert "line 9 " in text.render(alone(report, frames=(Location(0, 9),)))


def test_five_thousand_collectives_are_a_page_not_a_wall(many_report):
    start = time.perf_counter()
    told = text.render(many_report)
    assert time.perf_counter() - start < 5
    assert told.count("\n") < 40
    assert "Each device sends at least" in told
    assert "10 collectives are in loops whose trip count is not known" in flat(told)


def test_every_collective_of_many_is_counted(many_report):
    rows = rows_of(many_report.collectives, many_report)
    assert sum(len(row.members) for row in rows) == 5000
    told = text.render(many_report)
    left = 5000 - sum(len(row.members) for row in rows[:10])
    assert f"and {left:,} more collectives, " in told


def test_whether_a_program_fits_is_said_where_the_memory_is_known(report):
    cost = Cost("TPU v5e", "", 1e-3, memory_size=16 << 30)
    told = flat(text.render(replace(report, cost=cost)))
    assert "Each device sends 256 KiB per run, about 1.00 ms on TPU v5e." in told
    assert "It needs 1.3 MiB of the 16 GiB memory per device: it fits, with 16.0 GiB left." in told
    small = replace(report, cost=replace(cost, memory_size=1 << 20))
    assert "of the 1.0 MiB memory per device: it does not fit: 320 KiB too much." in flat(
        text.render(small)
    )


def test_an_unpartitioned_program_is_said_to_be_not_known(report):
    told = flat(text.render(replace(report, partitioned=False)))
    assert "Communication is not known: the program is not partitioned yet" in told


def test_hostile_texts_cannot_move_the_cursor(hostile_report):
    told = text.render(hostile_report)
    assert all(line.isprintable() for line in told.split("\n"))
