"""The live view says what text and HTML say, in the same words."""

from __future__ import annotations

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
    json,
    why,
)
from shardnb.report.cost import Cost
from shardnb.report.typed import TypedLine, TypedValue
from shardnb.views.content import content_of
from shardnb.views.entries import tell
from tests.browser.page import show

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
    replace(PLAIN, id=5, asked_by="inferred", reason="reshape", full_remat=True),
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
    """Give a report that has a bit of everything that words are for."""
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
            Finding("silent replication", "w is whole", Location(1, 7), 1 << 21, "more"),
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


@pytest.fixture
def view(page, report):
    show(page, json.to_data(report))
    return page


def texts(page, selector):
    """Give the text of each element, with single spaces."""
    found = page.locator(selector).evaluate_all("nodes => nodes.map(node => node.textContent)")
    return [" ".join(text.split()) for text in found]


def single(text):
    return " ".join(text.split())


def test_the_header_and_the_summary(view, report):
    content = content_of(report)
    assert texts(view, ".shardnb-header > *") == list(content.header)
    assert texts(view, ".shardnb-summary") == [content.summary]


def test_the_arrays(view, report):
    content = content_of(report)
    rows = [*content.inputs.rows, *content.outputs.rows]
    view.evaluate("document.querySelector('.shardnb-stage').remove()")
    assert texts(view, ".shardnb-name") == [f"{row.name} {row.type}" for row in rows]
    held = ["; ".join([f"{row.shard}, {row.size}", *row.remarks]) for row in rows]
    assert texts(view, ".shardnb-card > .shardnb-faint") == held


def test_the_facts(view, report):
    content = content_of(report)
    findings = [f"{one.head}: {one.text}" for one in content.findings]
    findings[0] += "detailsmore"
    facts = [content.memory, content.cost, *findings, *content.notes, " ".join(content.about)]
    for summary in view.locator(".shardnb-facts summary").all():
        summary.click()
    # What is folded is written when it is opened, a moment later.
    view.wait_for_function(
        "[...document.querySelectorAll('.shardnb-facts pre')].every(one => one.textContent)"
    )
    assert texts(view, ".shardnb-facts dd") == [single(fact) for fact in facts]


def test_the_types_beside_the_lines(view, report):
    view.get_by_text("The placement in each line's types").click()
    view.locator(".shardnb-typed pre").first.wait_for()
    rows = [single(str(line).partition("    # ")[0]) for line in report.typed]
    rows[1] += " inserted by JAX"
    assert texts(view, ".shardnb-typed pre") == [rows[0], "2 y = jnp.tanh(h)", rows[1]]


@pytest.mark.parametrize("number", range(len(COLLECTIVES)))
def test_each_collective(view, report, number):
    (entry,) = tell(report.collectives[number : number + 1], report, single=1, limit=1).shown
    view.evaluate("id => window.view.choose(id)", number)
    assert texts(view, ".shardnb-title") == [f"{entry.name} {entry.at} {entry.cause}"]
    because = entry.because[0].upper() + entry.because[1:]
    assert texts(view, ".shardnb-because") == [because]
    assert texts(view, ".shardnb-because ~ p") == [single(" ".join(entry.further))]
    fixes = [single(f"Try: {fix} copy") for fix in entry.fixes]
    assert texts(view, ".shardnb-fix") == fixes


@pytest.mark.parametrize("number", range(len(SPREAD)))
def test_why_a_value_lies_as_it_does(view, report, number):
    view.click(f".shardnb-value >> nth={number}")
    assert texts(view, ".shardnb-why") == [why.explain(report, SPREAD[number].name)]
