"""The matplotlib figure."""

import subprocess
import sys
from dataclasses import replace

import pytest

from shardnb.report.cost import Work
from shardnb.views import figure, html
from tests.views.conftest import sketch

REPORTS = ["report", "rich_report", "wide_report", "hostile_report"]


def words(drawn):
    return [t.get_text() for axes in drawn.axes for t in [*axes.texts, axes.title]]


@pytest.mark.parametrize("name", REPORTS)
def test_a_figure_can_be_drawn(name, request, tmp_path):
    path = tmp_path / "figure.png"
    figure.draw(request.getfixturevalue(name)).savefig(path, dpi=40)
    assert path.stat().st_size > 1000


def test_every_array_and_exchange_has_a_picture(report):
    """Two inputs, one output, one kind of collective."""
    titles = {axes.get_title() for axes in report.figure().axes} - {""}
    assert titles == {
        "x f32[256@data, 512@model]",
        "W f32[512@model, 1024]",
        "y f32[256@data, 1024]",
        "all-reduce[model]",
    }


def test_tiles_name_their_devices(report):
    assert {"0 2 4 6 (x4)", "1 3 5 7 (x4)", "A 0", "D 7"} <= set(words(figure.draw(report)))


def on_chips(report, cores=None):
    coords = tuple((i % 2, i // 2, 0) for i in range(8))
    return replace(report, mesh=replace(report.mesh, coords=coords, cores=cores))


def test_tiles_of_a_mesh_say_where_the_chips_are(report):
    assert {"A 0\n(0,0,0)", "D 7\n(1,3,0)"} <= set(words(figure.draw(on_chips(report))))


def test_the_pointer_shows_where_a_device_is(report):
    page = html.render(on_chips(report, cores=(0, 1) * 4))
    assert "device 7 at (1, 3, 0) core 1 in group D" in page
    assert "] on device 5 at (1, 2, 0) core 1" in page


def test_two_thousand_tiles_are_one_image(wide_report):
    axes = figure.draw(wide_report).axes[0]
    assert axes.images[0].get_array().shape == (128, 16, 3)


def test_no_pyplot_state_is_made():
    code = (
        "import sys; from shardnb.report import *; from shardnb.views import figure;"
        "figure.draw(Report('f', Mesh((), (0,)))); assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_roofline_needs_seconds():
    with pytest.raises(ValueError, match=r"report\.on_hardware\('v5e'\)"):
        sketch().roofline()


def test_a_roofline_says_what_bounds_the_step():
    report = replace(sketch(), work=Work(flops=1e9, accessed_bytes=1e6)).on_hardware("v5e")
    figure = report.roofline()
    assert "TPU v5e: communication-bound" in figure.get_suptitle()
    assert [label.get_text() for label in figure.axes[1].get_yticklabels()] == [
        "communication",
        "memory (at most)",
        "compute (at least)",
    ]
