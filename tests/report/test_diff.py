"""What changed between two reports."""

from __future__ import annotations

from dataclasses import replace

from shardnb.report import Axis, Collective, Memory, Mesh, Report, Run, Value

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
    assert str(REPORT.diff(later)) == "no difference"


def test_each_change_has_its_line():
    later = replace(
        REPORT,
        inputs=(replace(X, spec=(("data",), ()), shard_shape=(64, 512)),),
        collectives=(),
        memory=Memory(120, 20, 0),
    )
    assert str(REPORT.diff(later)).splitlines() == [
        "  input x: f32[256@data, 512@model] -> f32[256@data, 512]",
        "- all-reduce[model] f32[64, 1024]: x1",
        "  bytes sent per device: 262144 -> 0",
        "  bytes held per device: 120 -> 140",
    ]


def test_a_new_input_and_more_of_a_collective():
    later = replace(
        REPORT, inputs=(X, replace(X, name="y")), collectives=(REDUCE, replace(REDUCE, id=1))
    )
    lines = str(REPORT.diff(later)).splitlines()
    assert "+ input y: f32[256@data, 512@model]" in lines
    assert "  all-reduce[model] f32[64, 1024]: x1 -> x2" in lines


def test_trips_and_reasons_count():
    later = replace(REPORT, collectives=(replace(REDUCE, trips=None, reason="conflict"),))
    assert "+ all-reduce[model] f32[64, 1024] trips ? (conflict): x1" in str(REPORT.diff(later))
