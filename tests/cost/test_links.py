from __future__ import annotations

import itertools

import pytest

from shardnb.cost.hardware import HARDWARE, find_hardware
from shardnb.cost.links import ChipRow, Torus, laid, rings
from shardnb.report import Axis, Mesh


def torus(chip, target, coords, **axes):
    mesh = Mesh(
        tuple(Axis(name, size) for name, size in axes.items()),
        tuple(range(len(coords))),
        target=target,
        kind=find_hardware(chip).kinds[0],
        coords=tuple(coords),
    )
    return Torus.of(mesh, find_hardware(chip))


def box(*sizes):
    return list(itertools.product(*(range(size) for size in sizes)))


def test_every_hardware_names_its_source():
    assert all(hardware.source for hardware in HARDWARE)


def test_a_device_kind_that_is_not_in_the_table_is_not_guessed():
    assert find_hardware("NVIDIA H100 PCIe") is None


def test_axes_below_16_of_a_v5e_have_no_wraparound():
    assert rings((8, 8), find_hardware("v5e")) == (False, False)


def test_a_v5e_dimension_of_16_is_a_ring():
    assert rings((8, 16, 1), find_hardware("v5e")) == (False, True, False)


def test_a_v4_slice_of_full_cubes_is_a_torus():
    assert rings((4, 4, 8), find_hardware("v4")) == (True, True, True)


def test_a_v4_slice_below_a_cube_has_no_wraparound():
    assert rings((2, 4, 4), find_hardware("v4")) == (False, False, False)


def test_a_group_along_a_row_rides_on_a_line():
    route = torus("v5e", "v5e:2x4", box(2, 4), x=2, y=4).route(((0, 1, 2, 3), (4, 5, 6, 7)))
    assert route.lines == (ChipRow(dim=1, size=4),)


def test_a_group_along_a_full_dimension_rides_on_a_ring():
    chips = box(16, 16)
    row = tuple(range(16))
    assert torus("v5e", "v5e:16x16", chips, x=16, y=16).route((row,)).lines == (
        ChipRow(dim=1, size=16, ring=True),
    )


def test_a_part_of_a_ring_is_a_line():
    half = (tuple(range(8)), tuple(range(8, 16)))
    assert torus("v5e", "v5e:16x16", box(16, 16), x=16, y=16).route(half).lines == (
        ChipRow(dim=1, size=8),
    )


def test_every_second_chip_of_a_ring_is_a_ring_whose_links_are_shared():
    evens = (tuple(range(0, 16, 2)), tuple(range(1, 16, 2)))
    assert torus("v5e", "v5e:16x16", box(16, 16), x=16, y=16).route(evens).lines == (
        ChipRow(dim=1, size=8, stride=2, ring=True),
    )


def test_a_group_over_two_dimensions_rides_on_both():
    route = torus("v5e", "v5e:2x4", box(2, 4), x=2, y=4).route((tuple(range(8)),))
    assert [line.size for line in route.lines] == [2, 4]


def test_the_slice_is_the_one_that_the_target_names_where_the_mesh_is_a_part_of_it():
    part = [(0, y) for y in range(16)]
    assert torus("v5e", "v5e:16x16", part, y=16).shape == (16, 16)


def test_two_cores_of_a_chip_share_its_links():
    cores = [chip for chip in box(4, 1) for _ in range(2)]
    route = torus("v3", "v3:4x1", cores, x=4, core=2).route(((0, 2, 4, 6), (1, 3, 5, 7)))
    assert (route.chips, route.per_chip, route.sharers) == (4, 1, 2)


def test_a_group_that_is_no_box_has_no_route():
    assert torus("v5e", "v5e:2x4", box(2, 4), x=2, y=4).route(((0, 1, 4),)) is None


def test_of_unlike_groups_the_slowest_counts():
    groups = ((0, 1), (2, 3), (4, 6), (5, 7))
    route = torus("v5e", "v5e:2x4", box(2, 4), x=2, y=4).route(groups)
    assert route.lines == (ChipRow(dim=1, size=2, stride=2),)


def test_a_shift_by_one_on_a_ring_loads_each_link_once():
    shift = tuple((at, (at + 1) % 16) for at in range(16))
    ring = torus("v5e", "v5e:16x1", box(16, 1), x=16)
    assert ring.permutation(shift) == (1, 1)


def test_a_shift_by_one_on_a_line_goes_all_the_way_back_at_its_end():
    shift = tuple((at, (at + 1) % 4) for at in range(4))
    assert torus("v5e", "v5e:4x1", box(4, 1), x=4).permutation(shift) == (3, 1)


def test_a_slice_of_another_size_is_refused():
    with pytest.raises(ValueError, match="the mesh has 8 devices, and a slice of 4x4 chips has 16"):
        laid(Mesh((Axis("x", 8),), tuple(range(8))), (4, 4), 1)
