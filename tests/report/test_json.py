"""A report as JSON: exact both ways, small, and refused if it is not one."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import fields, replace

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardnb.report import (
    Axis,
    Collective,
    InvalidInput,
    Location,
    Mesh,
    Report,
    Run,
    Source,
    Value,
)
from shardnb.report.json import schema
from shardnb.terms.collectives import KINDS

PAIRS = tuple((i, i + 1) for i in range(0, 8, 2))
REPORT = Report(
    title="f",
    mesh=Mesh((Axis("data", 4), Axis("model", 2, "explicit")), tuple(range(8)), emulated=True),
    inputs=(Value("x", "f32", (256, 512), (("data",), ("model",)), (64, 256)),),
    outputs=(Value("y", "bf16", (8, 8), None, (4, 8), grid=(2, 1), blocks=(0, 1) * 4),),
    collectives=(
        Collective(0, "all-reduce", ("model",), PAIRS, "f32", (64, 1024), 262144, trips=None),
        Collective(1, "all-reduce", None, PAIRS, "f32", (), 4, frames=(Location(0, 2),)),
    ),
    sources=(Source("Cell In[1]", "%%shard\ny = x @ w\n", cell_id="abc"),),
    versions={"jax": "0.12"},
    run=Run(compile_seconds=0.5),
    texts={"optimized": "HloModule <m>"},
)

names = st.text(max_size=20)
axes = st.sampled_from([("data",), ("model",), ("data", "model"), ("data:(2)2",), ()])
specs = st.none() | st.lists(axes, max_size=1).map(tuple)
groups = st.lists(st.lists(st.integers(0, 7), min_size=2, max_size=2).map(tuple), max_size=3)
collectives = st.builds(
    Collective,
    id=st.just(0),
    kind=st.sampled_from(list(KINDS)),
    axes=st.none() | axes,
    groups=groups.map(tuple),
    dtype=st.sampled_from(["f32", "pred"]),
    shape=st.lists(st.integers(0, 9), max_size=3).map(tuple),
    wire_bytes=st.integers(0, 2**50),
    trips=st.none() | st.integers(0, 9),
    why=names,
    producer_spec=specs,
    seconds=st.none() | st.floats(0, 1e3),
    op_name=names,
)


def test_the_round_trip_is_exact_with_all_that_takes_no_part_in_equality():
    back = Report.from_json(REPORT.to_json())
    assert back == REPORT
    assert (back.run, back.texts) == (REPORT.run, REPORT.texts)


@given(st.lists(collectives, max_size=4))
def test_the_round_trip_of_any_collectives(items):
    numbered = (replace(one, id=number) for number, one in enumerate(items))
    report = replace(REPORT, collectives=tuple(numbered))
    assert Report.from_json(report.to_json()) == report


def test_the_schema_describes_what_is_written():
    jsonschema.validate(json.loads(REPORT.to_json()), schema())


def test_seconds_and_texts_take_no_part_in_equality():
    assert replace(REPORT, run=Run(compile_seconds=9.0), texts={}) == REPORT
    assert replace(REPORT, title="g") != REPORT


def test_texts_can_be_left_out():
    assert "texts" not in json.loads(REPORT.to_json(texts=False))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not the JSON of a report"),
        ("{", "not the JSON of a report"),
        ("[1]", "no version number"),
        ('{"version": 99}', "version 99, and this shardnb reads up to 1: update shardnb"),
        ('{"version": 1}', "not a report: .*title"),
        (REPORT.to_json()[:-40], "not the JSON of a report"),
        (
            REPORT.to_json().replace('[["data"],["model"]]', '[["data"]]'),
            "the array 'x': expected a spec of 2 dimensions, got 1",
        ),
        (
            REPORT.to_json().replace('["model"]]', '["expert"]]', 1),
            "the array 'x': expected an axis of the mesh \\('data', 'model'\\), got 'expert'",
        ),
        (REPORT.to_json().replace('"groups":0', '"groups":7', 1), "not a report"),
        (REPORT.to_json().replace('"all-reduce"', '"gossip"'), "not a report: .*'gossip'"),
        (REPORT.to_json().replace('"type":"explicit"', '"type":"shy"'), "not a report: .*'shy'"),
        (
            replace(REPORT, version=2).to_json().replace('"all-reduce"', '"gossip"'),
            "version 2, and this shardnb reads up to 1: update shardnb",
        ),
    ],
)
def test_another_text_is_refused(text, message):
    with pytest.raises(InvalidInput, match=message):
        Report.from_json(text)


def test_half_a_surrogate_pair_is_written_as_its_escape():
    report = replace(REPORT, title="\ud800")
    assert Report.from_json(report.to_json()).title == r"\ud800"


def test_a_large_report_is_small_as_json():
    groups = tuple((i, i + 1024) for i in range(1024))
    one = replace(REPORT.collectives[0], groups=groups, frames=(Location(0, 2),), why="x" * 100)
    report = replace(REPORT, collectives=tuple(replace(one, id=i) for i in range(5000)))
    assert len(report.to_json(texts=False)) < 3_000_000


def test_a_saved_report_opens_without_jax(tmp_path):
    path = tmp_path / "report.json"
    path.write_text(REPORT.to_json())
    code = (
        "import sys; sys.modules['jax'] = None; sys.modules['jaxlib'] = None\n"
        "from shardnb import Report\n"
        f"print(Report.from_json(open({str(path)!r}).read()).title)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "f"


def test_every_field_but_the_required_ones_may_be_missing():
    required = {"title", "mesh", "version", "group_table"}
    assert set(json.loads(Report("t", REPORT.mesh).to_json())) == required
    assert {field.name for field in fields(Report)} > required - {"group_table"}
