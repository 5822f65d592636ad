"""Figures of the user's own in place of the table's."""

from __future__ import annotations

import json

import pytest

from shardnb.cost import find_hardware, on_hardware
from shardnb.report import Axis, Collective, Mesh, Report

PAIRS = tuple((at, at + 8) for at in range(8))
ONE = Collective(0, "all-gather", ("x",), PAIRS, "u8", (2_000_000,), 1_000_000)
EMULATED = Report("f", Mesh((Axis("x", 16),), tuple(range(16)), emulated=True), collectives=(ONE,))
H100 = Mesh((Axis("x", 16),), tuple(range(16)), "attached", "gpu", "NVIDIA H100 80GB HBM3")

QUICK = {"chip": "h100", "network": 1e9, "start": 0, "network_step": 0}


def test_a_dict_has_figures_in_place_of_the_tables():
    report = on_hardware(EMULATED, QUICK)
    assert report.collectives[0].seconds == pytest.approx(1e6 / 1e9)
    assert "yours: network, start, network_step" in report.cost.source
    assert find_hardware("h100").network == 50e9


def test_without_a_chip_they_are_those_of_the_reports_own_devices():
    report = on_hardware(Report("f", H100, collectives=(ONE,)), {"memory": 10**9, "link": 1.0})
    assert (report.cost.memory_size, report.cost.assumed) == (10**9, False)


@pytest.mark.parametrize("suffix", ["json", "toml"])
def test_a_file_has_them_too(tmp_path, suffix):
    path = tmp_path / f"cluster.{suffix}"
    lines = (f"{key} = {json.dumps(value)}" for key, value in QUICK.items())
    path.write_text(json.dumps(QUICK) if suffix == "json" else "\n".join(lines))
    for given in (path, str(path)):
        assert on_hardware(EMULATED, given).collectives[0].seconds == pytest.approx(1e-3)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"chip": "h100", "netwrk": 1e9}, "'netwrk' is not a figure of a chip; did you mean netw"),
        ({"chip": "h100", "colour": 1}, "'colour' .* the keys are chip, flops, memory"),
        ({"chip": "h100", "network": "fast"}, "network: expected bytes per second .* got 'fast'"),
        ({"chip": "h100", "network": -1}, "network: expected .* got -1"),
        ({"chip": "h100", "network": 0}, "network: expected .* got 0"),
        ({"chip": "h100", "flops": True}, "flops: expected operations per second"),
        ({"chip": "h100", "flops": float("nan")}, "flops: expected"),
        ({"chip": 8}, "chip: expected a name such as 'h100', got 8"),
        ({"chip": "mi300"}, "unknown hardware 'mi300'; known are v2"),
        ({"network": 1e9}, "expected a chip too, such as 'chip': 'h100'"),
    ],
)
def test_an_error_names_the_key(given, message):
    with pytest.raises(ValueError, match=message):
        on_hardware(EMULATED, given)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.toml", "chip = ", "a.toml is not TOML"),
        ("a.json", "[1]", "a.json: expected a table such as"),
        ("a.json", "{", "a.json is not JSON"),
        ("gone.json", None, "gone.json: .*No such file"),
    ],
)
def test_a_file_that_cannot_be_read(tmp_path, name, text, message):
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=message):
        on_hardware(EMULATED, tmp_path / name)
