"""What changed between two reports."""

from __future__ import annotations

from dataclasses import replace

from shardnb.report import Axis, Collective, Memory, Mesh, Report, Run, Value
from shardnb.report.changes import KindChange

PAIRS = tuple((i, i + 1) for i in range(0, 8, 2))
REDUCE = Collective(0, "all-reduce", ("model",), PAIRS, "f32", (64, 1024), 262144)
X = Value("x", "f32", (256, 512), (("data",), ("model",)), (64, 256))
REPORT = Report(
    "f",
    Mesh((Axis("data", 4), Axis("model", 2)), tuple(range(8))),
    inputs=(X,),
    collectives=(REDUCE,),
    memory=Memory(100, 20, 0),
)


def test_equal_reports_have_no_difference():
    later = replace(REPORT, run=Run(compile_seconds=3.0), collectives=(replace(REDUCE, id=7),))
    assert not REPORT.diff(later)
    assert str(REPORT.diff(later)) == "No difference"


def test_each_change_has_its_line():
    later = replace(
        REPORT,
        inputs=(replace(X, spec=(("data",), ()), shard_shape=(64, 512)),),
        collectives=(),
        memory=Memory(120, 20, 0),
    )
    head = "Each device sends 0 B instead of 256 KiB per run: -1 all-reduce (256 KiB)"
    assert [" ".join(line.split()) for line in str(REPORT.diff(later)).splitlines()] == [
        f"{head}, +20 B memory per device",
        "what before after",
        "input x f32[256@data, 512@model] f32[256@data, 512]",
        "- all-reduce[model] f32[64, 1024] x1",
        "bytes sent per device 256 KiB 0 B",
        "bytes held per device 120 B 140 B",
    ]


def test_a_diff_is_a_view_of_its_own():
    """A table in HTML, with nothing in it that a notebook leaves out."""
    bundle = REPORT.diff(replace(REPORT, collectives=()))._repr_mimebundle_()
    assert bundle["text/plain"] == str(REPORT.diff(replace(REPORT, collectives=())))
    assert "<b>Each device sends 0 B instead of 256 KiB per run</b>" in bundle["text/html"]
    assert "all-reduce[model] f32[64, 1024]" in bundle["text/html"]


def test_collectives_that_went_and_came_are_counted_by_kind():
    """An all-reduce goes on; of two all-gathers one has another shape now."""
    gather = replace(REDUCE, id=1, kind="all-gather", wire_bytes=100, trips=3)
    before = replace(REPORT, collectives=(REDUCE, gather, replace(gather, id=2)))
    now = replace(REPORT, collectives=(REDUCE, gather, replace(gather, id=2, shape=(8,))))
    assert before.diff(now).kinds == (
        KindChange("all-gather", -1, 300),
        KindChange("all-gather", 1, 300),
    )
    unknown = replace(REPORT, collectives=(REDUCE, replace(gather, trips=None, least_trips=2)))
    assert REPORT.diff(unknown).kinds == (KindChange("all-gather", 1, 200, at_least=True),)


def test_what_the_last_run_changed_takes_no_part_in_equality_and_survives_json():
    changed = replace(REPORT, since=REPORT.diff(replace(REPORT, collectives=())))
    assert changed == REPORT
    assert Report.from_json(changed.to_json()).since == changed.since


def test_a_new_input_and_more_of_a_collective():
    later = replace(
        REPORT, inputs=(X, replace(X, name="y")), collectives=(REDUCE, replace(REDUCE, id=1))
    )
    lines = [" ".join(line.split()) for line in str(REPORT.diff(later)).splitlines()]
    assert "+ input y f32[256@data, 512@model]" in lines
    assert "all-reduce[model] f32[64, 1024] x1 x2" in lines


def test_trips_and_reasons_count():
    later = replace(REPORT, collectives=(replace(REDUCE, trips=None, reason="conflict"),))
    lines = [" ".join(line.split()) for line in str(REPORT.diff(later)).splitlines()]
    assert "+ all-reduce[model] f32[64, 1024] trips ? (conflict) x1" in lines
