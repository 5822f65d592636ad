"""A report says what changed since the last run of its cell."""

from __future__ import annotations

import pytest


@pytest.fixture
def reported(ip):
    """Run a cell of a notebook, and return its report."""
    ip.run_cell("%mesh data=4,model=2\nx, W = np.ones((8, 16)), np.ones((16, 4))").raise_error()

    def reported(cell, cell_id):
        ip.run_cell(cell, store_history=True, cell_id=cell_id).raise_error()
        return ip.magics_manager.registry["ShardMagics"].session.last

    return reported


SUM = "%%shard --no-run --view none x=P(None, 'model') W=P('model')\ny = x @ W"
PLAIN = "%%shard --no-run --view none x=P('data')\ny = x @ W"


def changes(report):
    return [(change.kind, change.number, change.wire_bytes) for change in report.since.kinds]


def test_the_first_run_is_compared_with_nothing(reported):
    assert reported(SUM, "a").since is None


def test_a_rerun_counts_what_went_and_what_came(reported):
    """An all-reduce of 8 x 4 floats over 2 devices: each sends 2 * 128 B / 2."""
    reported(SUM, "a")
    assert changes(reported(PLAIN, "a")) == [("all-reduce", -1, 128)]
    assert changes(reported(SUM, "a")) == [("all-reduce", 1, 128)]
    again = reported(SUM, "a")
    assert not again.since
    assert "Since the last run of this cell: nothing changed." in str(again)


def test_another_cell_is_another_comparison(reported):
    reported(SUM, "a")
    assert reported(PLAIN, "b").since is None


def test_two_calls_of_a_cell_are_each_compared_with_themselves(reported):
    """The first call is compared as well, though the last report is the second one's."""
    cell = "def f(x):\n    return x.sum()\n%shard f(x)\n%shard f(W)"
    assert reported(cell, "a").since is None
    again = reported(cell, "a")
    assert again.title == "f(W)"
    assert not again.since


def test_without_a_cell_id_nothing_is_compared(reported):
    reported(SUM, None)
    assert reported(PLAIN, None).since is None


def test_what_is_forbidden_and_not_there_is_said_to_be_so(reported):
    report = reported(PLAIN.replace("--no-run", "--no-run --forbid all-gather"), "a")
    assert [(one.option, one.passed) for one in report.outcomes] == [("forbid", True)]
    assert "[passed] --forbid all-gather: the program has none." in str(report)
