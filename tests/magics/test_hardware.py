"""`--hardware`: what the seconds of a cell are for."""

from __future__ import annotations

import json

import pytest

# One device sends 2 x 3/4 of 64 KiB over the network alone, at 1 GB/s.
FIGURES = {"chip": "h100:4x1", "network": 1e9, "start": 0, "network_step": 0}
SECONDS = 2 * 3 / 4 * 64 * 1024 / 1e9


@pytest.fixture
def cell(run):
    run("P = jax.P; x = np.ones((64, 128), np.float32); W = np.ones((128, 256), np.float32)")
    run("%mesh x=4")
    return run


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps(FIGURES))
    return path


CELL = "\ny = x @ W"
SPECS = "x=P(None, 'x') W=P('x')"


def cost(ip):
    return ip.user_ns["r"].cost


@pytest.mark.parametrize("given", ["a file", "a dict"])
def test_a_cell_is_priced_by_figures_of_the_users_own(cell, ip, file, given):
    ip.user_ns["cluster"] = FIGURES
    name = file if given == "a file" else "cluster"
    shown = cell(f"%%shard {SPECS} --save r --hardware {name}{CELL}")
    assert cost(ip).communication_seconds == pytest.approx(SECONDS)
    assert "yours: network, start, network_step" in cost(ip).source
    assert ip.user_ns["y"].shape == (64, 256), shown.err


def test_a_cell_is_priced_as_if_on_a_cluster(cell, ip):
    cell(f"%%shard {SPECS} --save r --hardware h100{CELL}")
    assert (cost(ip).hardware, cost(ip).assumed) == ("NVIDIA H100 SXM", True)


def test_the_mesh_has_it_for_its_cells_and_not_for_those_on_others(cell, ip, file):
    cell(f"%mesh x=4 --hardware {file}")
    cell(f"%%shard {SPECS} --save r --no-run{CELL}")
    assert cost(ip).communication_seconds == pytest.approx(SECONDS)
    cell(f"%%shard {SPECS} --save r --no-run --mesh x=2{CELL}")
    assert cost(ip) is None
    cell(f"%%shard {SPECS} --save r --no-run --hardware v5e{CELL}")
    assert cost(ip).hardware == "TPU v5e"
    cell("%mesh --axes explicit")
    cell("%%shard x=P('x') --save r --no-run\ny = x * 2")
    assert cost(ip).hardware == "NVIDIA H100 SXM"
    cell("%mesh x=4")
    cell(f"%%shard {SPECS} --save r --no-run{CELL}")
    assert cost(ip) is None


def test_a_call_is_priced_too(cell, ip, file):
    cell("def f(x, W): return x @ W")
    cell(f"%shard f(x, W) {SPECS} --save r --hardware {file}")
    assert cost(ip).communication_seconds == pytest.approx(SECONDS)


def test_what_an_unchanged_cell_compiles_is_priced(cell, ip, file):
    cell(f"%%shard {SPECS} --view none --out a=P(None, 'x') b=P('x')\na, b = x, W")
    cell("f = jax.jit(lambda a, b: a @ b)")
    cell(f"%%shard --watch --save r --hardware {file}\nf(a, b)")
    (report,) = ip.user_ns["r"]
    assert report.cost.communication_seconds == pytest.approx(SECONDS)


@pytest.mark.parametrize(
    ("figures", "says"),
    [
        ({"chip": "h100", "netwrk": 1}, "'netwrk' is not a figure of a chip; did you mean network"),
        ({"chip": "h100:8"}, "the mesh has 4 devices, and 1 x 8 GPUs are 8"),
        ({"network": 1e9}, "expected a chip too, such as 'chip': 'h100'"),
        ({"chip": "mi300"}, "unknown hardware 'mi300'; known are v2"),
    ],
)
@pytest.mark.parametrize("line", ["%mesh x=4 --hardware c", "%%shard --hardware c\ny = x * 2"])
def test_an_error_says_what_does_not_fit_before_anything_is_compiled(cell, ip, line, figures, says):
    ip.user_ns["c"] = figures
    shown = cell(line, fails=True)
    assert "--hardware: " in shown.err
    assert says in shown.err
    assert "y" not in ip.user_ns


def test_a_file_that_is_not_there_and_a_name_that_is_unknown_are_said(cell):
    assert "No such file" in cell("%mesh x=4 --hardware no.toml", fails=True).err
    assert "unknown hardware 'cluster'" in cell("%mesh x=4 --hardware cluster", fails=True).err
    assert "--hardware needs a value" in cell("%mesh x=4 --hardware", fails=True).err


def test_a_mesh_that_is_refused_keeps_what_was(cell, ip, file):
    cell(f"%mesh x=4 --hardware {file}")
    cell("%mesh x=8 --hardware h100:16", fails=True)
    cell(f"%%shard {SPECS} --save r --no-run{CELL}")
    assert cost(ip).communication_seconds == pytest.approx(SECONDS)


def test_compared_targets_are_priced_as_themselves(cell):
    shown = cell(f"%%shard {SPECS} --compare cpu,v5e:2x2 --hardware h100{CELL}", fails=True)
    assert "no --hardware" in shown.err
