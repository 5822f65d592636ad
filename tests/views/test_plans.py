"""How plans are shown, from plans built by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardnb.report.cost import Cost
from shardnb.report.plans import Plan, Plans
from tests.views.conftest import KiB, MiB, mesh_of

MESH = mesh_of(model=4)
H100 = Cost("NVIDIA H100", "", 4e-6, compute_seconds=2e-6, memory_least_seconds=1e-6)
WHOLE = Plan(MESH, {"p[*]['w']": ((), ()), "x": ((), ())}, 4 * MiB, 0, {}, flops=400.0)
SPLIT = Plan(
    MESH,
    {"p[*]['w']": ((), ("model",)), "x": ((), ())},
    MiB,
    256 * KiB,
    {"all-reduce[model]": 2},
    flops=100.0,
    cost=H100,
    layout={"model": "tensor-parallel"},
)
BEATEN = replace(SPLIT, layout={"model": "fsdp"}, memory=2 * MiB)
PLANS = Plans(
    "step",
    (SPLIT, WHOLE),
    beaten=(BEATEN,),
    least_work=100.0,
    recipes=7,
    limit=8 * MiB,
    looked=20,
    compiled=3,
)


def test_a_plan_is_a_row_named_after_its_recipes_with_what_it_shards():
    looked = "20 shardings estimated (7 products of recipes among them), 3 compiled"
    assert str(PLANS).splitlines()[:15] == [
        f"2 plans for step in 8.0 MiB per device; {looked}",
        "",
        "    time        memory    sends     work   recipes",
        # The longer of 2 us of computing and 1 us of reading memory, then 4 us of communication.
        "0   6.00 us     1.0 MiB   256 KiB   1.0x   tensor parallel over model",
        "      P(None, 'model')  p[*]['w']",
        "      1 pattern replicated",
        "      collectives: 2 all-reduce[model]",
        "1   not known   4.0 MiB   0 B       4.0x   everything replicated",
        "      devices repeat each other's work: 4.0x the least",
        "      2 patterns replicated",
        "      collectives: none",
        "",
        "also compiled, slower and no smaller than a plan above, or repeating work:",
        "   6.00 us   2.0 MiB   1.0x work   FSDP over model",
        "",
    ]


def test_what_a_plan_has_beside_its_recipes_is_said():
    near = replace(SPLIT, otherwise=("x",), activations=(("data",), ("model",), ()))
    shown = str(replace(PLANS, plans=(near,)))
    assert "      with other specs for x\n" in shown
    assert "with constraints on activations in the model, P('data', 'model'): see diff(0)" in shown


def test_a_plan_that_does_not_fit_says_so():
    small = replace(H100, memory_size=MiB // 2)
    shown = str(replace(PLANS, plans=(replace(SPLIT, cost=small),)))
    assert "0   6.00 us   1.0 MiB   no     256 KiB" in shown


def test_meshes_are_told_apart_where_there_are_several():
    other = replace(SPLIT, mesh=mesh_of(x=2, y=2))
    assert "x=2 x y=2" in str(replace(PLANS, plans=(other, WHOLE)))


def test_emulated_devices_are_said():
    assert "the compiler for another device may choose otherwise" in str(PLANS)


def test_no_plan_is_said_with_the_reason():
    none = Plans("step", (), limit=KiB, looked=20, compiled=3, notes=("the least holds 1.0 MiB",))
    assert str(none).splitlines()[-1] == "the least holds 1.0 MiB"


def test_collectives_of_unknown_trips_make_a_lower_bound():
    assert "at least 256 KiB" in str(replace(PLANS, plans=(replace(SPLIT, untold=1),)))


def test_hostile_names_are_shown_not_run():
    hostile = replace(SPLIT, specs={"<script>\x1b[31m": (("model",),)})
    shown = replace(PLANS, plans=(hostile,))._repr_mimebundle_()["text/html"]
    assert "<script>" not in shown
    assert "&lt;script&gt;\\x1b[31m" in shown


def test_html_has_a_row_for_each_plan():
    shown = PLANS._repr_mimebundle_()
    assert shown["text/html"].count("<tr") == 3
    assert shown["text/plain"] == str(PLANS)


def test_the_figure_marks_each_plan_and_the_memory_allowed():
    (axes,) = PLANS.figure().axes
    assert [text.get_text() for text in axes.texts] == ["0", "1", "memory allowed"]


def test_no_plans_can_be_drawn():
    assert Plans("step", ()).figure().axes


def test_the_best_plan_is_the_first():
    assert PLANS.best is SPLIT
    assert (PLANS.work(0), PLANS.work(WHOLE)) == (1.0, 4.0)


def test_saved_plans_have_no_program():
    with pytest.raises(ValueError, match="do not hold their program"):
        PLANS.report(0)
