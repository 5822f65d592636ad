"""The live view's words: what the text says, kept once, and no word of the front end's own."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from shardnb.report import (
    Axis,
    Blocked,
    Collective,
    Finding,
    Fix,
    Location,
    Memory,
    Mesh,
    Origin,
    Report,
    Run,
    Source,
    Step,
    Value,
    why,
)
from shardnb.report.cost import Cost
from shardnb.report.typed import TypedLine, TypedValue
from shardnb.views import live, text
from shardnb.views.content import content_of
from shardnb.views.formatting import clean
from shardnb.views.sent import rows_of

MESH = Mesh(
    axes=(Axis("data", 4), Axis("model", 2, "explicit")),
    device_ids=(1, 0, 2, 3, 4, 5, 6, 7),
    target="v5e:2x4",
    kind="TPU v5 lite",
)
PAIRS = ((0, 1), (2, 3), (4, 5), (6, 7))
FIX = Fix("x=P('data')", (2, 1), (4096, 2304), (0, -512))
PLAIN = Collective(0, "all-reduce", ("model",), PAIRS, "f32", (64, 1024), 2304)
COLLECTIVES = (
    PLAIN,
    replace(PLAIN, id=1, asked_by="inferred", reason="partial-sum", trips=1200, fixes=(FIX,)),
    replace(PLAIN, id=2, axes=(), asked_by="requested", reason="conflict", detail="axis clash"),
    replace(PLAIN, id=3, axes=None, groups=((0, 1, 2), (3, 4, 5, 6, 7)), generated=True),
    replace(PLAIN, id=4, kind="collective-permute", trips=None, seconds=1.5e-5, fixes=()),
    replace(PLAIN, id=5, asked_by="inferred", reason="halo", full_remat=True),
    replace(PLAIN, id=6, asked_by="inferred", reason="whole-axis", combined_with=(1, 2)),
    replace(PLAIN, id=7, asked_by="inferred", why="because of\x07it", phase="backward"),
    replace(
        PLAIN,
        id=8,
        asked_by="requested",
        reason="output-spec",
        producer="h",
        producer_spec=(("data",), (), ("model", "data")),
        consumer="y's",
        needed_spec=((), ()),
    ),
    replace(PLAIN, id=9, trips=None, least_trips=1, within=("while condition",)),
    replace(PLAIN, id=10, trips=None, least_trips=2400, within=("while condition",)),
)
PLACES = (Location(0, 1), Location(0, 2), Location(1, 7), Location(2, 3))
VALUES = (
    Value("x", "f32", (256, 512), (("data",), ("model",)), (64, 256)),
    Value("w", "bf16", (256, 512), (("model",), ()), (128, 512), requested=((), ())),
    Value("s", "s4", (7,), ((),), (7,), unreduced=("data",), closed_over=True),
    Value("half", "f32", (8,), (("data:(2)2",),), (4,)),
    Value("odd", "f32", (8,), None, (4,), grid=(2,), blocks=(0, 0, 0, 1, 1, 1, 1, 1)),
    Value("lost", "f32", (8,), None, (8,)),
    Value("scalar", "pred", (), (), ()),
)
STEPS = tuple(
    Step("dot_general", "forward", f"v{i}", f"v{i + 1}", Location(0, i), i) for i in range(1, 8)
)
SIDEWAYS = Step("add", "sideways", "a", "b", Location(1, 7), 9)
SPREAD = (
    replace(VALUES[0], name="h", location=Location(0, 1), origins=(Origin("data", "input", "x"),)),
    replace(VALUES[0], name="long", origins=(Origin("data", "output", "y", steps=STEPS),)),
    replace(VALUES[0], name="typed", origins=(Origin("data", "type"), Origin("model", "type"))),
    replace(
        VALUES[0],
        name="mixed",
        location=Location(1, 7),
        manual=("model",),
        propagated=((), ()),
        origins=(
            Origin("data", "constraint", "P('data')", Location(0, 2), (SIDEWAYS,)),
            Origin("model", "shard_map", "", Location(0, 2), None),
        ),
        blocked=(Blocked("model", "x", "reduction", "it is summed"),),
    ),
    replace(VALUES[0], name="then", origins=(Origin("data", "input", "x", None, STEPS[:2], 3),)),
    replace(VALUES[0], name="who", origins=(Origin("data", "unknown"), Origin("model", "type"))),
    Value("add at line 2", "f32", (8,), ((),), (8,), location=Location(0, 2)),
    VALUES[4],
)


COST = Cost("TPU v5e", "a page", 2e-3, 1e-3, None, {"data": 1.5e-3, "model": 5e-4}, unpriced=1)
TYPED = (
    TypedLine("", (TypedValue("a", "f32[8@data]", "f32", (8,), (("data",),)),)),
    TypedLine(
        "pvary",
        (TypedValue("b", "f32[8]{V:data}", "f32", (8,), ((),)),),
        ("a",),
        "axes=('data',)",
        ("shard_map",),
        inserted=True,
        location=Location(0, 2),
    ),
)


@pytest.fixture(scope="module")
def report():
    """Return a report that has a bit of everything that words are for."""
    collectives = tuple(
        replace(one, frames=(PLACES[i % 4],) if i != 5 else ()) for i, one in enumerate(COLLECTIVES)
    )
    return Report(
        title="cell",
        mesh=MESH,
        inputs=VALUES,
        outputs=VALUES[:1],
        values=SPREAD,
        collectives=collectives,
        findings=(
            Finding("silent replication", "w is replicated", Location(1, 7), 1 << 21, "more"),
            Finding("donation", "could be donated"),
        ),
        memory=Memory(arguments=1114112, outputs=2304, temporaries=0, aliased=512),
        sources=(
            Source("cell", "h = x @ W\ny = jnp.tanh(h)\n"),
            Source("layers.py", "a\nb\n", 7),
            Source("site.py"),
        ),
        versions={"jax": "0.12.0.1"},
        cost=COST,
        typed=TYPED,
        notes=("A note.",),
        run=Run(compile_seconds=0.1804, run_seconds=0.00123),
    )


@pytest.fixture(scope="module")
def said(report):
    return live.said_of(report)


def told(columns, name, number):
    column = columns[name]
    return column.texts[int(column.at.split()[number]) if column.at else 0]


def collective_texts(report, said, number):
    """Return a collective's texts as the front end fills them."""
    one = report.collectives[number]
    fields = {"why": one.why, "producer": one.producer or "", "consumer": one.consumer or ""}
    fields = {name: clean(text.strip()) for name, text in fields.items()}
    texts = {name: told(said.collectives, name, number) for name in live.COLLECTIVE_TEXTS}
    filled = {name: texts[name].format(**fields) for name in ("because", "further", "made", "used")}
    return texts | filled


