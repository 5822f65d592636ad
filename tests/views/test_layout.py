"""Blocks, who holds them, and what of them is drawn."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardnb.report import Axis, Mesh, Value
from shardnb.views.layout import Bounds, copies, layout_of, sheets

EVERYTHING = Bounds(tiles=10**6, longest=10**6)


def mesh_of(**sizes):
    axes = tuple(Axis(name, size) for name, size in sizes.items())
    return Mesh(axes, tuple(range(math.prod(sizes.values()))))


@st.composite
def placements(draw):
    """Draw a mesh and a value of any rank whose dims are sharded over some of the axes."""
    names = draw(st.permutations(["a", "b", "c"]))
    mesh = mesh_of(**{name: draw(st.integers(1, 4)) for name in names})
    rank = draw(st.integers(0, 4))
    homes = {name: draw(st.integers(-1, rank - 1)) if rank else -1 for name in mesh.shape}
    order = draw(st.permutations(list(mesh.shape)))
    spec = tuple(tuple(name for name in order if homes[name] == dim) for dim in range(rank))
    cuts = [math.prod(mesh.shape[axis] for axis in axes) for axes in spec]
    shard = tuple(draw(st.integers(1, 3)) for _ in cuts)
    shape = tuple(cut * size for cut, size in zip(cuts, shard, strict=True))
    return mesh, Value("x", "f32", shape, spec, shard)


@given(placements())
def test_every_device_holds_exactly_one_block(placement):
    mesh, value = placement
    held = [device for block in layout_of(value, mesh).holders.values() for device in block]
    assert sorted(held) == list(range(mesh.size))


@given(placements())
def test_every_block_has_as_many_holders(placement):
    mesh, value = placement
    layout = layout_of(value, mesh)
    assert layout.counts == (mesh.size // math.prod(layout.grid),)


@given(placements())
def test_every_block_is_drawn_once(placement):
    mesh, value = placement
    layout = layout_of(value, mesh)
    drawn = [b for s in sheets(layout.grid, EVERYTHING) for row in s.rows for b in row]
    assert sorted(drawn) == sorted(layout.holders) or math.prod(layout.grid) > len(drawn) >= 8


def test_the_axes_of_the_spec_name_the_block():
    """Device d * 2 + m of data=4, model=2 holds block (m, d) of P('model', 'data')."""
    mesh = mesh_of(data=4, model=2)
    value = Value("x", "f32", (8, 8), (("model",), ("data",)), (4, 2))
    expected = {m * 4 + d: (d * 2 + m,) for m in range(2) for d in range(4)}
    assert layout_of(value, mesh).holders == expected


def test_a_part_of_an_axis_cuts_the_array():
    """Of data=8, `data:(4)2` is its fastest bit: even devices hold one half."""
    value = Value("x", "f32", (8,), (("data:(4)2",),), (4,))
    assert layout_of(value, mesh_of(data=8)).holders == {0: (0, 2, 4, 6), 1: (1, 3, 5, 7)}


def test_an_unknown_placement_has_no_layout():
    assert layout_of(Value("x", "f32", (8,), None, (8,)), mesh_of(data=8)) is None


@pytest.mark.parametrize(
    ("spec", "unreduced", "said"),
    [
        ((("data",), ("model",)), (), ""),
        ((("data",), ()), (), "replicated over model (x2)"),
        (((), ()), (), "replicated over data, model (x8)"),
        ((("data",), ()), ("model",), ""),
        ((("data:(1)2",), ("model",)), (), "replicated over the rest of data (x2)"),
    ],
)
def test_copies_name_their_axes(spec, unreduced, said):
    value = Value("x", "f32", (8, 8), spec, (2, 2), unreduced=unreduced)
    assert copies(value, mesh_of(data=4, model=2)) == said


@given(st.lists(st.integers(1, 3000), max_size=4), st.integers(16, 400))
def test_a_drawing_stays_within_its_bounds(grid, tiles):
    drawn = sheets(grid, Bounds(tiles=tiles))
    assert sum(len(row) for sheet in drawn for row in sheet.rows) <= max(2 * tiles, 8 * 25)


def test_what_is_left_out_stands_as_a_gap_before_the_last():
    (sheet,) = sheets((128, 16), Bounds())
    assert [row[0] for row in sheet.rows] == [0, 16, 32, 48, 64, 80, 96, 112, None, 2032]
