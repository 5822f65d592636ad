"""The trace and the dumps of the lesson on measured time, which JAX 0.12 made on CPU devices."""

from pathlib import Path

import pytest

import shardnb as sn

TRACES = Path(__file__).parents[2] / "notebooks" / "traces"


def only_report(*arguments, **options):
    (report,) = sn.read_profile(*arguments, **options).reports
    return report


@pytest.fixture(scope="module")
def report():
    return only_report(TRACES, "data=4,model=2", sources=[TRACES])


def test_dumps_in_the_folder_of_a_saved_trace_are_taken(report):
    """The program in the trace has instructions of tuples that the dump does not have."""
    by_axes = {c.axes: c for c in report.collectives if c.shape}
    assert by_axes["model",].reason == "partial-sum"
    assert {c.asked_by for c in report.collectives} == {"inferred"}


def test_collectives_of_one_message_have_its_time(report):
    combined = [c for c in report.collectives if c.axes == ("data",)]
    assert len(combined) == 3
    assert len({c.measured for c in combined}) == 1
    assert str(report).count("(shared)") == 3


def test_waiting_is_told_apart_from_the_transfer(report):
    """The processor was shared by eight devices: those that came first waited for the last."""
    for collective in report.collectives:
        assert collective.measured.waiting > collective.measured.seconds


def test_what_no_run_can_hide_is_all_of_it(report):
    """XLA for CPU sends while it computes nothing."""
    profile = report.profile
    assert profile.exposed_seconds == pytest.approx(profile.communication_seconds)
    assert {c.measured.hidden for c in report.collectives} == {0.0}


def test_a_trace_without_the_dumps_says_that_it_does_not_know(report):
    alone = only_report(TRACES / "train_step.xplane.pb", "data=4,model=2")
    assert {c.asked_by for c in alone.collectives} == {None}
    assert alone.profile == report.profile
