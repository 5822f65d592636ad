"""How a report is made: each number that the page shows, by hand."""

import ast

import pytest

NOTEBOOK = "how_a_report_is_made.ipynb"
F32 = 4
PAIRS = ((0, 1), (2, 3), (4, 5), (6, 7))


def value(notebook, cell):
    """The value that a cell shows."""
    return ast.literal_eval(notebook.shown(cell))


def test_five_texts_stand_behind_a_report(notebook):
    names = {"jaxpr", "stablehlo", "before partitioning", "after partitioning", "optimized"}
    assert set(value(notebook, "texts")) == names


def test_before_partitioning_shapes_are_whole_and_after_they_are_one_devices(notebook):
    assert "dot(" in notebook.printed("before")
    assert "f32[256,1024]" in notebook.printed("before")
    assert "all-reduce" not in notebook.printed("before")
    assert "f32[64,1024]" in notebook.printed("partitioned")
    assert "all-reduce(" in notebook.printed("partitioned")


def test_copies_groups_and_bytes(notebook):
    assert value(notebook, "copies") == 8 // 2
    assert value(notebook, "groups") == (("model",), PAIRS)
    # In a ring of two, 2 * B * 1/2 is B.
    assert value(notebook, "bytes") == (64 * 1024 * F32, 64 * 1024 * F32)


def test_a_collective_in_a_loop_counts_its_trips(notebook):
    once = 64 * 64 * F32 * 7 // 8
    assert value(notebook, "loop") == [("all-gather", (64, 64), 4, once, 4 * once)]
    assert value(notebook, "loop-by-hand") == (once, 4 * once)


def test_temporaries_hold_the_sum_before_tanh(notebook):
    assert value(notebook, "memory") == 64 * 1024 * F32


def test_who_asked_is_told_apart(notebook):
    asked = [line.partition(" ")[0] for line in notebook.printed("asked").splitlines()]
    assert asked == ["called", "requested", "inferred"]
    for line in notebook.printed("asked").splitlines():
        name, _, found = line.partition(" ")
        ((_, asked_by, _, generated),) = ast.literal_eval(found)
        assert (asked_by, generated) == (name, name != "called")


def test_a_dump_alone_says_what_and_not_why(notebook):
    assert value(notebook, "unknown") == [("all-reduce", ("model",), None, None)]


def test_the_way_of_an_axis_is_told(notebook):
    assert notebook.printed("why").startswith(
        "y is f32[256@data, 1024] at line 2: data came from x"
    )


def test_the_seconds_are_those_of_a_line_of_two_chips(notebook):
    sent = 2 * 64 * 1024 * F32 / 2 / 45e9
    assert value(notebook, "seconds") == pytest.approx(sent)


def test_a_report_read_again_is_the_same_without_its_texts(notebook):
    assert value(notebook, "again") == (True, [])
