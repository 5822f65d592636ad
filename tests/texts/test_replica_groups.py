"""Replica groups in every spelling, and the axes that they join."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shardnb as sn
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
    with pytest.raises(ValueError, match="expected groups such as"):
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
@pytest.mark.parametrize(
    ("devices", "message"),
    [
        (4, "expected groups of at most 4 devices, got 1,000,000,000"),
        (1, "expected 1 to 262,144 devices, got 1,000,000,000"),
    ],
)
def test_groups_of_more_devices_than_there_are_are_refused_unread(text, devices, message):
    with pytest.raises(ValueError, match=rf"{message}"):
        parse_groups(text, devices)


# Two replicas of four partitions: replica r's partition p is device 4r + p

OF_REPLICAS = """HloModule m, replica_count=2, num_partitions=4

%add (a: f32[], b: f32[]) -> f32[] {{
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b)
}}

ENTRY %main (p: f32[64]) -> f32[64] {{
  %p = f32[64]{{0}} parameter(0)
  ROOT %x = f32[64]{{0}} {}
}}
"""


SUM, OF_DEVICES = "all-reduce(%p), to_apply=%add", "use_global_device_ids=true"


@pytest.mark.parametrize(
    ("collective", "groups", "axes"),
    [
        (
            f"{SUM}, channel_id=1, replica_groups={{{{0,1,2,3}},{{4,5,6,7}}}}, {OF_DEVICES}",
            ((0, 1, 2, 3), (4, 5, 6, 7)),
            ("p",),
        ),
        (
            "all-reduce(%p), replica_groups={{0,1}}, to_apply=%add",
            ((0, 4), (1, 5), (2, 6), (3, 7)),
            ("r",),
        ),
        (
            "all-reduce(%p), replica_groups={}, to_apply=%add",
            ((0, 4), (1, 5), (2, 6), (3, 7)),
            ("r",),
        ),
        (
            "all-reduce(%p), channel_id=1, replica_groups={{0},{1}}, to_apply=%add",
            ((0, 1, 2, 3), (4, 5, 6, 7)),
            ("p",),
        ),
        (
            "all-reduce(%p), channel_id=1, replica_groups={{0,1}}, to_apply=%add",
            ((0, 1, 2, 3, 4, 5, 6, 7),),
            ("r", "p"),
        ),
        (
            "collective-permute(%p), channel_id=1, source_target_pairs={{0,1},{1,0}}",
            ((0, 1), (1, 0), (4, 5), (5, 4)),
            ("p",),
        ),
        (
            "collective-permute(%p), source_target_pairs={{0,1}}",
            ((0, 4), (1, 5), (2, 6), (3, 7)),
            ("r",),
        ),
    ],
)
def test_groups_of_replicas_with_partitions_are_those_of_xlas_modes(collective, groups, axes):
    (found,) = sn.explain_hlo(OF_REPLICAS.format(collective), mesh="r=2,p=4").collectives
    assert (found.groups, found.axes) == (groups, axes)


def test_groups_that_name_more_replicas_than_there_are_get_an_error():
    text = OF_REPLICAS.format("all-reduce(%p), replica_groups={{0,5}}, to_apply=%add")
    with pytest.raises(
        ValueError, match=r"the replica groups .*: expected groups of at most 2 devices, got 6"
    ):
        sn.explain_hlo(text, mesh="r=2,p=4")
