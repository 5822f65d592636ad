"""The demo's notebook in a real kernel, against figures that are known from elsewhere.

Placements, groups and bytes are what two published walk-throughs of JAX sharding print (JAX 0.11
on eight CPU devices), or follow from the shapes by hand.
"""

import json
import math
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from shardnb import Report, cli

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "01_first_look.ipynb"
MIME = "application/vnd.shardnb.report.v1+json"
MODEL_PAIRS = ((0, 1), (2, 3), (4, 5), (6, 7))
DATA_FOURS = ((0, 2, 4, 6), (1, 3, 5, 7))
F32 = 4


@pytest.fixture(scope="module")
def cells():
    """The executed notebook's cells by id."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    client = NotebookClient(
        notebook, timeout=300, kernel_name="python3", extra_arguments=["--log-level=ERROR"]
    )
    client.execute()
    return {cell.id: cell for cell in notebook.cells}


@pytest.fixture(scope="module")
def report(cells):
    """A function from a cell's id to the report that the cell showed."""

    def of(name):
        data = [output.get("data", {}) for output in cells[name].outputs]
        (found,) = [part[MIME] for part in data if MIME in part]
        return Report.from_json(json.dumps(found))

    return of


def shown(cell):
    """The plain text of a cell's value."""
    (output,) = cell.outputs
    return output["data"]["text/plain"]


def specs(values):
    """Specs by name, without dimensions that are whole at the end."""
    return {value.name: stripped(value.spec) for value in values}


def stripped(spec):
    """A spec as `P` writes it."""
    entries = [axes[0] if axes else None for axes in spec]
    while entries and entries[-1] is None:
        entries.pop()
    return tuple(entries)


def test_jax_had_started_with_one_device(cells):
    assert shown(cells["start"]) == "1"


def test_a_split_contraction_is_one_all_reduce_in_model_pairs(report):
    (collective,) = report("matmul").collectives
    assert (collective.kind, collective.dtype, collective.shape) == (
        "all-reduce",
        "f32",
        (64, 1024),
    )
    assert collective.groups == MODEL_PAIRS
    assert collective.axes == ("model",)
    assert collective.bytes == 64 * 1024 * F32


def test_its_cause_is_a_partial_sum_that_nobody_asked_for(report):
    (collective,) = report("matmul").collectives
    assert (collective.asked_by, collective.reason) == ("inferred", "partial-sum")
    assert collective.generated


def test_it_stands_at_the_cells_own_line(report):
    found = report("matmul")
    (collective,) = found.collectives
    assert found.source.line(collective.line) == "y = jnp.tanh(x @ W)"


def test_its_inputs_have_one_devices_shapes(report):
    shapes = {value.name: value.shard_shape for value in report("matmul").inputs}
    assert shapes == {"x": (64, 256), "W": (256, 1024)}


def test_the_cell_left_its_result_in_its_name(cells):
    assert shown(cells["result"]) == "((256, 1024), P('data',), 1.0)"


@pytest.mark.parametrize("name", ["rows", "rows-columns"])
def test_placements_that_need_nothing(report, name):
    assert report(name).collectives == ()


def test_an_operand_split_where_the_other_is_whole_is_gathered(report):
    (collective,) = report("gathered").collectives
    assert (collective.kind, collective.dtype, collective.shape) == (
        "all-gather",
        "f32",
        (128, 512),
    )
    assert collective.groups == DATA_FOURS
    assert collective.axes == ("data",)
    assert (collective.asked_by, collective.reason) == ("inferred", "conflict")
    # Each of four devices has a quarter of the result and sends it to the three others.
    assert collective.wire_bytes == 128 * 512 * F32 * 3 // 4


def test_explicit_axes_refuse_an_ambiguous_product(cells):
    (error,) = [output for output in cells["explicit-refused"].outputs if "ename" in output]
    assert error["ename"] == "ShardingTypeError"
    assert "out_sharding" in error["evalue"]


def test_explicit_axes_give_the_same_collective_as_auto(report):
    (auto,) = report("matmul").collectives
    (explicit,) = report("explicit").collectives
    assert (explicit.kind, explicit.groups, explicit.shape) == (auto.kind, auto.groups, auto.shape)
    assert explicit.asked_by == "requested"


def test_manual_axes_give_the_collective_that_was_called(report):
    (collective,) = report("manual").collectives
    assert (collective.kind, collective.groups) == ("all-reduce", MODEL_PAIRS)
    assert (collective.asked_by, collective.generated) == ("called", False)
    assert specs(report("manual").outputs) == {"y": ("data",)}


def test_results_get_their_placement_from_the_inputs(report):
    assert specs(report("six").outputs) == {
        "doubled": ("data", "model"),
        "column_sums": ("model",),
        "row_sums": ("data",),
        "transposed": ("model", "data"),
        "reshaped": ("data",),
        "product": ("data",),
    }


def test_each_exchange_of_the_six_stands_at_its_line(report):
    found = report("six")
    lines = {
        found.source.line(c.line).partition(" = ")[0].strip(): (c.kind, c.axes)
        for c in found.collectives
    }
    assert lines == {
        "column_sums": ("all-reduce", ("data",)),
        "row_sums": ("all-reduce", ("model",)),
        "reshaped": ("all-gather", ("model",)),
        "product": ("all-reduce", ("model",)),
    }


def test_replicated_matrices_weigh_as_much_as_they_are(report):
    memory = report("replicated").memory
    assert (memory.arguments, memory.outputs) == (2 * 512 * 512 * F32, 512 * 512 * F32)
    assert (memory.arguments, memory.outputs) == (2097152, 1048576)


def test_split_matrices_weigh_what_one_device_holds(report):
    memory = report("split").memory
    assert (memory.arguments, memory.outputs) == ((128 * 512 + 512 * 256) * F32, 128 * 256 * F32)
    assert (memory.arguments, memory.outputs) == (786432, 131072)


@pytest.mark.parametrize("name", ["replicated", "split"])
def test_shapes_without_arrays_are_not_run(report, name):
    assert report(name).run.run_seconds is None


def test_the_function_says_what_the_cell_says(cells):
    size = math.prod((64, 1024)) * F32
    # In a ring of two, each device sends half of the result twice.
    assert shown(cells["python"]) == f"[('all-reduce', ('model',), {size}, {size})]"


def test_a_cell_that_shows_a_report_shows_it_as_text_and_html_too(cells):
    data = cells["matmul"].outputs[0]["data"]
    assert {"text/plain", "text/html", MIME} <= set(data)


def test_demo_prints_the_reports_and_writes_a_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["demo"]) == 0
    text = capsys.readouterr().out
    assert re.search(r"all-gather\[data\] f32\[128, 512\]", text)
    assert text.splitlines()[-1].endswith("shardnb lab")
    assert (tmp_path / "shardnb-demo.html").read_text().count("data=4") > 8


def test_lab_opens_a_copy_of_the_notebook(tmp_path, monkeypatch):
    called = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.execv", lambda _program, command: called.extend(command))
    cli.main(["lab", "--", "--no-browser"])
    assert called[1:4] == ["-m", "jupyterlab", "shardnb-first-look.ipynb"]
    assert called[-1] == "--no-browser"
    assert (tmp_path / "shardnb-first-look.ipynb").read_text() == NOTEBOOK.read_text()


def test_lab_keeps_a_copy_that_was_edited(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.execv", lambda _program, _command: None)
    (tmp_path / "shardnb-first-look.ipynb").write_text("mine")
    cli.main(["lab"])
    assert (tmp_path / "shardnb-first-look.ipynb").read_text() == "mine"