def test_the_header_the_verdict_and_the_facts(report, said):
    content = content_of(report)
    assert said.header == content.header
    assert said.verdict == " ".join(content.verdict)
    assert said.memory == content.memory
    assert (said.cost, said.assumptions) == (content.cost, content.assumptions)
    heads = tuple((one.head, one.cost, one.cause, one.tone) for one in content.points)
    assert tuple((one.head, one.cost, one.cause, one.tone) for one in said.points) == heads
    assert said.about == " ".join(content.about)


def test_the_rows_of_what_is_sent(report, said):
    content = content_of(report)
    for row, of in zip(said.rows, content.rows, strict=True):
        assert row.ids == " ".join(str(one.id) for one in of.members)
        texts = (row.name, row.what, row.times, row.sends, row.cause, row.tone)
        assert texts == (of.name, of.where, of.times, of.sends, of.cause, of.tone)


def test_the_arrays(report, said):
    content = content_of(report)
    for part, values, first in (
        (content.inputs, report.inputs, 0),
        (content.outputs, report.outputs, len(report.inputs)),
    ):
        told_of = said.inputs if first == 0 else said.outputs
        assert told_of.summary == part.summary
        for row, name, members in zip(part.rows, told_of.names, told_of.members, strict=True):
            numbers = [int(number) for number in members.split()]
            assert [values[number] for number in numbers] == list(row.members)
            number = first + numbers[0]
            assert (name, told(said.arrays, "type", number)) == (row.name, row.type)
            assert told(said.arrays, "held", number).startswith(row.shard)
            rest = [told(said.arrays, text, number) for text in ("copies", "remarks")]
            assert "; ".join(filter(None, rest)) == "; ".join(row.remarks)


