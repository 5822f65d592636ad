"""The matplotlib figure."""

import subprocess
import sys

import pytest

from shardnb.views import figure

REPORTS = ["report", "rich_report", "wide_report", "hostile_report"]


def words(drawn):
    return [t.get_text() for axes in drawn.axes for t in [*axes.texts, axes.title]]


@pytest.mark.parametrize("name", REPORTS)
def test_a_figure_can_be_drawn(name, request, tmp_path):
    path = tmp_path / "figure.png"
    figure.draw(request.getfixturevalue(name)).savefig(path, dpi=40)
    assert path.stat().st_size > 1000


def test_every_array_and_exchange_has_a_picture(report):
    """Two inputs, one output, one kind of exchange."""
    titles = {axes.get_title() for axes in report.figure().axes} - {""}
    assert titles == {
        "x f32[256@data, 512@model]",
        "W f32[512@model, 1024]",
        "y f32[256@data, 1024]",
        "all-reduce[model]",
    }


def test_tiles_name_their_devices(report):
    assert {"0 2 4 6 (x4)", "1 3 5 7 (x4)", "A 0", "D 7"} <= set(words(figure.draw(report)))


def test_two_thousand_tiles_are_one_image(wide_report):
    axes = figure.draw(wide_report).axes[0]
    assert axes.images[0].get_array().shape == (128, 16, 3)


def test_no_pyplot_state_is_made():
    code = (
        "import sys; from shardnb.report import *; from shardnb.views import figure;"
        "figure.draw(Report('f', Mesh((), (0,)))); assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
