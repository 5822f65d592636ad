"""The quickstart in a real kernel, and the commands that use it.

Placements, groups and bytes are what two published walk-throughs of JAX sharding print (JAX 0.11
on eight CPU devices), or follow from the shapes by hand.
"""

import math
import re

import pytest

from shardnb import cli
from tests.notebooks.course import COURSE

NOTEBOOK = "01_quickstart.ipynb"
MODEL_PAIRS = ((0, 1), (2, 3), (4, 5), (6, 7))
DATA_FOURS = ((0, 2, 4, 6), (1, 3, 5, 7))
F32 = 4


def test_jax_had_started_with_one_device(notebook):
    assert notebook.shown("start") == "1"


def test_the_mesh_has_eight_devices_all_the_same(notebook):
    assert "data=4 (auto), model=2 (auto): 8 emulated" in notebook.printed("load")


def test_a_split_contraction_is_one_all_reduce_in_model_pairs(notebook):
    (collective,) = notebook.report("matmul").collectives
    assert (collective.kind, collective.dtype) == ("all-reduce", "f32")
    assert collective.shape == (256 // 4, 1024)
    assert collective.groups == MODEL_PAIRS
    assert collective.axes == ("model",)
    assert collective.bytes == 64 * 1024 * F32


def test_its_cause_is_a_partial_sum_that_nobody_asked_for(notebook):
    (collective,) = notebook.report("matmul").collectives
    assert (collective.asked_by, collective.reason) == ("inferred", "partial-sum")
    assert collective.generated


def test_it_stands_at_the_cells_own_line(notebook):
    report = notebook.report("matmul")
    (collective,) = report.collectives
    assert report.source.line(collective.line) == "y = jnp.tanh(x @ W)"


def test_its_inputs_have_one_devices_shapes(notebook):
    shapes = {value.name: value.shard_shape for value in notebook.report("matmul").inputs}
    assert shapes == {"x": (64, 256), "W": (256, 1024)}


def test_the_cell_left_its_result_in_its_name(notebook):
    # tanh(512) is 1 in 32 bits.
    assert notebook.shown("result") == "((256, 1024), P('data',), 1.0)"


def test_rows_that_meet_a_replicated_operand_send_nothing(notebook):
    assert notebook.report("rows").collectives == ()


@pytest.mark.parametrize("name", ["rows-columns", "fixed"])
def test_shardings_that_need_nothing_are_shown_in_brief(notebook, name):
    assert notebook.report(name).collectives == ()
    assert "no communication" in notebook.shown(name).lower()


def test_two_partial_sums_are_worked_out(notebook):
    # 1 * 10 + 2 * 20 and 3 * 30 + 4 * 40.
    assert re.findall(r": (\d+)", notebook.printed("partial-sum-by-hand")) == ["50", "250", "300"]


def test_the_notation_is_explained_by_a_picture_that_is_there(notebook):
    (path,) = re.findall(r"!\[[^]]*\]\(([^)]+)\)", notebook.cells["read"].source)
    assert (COURSE / path).is_file()


def test_an_operand_split_where_the_other_is_whole_is_gathered(notebook):
    (collective,) = notebook.report("gathered").collectives
    assert (collective.kind, collective.dtype) == ("all-gather", "f32")
    assert collective.shape == (256 // 2, 512)
    assert collective.groups == DATA_FOURS
    assert collective.axes == ("data",)
    assert (collective.asked_by, collective.reason) == ("inferred", "conflict")


def test_the_guess_does_not_tell_before_it_is_opened(notebook):
    seen, folded = notebook.html("guess").split("<details", 1)
    assert "all-gather" not in seen
    assert "all-gather" in folded
    assert "open" not in folded.partition(">")[0]


def test_its_bytes_are_those_that_the_answer_says(notebook):
    arrived = 128 * 512 * F32
    # Each of four devices has a quarter and sends it to the three others.
    sent = arrived // 4 * 3
    first, second, why = notebook.printed("ask").splitlines()
    assert first == f"all-gather ('data',) f32 (128, 512) {arrived} {sent}"
    assert (arrived, sent) == (256 * 1024, 192 * 1024)
    assert second == "inferred conflict"
    assert "x is sharded over data on its contracting dimension, but W is replicated" in why


def test_the_result_has_its_axis_from_x(notebook):
    assert "model came from x, forward through dot_general" in notebook.printed("why")


def test_an_edit_that_was_compiled_removes_it(notebook):
    (collective,) = notebook.report("fix").collectives
    assert collective.fixes
    assert all(fix.collectives == (1, 0) for fix in collective.fixes)
    assert "x=P(('model', 'data'))" in {fix.edit for fix in collective.fixes}


def test_what_is_forbidden_is_refused(notebook):
    name, text = notebook.error("forbid")
    assert name == "ForbiddenCollectives"
    assert "all-gather f32[128,512] over data at line 2" in text


def test_the_function_says_what_the_cell_says(notebook):
    size = math.prod((64, 1024)) * F32
    # In a ring of two, each device sends half of the result twice.
    assert notebook.shown("python") == f"[('all-reduce', ('model',), {size}, {size})]"


def test_demo_prints_the_reports_and_writes_a_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["demo"]) == 0
    text = capsys.readouterr().out
    assert re.search(r"all-gather\[data\] .* 192 KiB", text)
    assert text.splitlines()[-1].endswith("shardnb lab")
    assert (tmp_path / "shardnb-demo.html").read_text().count("data=4") >= 6


def test_lab_opens_a_copy_of_the_notebook(tmp_path, monkeypatch):
    called = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.execv", lambda _program, command: called.extend(command))
    cli.main(["lab", "--", "--no-browser"])
    assert called[1:4] == ["-m", "jupyterlab", "shardnb-quickstart.ipynb"]
    assert called[-1] == "--no-browser"
    assert (tmp_path / "shardnb-quickstart.ipynb").read_text() == (COURSE / NOTEBOOK).read_text()


def test_lab_keeps_a_copy_that_was_edited(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.execv", lambda _program, _command: None)
    (tmp_path / "shardnb-quickstart.ipynb").write_text("mine")
    cli.main(["lab"])
    assert (tmp_path / "shardnb-quickstart.ipynb").read_text() == "mine"
