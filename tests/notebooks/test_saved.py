"""The notebooks as they are kept: with outputs, and without what is of one machine or one run."""

import json
import re
from pathlib import Path

import pytest

from tests.notebooks.course import COURSE, MIME, report_of

PATHS = sorted(COURSE.glob("*.ipynb"))
PRIVATE = re.compile(
    r"ipykernel_\d|/tmp/|/home/|/root/|/Users/|/usr/|(?<![\w./:])/(?:[\w.-]+/){2,}\w+\.py|\bat 0x[0-9a-f]{6,}|compiled \d"
)
MEGABYTE = 1_000_000
REFERENCE = "reference.ipynb"


@pytest.fixture(params=PATHS, ids=lambda path: path.name)
def path(request) -> Path:
    return request.param


@pytest.fixture
def cells(path):
    return json.loads(path.read_text())["cells"]


def outputs(cells):
    return [output for cell in cells for output in cell.get("outputs", ())]


def test_it_is_saved_with_its_outputs(path, cells):
    assert outputs(cells) or path.name == REFERENCE


def test_it_says_nothing_of_the_machine(path):
    assert PRIVATE.findall(path.read_text()) == []


def test_it_holds_no_times(cells):
    assert not any("execution" in cell["metadata"] for cell in cells)
    reports = [output["data"][MIME] for output in outputs(cells) if MIME in output.get("data", {})]
    assert not any(report.get("run") for report in reports)


def test_its_reports_can_be_read(cells):
    for output in outputs(cells):
        if MIME in output.get("data", {}):
            assert report_of(output["data"][MIME]).mesh.axes


def test_its_cells_have_names(cells):
    names = [cell["id"] for cell in cells]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z][a-z0-9-]*", name) for name in names)


def test_it_is_small(path):
    assert path.stat().st_size < 1.5 * MEGABYTE


def test_it_is_read_in_ten_minutes(path, cells):
    if path.name == REFERENCE:
        return  # it is looked up, not read
    text = " ".join("".join(cell["source"]) for cell in cells)
    # 200 words a minute, which is slow.
    assert len(text.split()) < 10 * 200


def test_the_notebooks_it_points_to_are_there(cells):
    text = " ".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    names = re.findall(r"\]\((\w+\.ipynb)\)", text)
    assert [name for name in names if not (COURSE / name).is_file()] == []
