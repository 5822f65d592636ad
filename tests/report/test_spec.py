"""Placements in words, and the blocks that they cut an array into."""

from __future__ import annotations

import jax
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from shardnb.mesh import make_grid
from shardnb.report import Axis, Mesh, Value
from shardnb.report.dtypes import bits, size_in_bytes
from shardnb.report.spec import blocks_of, grid_of, spec_text, type_text

GRID = make_grid("a=2,b=3,c=2")
MESH = GRID.describe()


@given(st.permutations(["a", "b", "c"]), st.integers(0, 3), st.integers(0, 3))
def test_blocks_are_where_jax_puts_them(order, first, second):
    dims = (tuple(order[:first]), tuple(order[first : first + second]))
    shape = (12, 12)
    sharding = NamedSharding(GRID.mesh, P(*(axes or None for axes in dims)))
    value = Value("x", "f32", shape, dims, sharding.shard_shape(shape))
    grid, blocks = grid_of(value, MESH), blocks_of(value, MESH)
    for block, index in zip(blocks, sharding.devices_indices_map(shape).values(), strict=True):
        row, column = divmod(block, grid[1])
        assert (index[0].start or 0) == row * value.shard_shape[0]
        assert (index[1].start or 0) == column * value.shard_shape[1]


def test_a_part_of_an_axis_cuts_too():
    mesh = Mesh((Axis("data", 8),), tuple(range(8)))
    value = Value("x", "f32", (8,), (("data:(1)4",),), (2,))
    assert blocks_of(value, mesh) == (0, 0, 1, 1, 2, 2, 3, 3)
    value = Value("x", "f32", (8,), (("data:(4)2",),), (4,))
    assert blocks_of(value, mesh) == (0, 1) * 4


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ((), "P()"),
        (((), ()), "P()"),
        ((("data",), ()), "P('data')"),
        (((), ("x", "y")), "P(None, ('x', 'y'))"),
        (None, "no mesh axes"),
    ],
)
def test_a_spec_in_words(spec, text):
    assert spec_text(spec) == text


def test_types_in_words():
    value = Value("x", "f32", (256, 512), (("data",), ("a", "b")), (64, 64))
    assert type_text(value) == "f32[256@data, 512@(a,b)]"
    pending = Value("x", "f32", (256,), ((),), (256,), unreduced=("model",))
    assert type_text(pending) == "f32[256]{U:model}"
    assert type_text(Value("s", "s32", (), (), ())) == "s32[]"


def test_sizes():
    assert size_in_bytes("s4", (3,)) == 2
    assert size_in_bytes("pred", (8,)) == 8
    assert bits("key<fry>") == jax.random.key(0).dtype.itemsize * 8
    with pytest.raises(ValueError, match="expected an HLO element type"):
        bits("text")
