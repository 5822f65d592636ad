"""Hosts and slices in pictures: lines between the devices of one and those of another."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardnb.views import html
from shardnb.views.layout import Bounds
from shardnb.views.picture import groups_picture
from tests.views.conftest import all_reduce, sketch

# data=4 runs down, model=2 across: the devices 0 to 3 are on the first of two hosts.
TWO = (0, 0, 0, 0, 1, 1, 1, 1)


def drawn(**of):
    """Draw the mesh of the sketch with hosts or slices; gives its remarks, and lines by row."""
    picture = groups_picture(all_reduce(), replace(sketch().mesh, **of), Bounds(60, 8, 4))
    (panel,) = picture.panels
    return picture.remarks, [[(tile.left, tile.above) for tile in row] for row in panel.rows]


def test_a_line_separates_hosts():
    remarks, rows = drawn(hosts=TWO)
    assert remarks[-1] == "Lines separate 2 hosts."
    assert rows == [[(0, 0)] * 2, [(0, 0)] * 2, [(0, 1)] * 2, [(0, 0)] * 2]


def test_a_host_may_begin_within_a_row():
    _, rows = drawn(hosts=(0, 1) * 4)
    assert rows == [[(0, 0), (1, 0)]] * 4


def test_a_thicker_line_separates_slices():
    remarks, rows = drawn(hosts=(0, 0, 1, 1, 2, 2, 3, 3), slices=TWO)
    assert remarks[-2:] == ("Lines separate 4 hosts.", "Thick lines separate 2 slices.")
    assert [row[0][1] for row in rows] == [0, 1, 2, 1]


def test_on_one_host_there_is_no_line():
    remarks, rows = drawn()
    assert not any("separate" in remark for remark in remarks)
    assert {edge for row in rows for edge in row} == {(0, 0)}


def test_what_is_left_out_has_no_line_beside_it():
    mesh = replace(sketch().mesh, hosts=tuple(range(8)))
    picture = groups_picture(all_reduce(), mesh, Bounds(4, 2, 2))
    assert all(
        tile is None or tile.left in (0, 1) for p in picture.panels for r in p.rows for tile in r
    )


@pytest.mark.parametrize(("of", "said"), [("hosts", "host 1"), ("slices", "slice 1")])
def test_html_draws_the_line_and_says_where_a_device_is(of, said):
    shown = html.render(replace(sketch(), mesh=replace(sketch().mesh, **{of: TWO})))
    width = 3 if of == "hosts" else 6
    assert shown.count(f"border-top:{width}px solid") == 2
    assert f"device 4 ({said}) in group C" in shown
