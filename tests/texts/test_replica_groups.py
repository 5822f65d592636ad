"""Replica groups in every spelling, and the axes that they join."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardnb.report import Axis, Mesh
from shardnb.texts.replica_groups import AxisFinder, parse_groups


def mesh_of(**sizes: int) -> Mesh:
    axes = tuple(Axis(name, size) for name, size in sizes.items())
    return Mesh(axes, tuple(range(math.prod(sizes.values()))))


@pytest.mark.parametrize(
    "text",
    [
        "{{0,1},{2,3},{4,5},{6,7}}",
        "[4,2]<=[8]",
        "mesh['axis_0'=4,'axis_1'=2] {'axis_1'}",
        "mesh['axis_0'=2,'axis_1'=1,'axis_2'=4], device_ids=([4,2]T(1,0)) {'axis_0'}",
        "mesh['data'=8] {'data':(4)2}",
    ],
)
def test_each_spelling_of_the_pairs_of_neighbours(text):
    assert parse_groups(text, 8) == ((0, 1), (2, 3), (4, 5), (6, 7))


@pytest.mark.parametrize(
    "text",
    [
        "{{0,2,4,6},{1,3,5,7}}",
        "[2,4]<=[4,2]T(1,0)",
        "mesh['axis_0'=4,'axis_1'=1,'axis_2'=2] {'axis_0'}",
        "mesh['axis_0'=2,'axis_1'=1,'axis_2'=4], device_ids=([4,2]T(1,0)) {'axis_2'}",
    ],
)
def test_each_spelling_of_the_columns(text):
    assert parse_groups(text, 8) == ((0, 2, 4, 6), (1, 3, 5, 7))


def test_no_groups_mean_all_devices():
    assert parse_groups("{}", 4) == ((0, 1, 2, 3),)


def test_an_unknown_spelling_is_refused():
    with pytest.raises(ValueError, match="no spelling of replica groups"):
        parse_groups("all of them", 4)


def test_a_part_of_an_axis_is_written_as_shardy_does():
    finder = AxisFinder(mesh_of(data=8))
    assert finder.axes(((0, 1), (2, 3), (4, 5), (6, 7))) == ("data:(4)2",)
    assert finder.axes(((0, 4), (1, 5), (2, 6), (3, 7))) == ("data:(1)2",)


def test_groups_that_match_no_axes_have_none():
    finder = AxisFinder(mesh_of(data=4, model=2))
    assert finder.axes(((0, 3), (1, 2), (4, 7), (5, 6))) is None
    assert finder.axes(((0, 1, 2), (3, 4, 5, 6, 7))) is None


def test_a_mesh_without_axes_has_no_axes_to_name():
    finder = AxisFinder(Mesh((), tuple(range(8))))
    assert finder.axes(((0, 1, 2, 3, 4, 5, 6, 7),)) is None


def test_a_permute_joins_the_axes_along_which_its_pairs_differ():
    finder = AxisFinder(mesh_of(data=4, model=2))
    along_data = tuple((i, (i + 2) % 8) for i in range(8))
    assert finder.axes(along_data, permute=True) == ("data",)
    assert finder.axes(((0, 3),), permute=True) == ("data", "model")
    assert finder.axes((), permute=True) == ()


@given(st.lists(st.integers(2, 6), min_size=1, max_size=4), st.data())
def test_groups_along_axes_are_found_again(sizes, data):
    names = "abcd"[: len(sizes)]
    picked = data.draw(st.sets(st.sampled_from(names), min_size=1))
    rest = [name for name in names if name not in picked]
    ranges = {name: range(size) for name, size in zip(names, sizes, strict=True)}
    groups = tuple(
        tuple(
            position(
                {
                    **dict(zip(rest, outer, strict=True)),
                    **dict(zip(sorted(picked), inner, strict=True)),
                },
                sizes,
            )
            for inner in itertools.product(*(ranges[name] for name in sorted(picked)))
        )
        for outer in itertools.product(*(ranges[name] for name in rest))
    )
    mesh = mesh_of(**dict(zip(names, sizes, strict=True)))
    assert AxisFinder(mesh).axes(groups) == tuple(sorted(picked))


def position(coordinate: dict[str, int], sizes: list[int]) -> int:
    result = 0
    for name, size in zip("abcd", sizes, strict=False):
        result = result * size + coordinate[name]
    return result


@given(st.permutations(range(12)))
def test_the_order_inside_groups_does_not_matter(order):
    groups = tuple(tuple(np.array(order[i : i + 4]) % 4 + i // 4 * 4) for i in (0, 4, 8))
    if any(len(set(group)) < 4 for group in groups):
        return
    assert AxisFinder(mesh_of(a=3, b=4)).axes(groups) == ("b",)


def test_an_axis_of_one_device_is_told_by_its_name():
    finder = AxisFinder(mesh_of(data=4, one=1))
    assert finder.alone("mesh['data'=4,'one'=1] {'one'}") == ("one",)


@pytest.mark.parametrize(
    "text", ["{{0},{1},{2},{3}}", "mesh['axis_0'=4,'axis_1'=1] {'axis_1'}", "[4,1]<=[4]"]
)
def test_an_axis_of_one_device_is_not_guessed(text):
    assert AxisFinder(mesh_of(data=4, one=1)).alone(text) == ()


@pytest.mark.parametrize(
    "text",
    [
        "[1000000,1000]<=[1000000000]",
        "[1,4]<=[1000000000]",
        "mesh['a'=100000,'b'=10000] {'b'}",
    ],
)
@pytest.mark.parametrize(("devices", "message"), [(4, "is for 4"), (1, "at most 1,048,576")])
def test_groups_of_more_devices_than_there_are_are_refused_unread(text, devices, message):
    with pytest.raises(ValueError, match=rf"are of 1,000,000,000 devices, .*{message}"):
        parse_groups(text, devices)
