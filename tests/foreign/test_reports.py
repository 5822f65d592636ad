"""The JSON of reports that was truncated, edited or made to do harm: a report that every view shows, or
one clear error."""

from __future__ import annotations

import base64
import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

import shardnb as sn
from shardnb.report import Report
from tests.foreign import samples
from tests.foreign.conftest import MUTATIONS, soon
from tests.foreign.mutations import mutated, mutated_data

randoms = st.randoms(use_true_random=True)


def read(text: str) -> Report | None:
    """Read a report, and show it where it is taken."""
    try:
        report = Report.from_json(text)
    except sn.InvalidInput:
        return None
    samples.look(report)
    return report


@given(randoms)
@MUTATIONS
def test_a_mutated_report_is_shown_or_refused(random):
    data = random.choice(samples.reports())
    with soon():
        report = read(json.dumps(mutated_data(data, random)))
    if report is not None and random.randrange(20) == 0:
        samples.look_at_figures(report)


@given(randoms)
@MUTATIONS
def test_the_mutated_text_of_a_report_is_shown_or_refused(random):
    with soon():
        read(mutated(json.dumps(random.choice(samples.reports())), random))


def test_the_reports_themselves_are_shown():
    for data in samples.reports():
        report = read(json.dumps(data))
        assert report is not None
        samples.look_at_figures(report)


def change(data, path, value):
    """Return a copy with another value at a path such as `mesh.axes.0.size`."""
    data = json.loads(json.dumps(data))
    *way, last = [int(key) if key.isdigit() else key for key in path.split(".")]
    place = data
    for key in way:
        place = place[key]
    place[last] = value
    return data


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("mesh.axes.0.size", 3, "its mesh: expected the 6 devices of its axes, got 4"),
        ("mesh.axes.0.size", 0, "its mesh: expected 1 to 262,144 devices, got 0"),
        ("mesh.axes.0.name", "model", "expected axes of different names"),
        ("inputs.0.spec.1.0", "expert", "the array 'params': expected an axis of the mesh"),
        ("inputs.0.spec.1.0", "model:(2)2", "expected a part of model=2, got 'model:\\(2\\)2'"),
        ("inputs.0.shape", [3, -16, 16], "expected a number from 0 to 2.62 for shape, got -16"),
        ("inputs.0.shape.1", 10**30, "shape, got one of 100 bits"),
        ("inputs.0.shard_shape", [1], "expected a block of 3 dimensions, got 1"),
        ("inputs.0.dtype", "text", "expected an HLO element type"),
        ("collectives.0.trips", -1, "for trips, got -1"),
        ("collectives.0.frames.0.source", 9, "expected one of . sources for a line, got 9"),
        ("collectives.0.combined_with", [77], "expected collectives of the report"),
        ("collectives.0.groups", 99, "not a report"),
        ("group_table.0.0.0", 4, "expected positions of 4 devices in its groups, got 4"),
        ("group_table.0.0.0", -1, "expected groups of positions of devices"),
        ("mesh.slices", [0], "expected slices of 4 devices, got 1"),
        ("version", 10**20, "version one of 67 bits"),
    ],
)
def test_what_is_wrong_with_a_report_is_said(path, value, message):
    data = change(samples.reports()[0], path, value)
    with pytest.raises(sn.InvalidInput, match=message):
        Report.from_json(json.dumps(data))


@pytest.mark.parametrize(
    "text", ["[" * 200_000, '{"version": 1, "a": ' * 5000, '"\ud800"', "", b"\xff"]
)
def test_what_is_no_json_is_refused(text):
    with pytest.raises(sn.InvalidInput, match="not the JSON of a report"):
        Report.from_json(text)


def test_a_report_that_inflates_without_end_is_refused():
    deflated = base64.b64encode(zlib.compress(b" " * (1 << 27), 9)).decode()
    with pytest.raises(sn.InvalidInput, match="cut off, or larger than 67,108,864 bytes"):
        Report.from_json(json.dumps({"version": 1, "deflated": deflated}))


def test_a_deflated_report_of_a_newer_version_says_so():
    written = json.dumps({**samples.reports()[0], "version": 99})
    deflated = base64.b64encode(zlib.compress(written.encode())).decode()
    with pytest.raises(sn.InvalidInput, match="update shardnb to read it"):
        Report.from_json(json.dumps({"version": 1, "deflated": deflated}))