@pytest.mark.parametrize("number", range(len(COLLECTIVES)))
def test_each_collective(report, said, number):
    (row,) = rows_of(report.collectives[number : number + 1], report)
    texts = collective_texts(report, said, number)
    assert texts["name"] == row.name
    assert texts["cause"] == row.cause
    assert texts["because"] == row.because
    assert texts["further"] == " ".join(row.further)
    if row.first.trips == 1:
        assert texts["size"] == row.sends


def test_what_is_moved_and_for_whom(report, said):
    texts = collective_texts(report, said, 8)
    assert texts["made"] == "h is sharded as P('data', None, ('model', 'data'))"
    assert texts["used"] == "y's needs it as P()"
    assert texts["grouping"] == "4 groups of 2"


@pytest.mark.parametrize("number", range(len(SPREAD)))
def test_why_a_value_lies_as_it_does(report, said, number):
    array = len(report.inputs) + len(report.outputs) + number
    value = report.values[number]
    origin = value.origins[0].name if value.origins else ""
    fields = {"name": value.name, "type": told(said.arrays, "type", array), "from": origin}
    text = told(said.arrays, "why", array).format(**fields)
    assert text == why.explain(report, value.name)


def test_braces_of_the_users_own_stay(report):
    odd = replace(PLAIN, why="{why} of {0} is {", producer="{producer}")
    other = replace(report, collectives=(odd,))
    texts = collective_texts(other, live.said_of(other), 0)
    assert texts["because"] == "{why} of {0} is {."
    assert texts["made"] == "{producer}"


def test_a_sentence_that_names_other_operations_is_kept_once(report):
    alike = tuple(
        replace(PLAIN, id=i, reason="conflict", producer=f"dot_general.{i}") for i in range(100)
    )
    said = live.said_of(replace(report, collectives=alike))
    assert len(said.collectives["because"].texts) == 1
    assert said.collectives["because"].at == ""


def test_an_editor_has_room_for_fewer_badges_than_the_report(report):
    place = (Location(0, 1),)
    at = tuple(
        replace(PLAIN, id=i, frames=place, kind=kind, wire_bytes=1024, trips=4)
        for i, kind in enumerate(("all-gather", "all-reduce", "all-gather", "all-to-all"))
    )
    ((line, *_), *_) = live.said_of(replace(report, collectives=at)).lines
    assert [badge.ids for badge in line.badges] == ["0 2", "1", "3"]
    assert line.badges[0].head == "2 all-gathers[model] f32[64, 1024]"
    assert line.badges[0].sends == "8.0 KiB"
    assert [badge.mark for badge in line.marks] == [
        "2 all-gathers 8.0 KiB model",
        "all-reduce 1.0 KiB model x4",
        "and 1 more",
    ]


