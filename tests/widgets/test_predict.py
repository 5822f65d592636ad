"""Predict-then-reveal asks about lines that send something and about some that do not."""

from __future__ import annotations

from dataclasses import replace

import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.report.model import Origin
from shardnb.views.questions import MOST, questions
from tests.widgets.conftest import layer, shape

SPECS = (P("data", "model"), P("model"))


@pytest.fixture(scope="module")
def report():
    options = {"mesh": "data=4,model=2", "in_specs": SPECS}
    return sn.explain(layer, shape(256, 512), shape(512, 1024), **options)


def test_it_takes_a_function_or_its_report(report):
    options = {"mesh": "data=4,model=2", "in_specs": SPECS}
    asked = sn.predict(layer, shape(256, 512), shape(512, 1024), **options)
    assert [c.kind for c in asked.report.collectives] == ["all-reduce"]
    again = sn.predict(report)
    assert sn.Report.from_json(again.data) == report
    assert "all-reduce[model]" in again._repr_mimebundle_()[0]["text/html"]
    with pytest.raises(ValueError, match=r"sn\.predict\(report\)"):
        sn.predict(report, mesh="data=4")


def test_some_questions_are_about_silent_lines_and_say_why_nothing_is_sent(report):
    product, tanh = questions(report)
    # In conftest.py: `h = x @ W` and `return jnp.tanh(h)`.
    assert (product.text, product.sent, product.why) == ("h = x @ W", (0,), "")
    assert (tanh.text, tanh.sent) == ("return jnp.tanh(h)", ())
    assert tanh.line == product.line + 1
    none, op, value = tanh.why.split(". ", 2)
    assert none == "No collective of the compiled program comes from this line"
    assert op == "Its result is made by tanh, element by element, on each device"
    # The batch of x shards the result: the report says how that came.
    assert "data came from x" in value


def test_of_a_line_with_other_operations_only_its_values_are_told():
    def summed(x):
        total = x.sum(axis=1)
        return jnp.cumsum(total * 2, axis=0)

    report = sn.explain(summed, shape(8, 16), mesh="data=4", in_specs=P(None, None))
    assert report.collectives == ()
    for question in questions(report):
        assert "element by element" not in question.why or "mul" in question.why
        assert question.why.startswith("No collective of the compiled program comes from")


def test_a_value_s_name_stays_as_it_is_written_and_an_unknown_origin_is_left_out(report):
    value = next(value for value in report.values if value.op == "tanh")
    known = replace(value, name="a")
    unknown = replace(value, name="b", origins=(Origin("data", "unknown"),))
    for changed, said in ((known, " a is f32["), (unknown, " b is f32[")):
        values = tuple(changed if each is value else each for each in report.values)
        (_, silent) = questions(replace(report, values=values))
        assert (said in silent.why) == (changed is known)


def test_a_line_that_calls_what_sends_something_is_not_silent():
    def outer(x, w):
        y = layer(x, w)
        return y * 2

    report = sn.explain(
        outer, shape(256, 512), shape(512, 1024), mesh="data=4,model=2", in_specs=SPECS
    )
    silent = [question.text for question in questions(report) if not question.sent]
    assert "y = layer(x, w)" not in silent
    assert "return y * 2" in silent


def test_where_the_line_of_a_collective_is_not_known_no_line_is_said_to_be_silent(report):
    nowhere = replace(report.collectives[0], frames=())
    (question,) = questions(replace(report, collectives=(nowhere,)))
    assert (question.line, question.place, question.sent) == (None, "", (0,))


def test_different_collectives_of_a_line_are_asked_for_one_by_one():
    def both(x, y):
        return x @ y

    report = sn.explain(
        both,
        *(shape(64, 64), shape(64, 64)),
        mesh="data=4,model=2",
        in_specs=(P(None, "data"), P("data", None)),
        out_specs=P("model", "data"),
    )
    asked = [question for question in questions(report) if question.sent]
    different = {(c.kind, c.axes) for c in report.collectives}
    assert [question.before for question in asked] == list(range(len(different)))


def test_a_program_without_lines_is_one_question():
    report = sn.Report(title="f", mesh=sn.explain(jnp.sin, shape(8), mesh="data=4").mesh)
    (question,) = questions(report)
    assert question.why == "The compiled program has no collective."


def test_a_long_program_has_no_more_questions_than_are_answered(report):
    sending = report.collectives[0]
    frames = [(replace(sending.frames[0], line=line),) for line in range(1, 60)]
    many = [replace(sending, id=n, frames=frame) for n, frame in enumerate(frames)]
    text = "\n".join(f"line {line}" for line in range(1, 90))
    values = [
        replace(report.values[0], location=replace(sending.frames[0], line=line))
        for line in range(60, 90)
    ]
    source = replace(report.sources[0], text=text, first_line=1)
    long = replace(report, collectives=tuple(many), values=tuple(values), sources=(source,))
    asked = questions(long)
    assert len(asked) == MOST
    assert sum(not question.sent for question in asked) == MOST // 3


def answer(widget, **content):
    widget._handle_custom_msg({"kind": "answer", **content}, [])


def test_answers_are_kept_and_shown_where_no_widget_is_alive(report):
    widget = sn.predict(report)
    assert "guess" not in widget.text()
    assert "h = x @ W" in widget.text()
    assert "all-reduce[model]" not in widget.text()
    answer(widget, at=0, guess="all-gather", axes=["data"], right=False, sent=0)
    answer(widget, at=1, guess="nothing", axes=[], right=True, sent=None)
    for shown in (widget.text(), widget.html()):
        assert "h = x @ W" in shown
        assert "all-gather over data" in shown
        assert "Not quite. It sends all-reduce[model]: " in shown
        assert "Right. It sends nothing. No collective of the compiled program comes" in shown
    assert "completes a partial sum" in widget.text()  # all are answered: the report
    # The first question again: a new round.
    answer(widget, at=0, guess="all-reduce", axes=["model"], right=True, sent=0)
    assert [each.right for each in widget.answers] == [True]


@pytest.mark.parametrize(
    "content", [{"at": 99}, {"at": -1}, {"at": "0"}, {"kind": "else", "at": 0}, {}]
)
def test_what_is_not_an_answer_is_left(report, content):
    widget = sn.predict(report)
    answer(widget, **{"guess": "nothing", "axes": [], **content})
    assert widget.answers == ()


def test_a_hostile_guess_is_escaped(report):
    widget = sn.predict(report)
    answer(widget, at=0, guess="<img src=x onerror=alert(1)>", axes=3, right=False, sent="x")
    assert "<img" not in widget.html()


def test_where_there_is_no_kernel_ipython_asks_for_the_text(report):
    widget = sn.predict(report)
    with pytest.raises(NotImplementedError):
        widget._ipython_display_()
    widget.keep()
