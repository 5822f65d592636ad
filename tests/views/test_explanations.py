"""Pages about errors, checks, annotations and comparisons: what they say, and that nothing runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardnb.report.types import Column, Comparison, ErrorReport
from shardnb.views import explanations, page
from tests.report.test_types import CELL, CHECK, DIFF, ERROR, HERE, LINE, MESH, PLAN, REPORT, X

HOSTILE = "<script>alert(1)</script>\x1b[31m"


def test_an_error_has_its_line_the_arrays_and_what_to_write():
    lines = [" ".join(line.split()) for line in str(ERROR).splitlines()]
    assert lines[:6] == [
        "ShardingTypeError: x @ x sums over what both split",
        "2 return x @ x",
        "in cell, at x @ x",
        "x f32[8@data, 4] 2 x 4 per device",
        "cause",
        "Fix: return jnp.matmul(x, x, out_sharding=P())",
    ]


def test_the_ways_out_say_what_each_sends():
    line = next(line for line in str(ERROR).splitlines() if "jnp.matmul(...)" in line)
    cells = [cell.strip() for cell in line.split("   ") if cell.strip()]
    assert cells == ["jnp.matmul(...)", "all-reduce[data]", "96 B", "what Auto chooses"]


def test_in_html_the_arrays_are_drawn_and_jaxs_words_and_the_traceback_are_folded():
    html = explanations.html_of(ERROR, "Traceback: line 2")
    assert "dim 0 over data=4" in html
    assert html.count("<details") == 2
    assert "JAX's message" in html
    assert "Traceback: line 2" in html


def test_an_array_on_another_mesh_is_drawn_on_it():
    other = replace(MESH, device_ids=(3, 2, 1, 0))
    both = replace(ERROR, values=(X, replace(X, name="y")), other_mesh=other)
    html = explanations.html_of(both)
    assert html.index(">0</td>") < html.index(">3</td>")


def test_several_specs_that_do_not_fit_stand_in_one_list():
    many = replace(ERROR, problems=ERROR.problems * 2)
    assert "2 specs to look at" in str(many)


def test_a_check_marks_what_was_not_reached_and_what_is_missing():
    text = str(CHECK)
    assert "the body traces   not reached" in text
    assert "missing: psum over data: partial" in text
    assert "Fix: jax.lax.psum(x, 'data')" in text


def test_a_coercion_of_jaxs_is_marked_beside_the_line():
    assert "a:f32[2] = pvary x    # inserted by JAX" in str(CHECK)


def test_a_plan_says_that_it_sends_the_same():
    assert str(PLAN).splitlines()[0].endswith("compiles to the same collectives as with Auto axes")


def test_programs_side_by_side_with_what_was_refused():
    refused = Column("manual", error=ERROR)
    text = str(Comparison((Column("auto", REPORT), Column("explicit", REPORT), refused), (DIFF,)))
    assert "auto | explicit | manual" in text
    assert "auto and explicit: identical." in text
    assert "refused: ShardingTypeError" in text


@pytest.mark.parametrize("render", [explanations.text_of, explanations.html_of])
def test_hostile_texts_are_shown_and_do_nothing(render):
    source = replace(CELL, text=f"first\n{HOSTILE}", name=HOSTILE)
    error = ErrorReport(
        HOSTILE,
        HOSTILE,
        HOSTILE,
        HOSTILE,
        HOSTILE,
        (replace(X, name=HOSTILE),),
        MESH,
        location=HERE,
        expression=HOSTILE,
        fixes=(HOSTILE,),
        sources=(source,),
    )
    said = render(error)
    assert "\x1b" not in said
    if render is explanations.html_of:
        assert "<script" not in said


def test_every_kind_of_page_is_a_mimebundle():
    for data in (ERROR, CHECK, PLAN, Comparison((Column("auto", REPORT),))):
        bundle = data._repr_mimebundle_()
        assert set(bundle) == {"text/plain", "text/html"}


def test_a_line_of_code_with_several_rows_is_indented():
    assert page.text([page.Code("Fix:", "a\nb")]) == "  Fix: a\n       b"


def test_a_report_shows_the_types_beside_the_lines():
    typed = replace(LINE, location=HERE)
    report = replace(REPORT, typed=(typed,), sources=(CELL,))
    rows = str(report).splitlines()
    at = next(i for i, row in enumerate(rows) if row.endswith("return x @ x") and i > 3)
    assert rows[at + 1].strip() == "a:f32[2] = pvary x    # inserted by JAX"
    assert "inserted by JAX" in report._repr_mimebundle_()["text/html"]


def test_a_report_of_auto_axes_has_no_types_to_show():
    assert "types" not in str(REPORT)