def test_many_at_a_line_are_told_together_and_the_rest_is_counted(report):
    place = (Location(0, 1),)
    at = tuple(
        replace(PLAIN, id=i, frames=place, shape=(8, i % 6 + 1), wire_bytes=1024 * (i + 1))
        for i in range(12)
    )
    ((line, *_), *_) = live.said_of(replace(report, collectives=at)).lines
    # Six shapes, twice each: 1 + 7, 2 + 8, ... 6 + 12 KiB. The four that send most are shown.
    assert [badge.ids for badge in line.badges] == ["5 11", "4 10", "3 9", "2 8", "1 7 0 6"]
    assert line.badges[0].sends == "18 KiB"
    assert (line.badges[4].head, line.badges[4].sends) == ("", "and 4 more collectives, 18 KiB")
    assert line.badges[4].mark == "and 4 more"


def test_equal_inputs_are_one_row(report):
    one = VALUES[0]
    many = tuple(replace(one, name=f"layers[{i}]['w']") for i in range(42))
    rows = live.said_of(replace(report, inputs=many)).inputs
    assert rows.names == ("layers[*]['w']",)
    assert rows.members == (" ".join(map(str, range(42))),)
    # 64 x 256 floats each.
    assert rows.summary == "42 inputs, 2.6 MiB per device"


def test_a_brief_view_holds_the_whole_report(report):
    bundle = live.mimebundle(report, "brief")
    assert bundle[live.MIME]["view"] == "brief"
    assert Report.from_json(json.dumps(bundle[live.MIME])) == report
    assert "text/html" not in bundle
    assert bundle["text/plain"] == text.render(report, "brief")


def test_a_large_report_is_packed_and_read_again(report):
    values = tuple(replace(VALUES[0], name=f"value {i}") for i in range(3000))
    large = replace(report, values=values)
    kept = live.mimebundle(large)[live.MIME]
    assert set(kept) == {"version", "deflated"}
    assert Report.from_json(json.dumps(kept)) == large
    assert len(kept["deflated"]) < len(large.to_json()) / 7


@pytest.mark.parametrize("deflated", ["!", "AAAA", 3])
def test_a_packed_report_that_is_damaged_is_said_to_be(deflated):
    kept = json.dumps({"version": 1, "deflated": deflated})
    with pytest.raises(ValueError, match="this report is damaged"):
        Report.from_json(kept)


def test_a_value_is_told_as_it_was_before_each_step(report):
    step = replace(STEPS[0], number=3)
    origins = (Origin("data", "input", "x"), Origin("model", "input", "W", steps=(step,)))
    value = replace(VALUES[0], name="h", origins=origins)
    said = live.said_of(replace(report, inputs=(), outputs=(), findings=(), values=(value,)))
    assert (said.arrivals.texts, said.arrivals.at) == (("0 3",), "")
    # The value itself, then as it was from the start and from step 3 on.
    assert [told(said.arrays, "type", i) for i in (1, 2)] == [
        "f32[256@data, 512]",
        "f32[256@data, 512@model]",
    ]
    assert told(said.arrays, "held", 1) == "64 x 512 per device, 128 KiB"


def test_what_is_not_known_of_a_steps_time_is_said_by_no_placement(report):
    origins = (
        Origin("data", "input", "x", steps=STEPS[:1]),
        Origin("model", "unknown", steps=None),
    )
    value = replace(VALUES[0], name="h", origins=origins)
    said = live.said_of(replace(report, values=(value,)))
    assert said.arrivals.texts == ("?",)


def test_a_collective_is_told_at_the_frame_that_its_text_names():
    """An explained line before a library's, a file's first line in a dump, and none at all."""
    frames = (Location(1, 7), Location(0, 2))
    ones = (replace(PLAIN, frames=frames), replace(PLAIN, id=1), replace(PLAIN, id=2))
    cell = Source("cell", "a\nb"), Source("layers.py", "c", 7)
    report = Report("cell", MESH, collectives=ones, sources=cell)
    assert live.said_of(report).collectives["home"] == live.Column(("1", "-"), "0 1 1")
    dumped = replace(report, sources=(Source("train.py", "a\nb"), cell[1]))
    assert live.said_of(dumped).collectives["home"] == live.Column(("0", "-"), "0 1 1")
