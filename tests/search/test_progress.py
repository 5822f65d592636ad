from __future__ import annotations

import io

import pytest

from shardnb.search import progress


@pytest.fixture
def clock(monkeypatch):
    """Let the test say what time it is."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "perf_counter", lambda: now[0])
    return now


def test_nothing_is_drawn_before_a_second_has_passed(clock):
    out = io.StringIO()
    with progress.line_on(out) as draw:
        clock[0] = 0.9
        draw("early")
    assert out.getvalue() == ""


def test_a_line_is_drawn_over_the_one_before_and_gone_afterwards(clock):
    out = io.StringIO()
    with progress.line_on(out) as draw:
        for at, text in ((1.0, "one"), (1.2, "two")):
            clock[0] = at
            draw(text)
    assert [part.strip() for part in out.getvalue().split("\r")] == ["", "one", "two", "", ""]


def test_a_line_is_not_drawn_more_often_than_anybody_can_see(clock):
    out = io.StringIO()
    with progress.line_on(out) as draw:
        for at, text in ((1.0, "one"), (1.05, "two")):
            clock[0] = at
            draw(text)
    assert "two" not in out.getvalue()


def test_a_line_is_wiped_out_over_its_whole_width(clock):
    out = io.StringIO()
    with progress.bar_on("fixes", out) as tell:
        clock[0] = 2.0
        tell("edits tried", 10, 20)
    first, drawn, wiped, end = out.getvalue().split("\r")
    assert drawn.startswith("fixes [##########          ] 10 of 20 edits tried")
    assert (first, wiped.strip(), len(wiped), end) == ("", "", len(drawn), "")


def test_the_search_for_plans_says_what_it_does(clock):
    out = io.StringIO()
    with progress.bar_on("plan", out) as tell:
        clock[0] = 2.0
        tell("plans compiled", 6, 24)
    assert "plan [#####               ] 6 of 24 plans compiled" in out.getvalue()


def test_under_a_cell_a_line_is_an_output_that_ends_empty(clock, monkeypatch):
    said = []

    class Handle:
        def update(self, data, *, raw):
            said.append(data)

    def display(data, *, raw, display_id):
        said.append(data)
        return Handle()

    monkeypatch.setattr("IPython.display.display", display)
    monkeypatch.setattr("IPython.get_ipython", lambda: type("Shell", (), {"kernel": 1}))
    with progress.line_on() as draw:
        clock[0] = 1.5
        draw("half")
    assert said == [{"text/plain": "half"}, {"text/plain": ""}]
