"""The lesson on measured time: its trace is saved, so what it says of it is known."""

import json

NOTEBOOK = "18_measured_time.ipynb"

# 512 KiB per gradient and device, summed over 4: 2 x 512 x 3/4 KiB. 128 KiB over 2: 2 x 128 x 1/2.
KIB = 1024


def test_the_trace_alone_has_the_collectives_of_the_step(notebook):
    report = notebook.report("trace")
    assert sorted((c.axes, c.wire_bytes) for c in report.collectives) == [
        (("data",), 6),
        (("data",), 768 * KIB),
        (("data",), 768 * KIB),
        (("model",), 128 * KIB),
    ]
    assert {c.kind for c in report.collectives} == {"all-reduce"}


def test_the_dumps_say_who_asked(notebook):
    assert {c.asked_by for c in notebook.report("trace").collectives} == {"inferred"}


def test_a_row_names_the_line_of_the_script(notebook):
    assert "line 27 of train.py in mlp" in notebook.shown("trace")


def test_three_sums_share_a_message_and_its_time(notebook):
    assert notebook.shown("trace").count("(shared)") == 3
    lines = [line for line in notebook.printed("least").splitlines() if "[data]" in line]
    assert len(lines) == 3
    assert len(set(lines)) == 1


def test_waiting_is_the_larger_part(notebook):
    for words in notebook.table("least"):
        assert int(words[6]) > int(words[1])


def test_all_communication_is_exposed(notebook):
    assert notebook.printed("exposed").splitlines()[0] == "3 runs on 8 devices"
    assert notebook.printed("exposed").splitlines()[-1].endswith("= True")


def test_the_cell_is_measured(notebook):
    assert notebook.printed("measured") == (
        "all-reduce ('model',) measured\n3 runs; emulated: True\n"
    )


def test_the_saved_notebook_holds_no_measured_seconds_of_this_machine():
    from tests.notebooks.course import COURSE

    cells = json.loads((COURSE / NOTEBOOK).read_text())["cells"]
    (cell,) = [cell for cell in cells if cell["id"] == "cell"]
    assert not cell["outputs"]
