"""Seconds by hand: V bytes of the whole array, one link 45e9 B/s one way (v5e, v4)."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from shardnb.cost import find_hardware, on_hardware, priced
from shardnb.report import Axis, Collective, Mesh, Report
from shardnb.report.cost import Work

MB = 10**6
LINK = 45e9
# Of GPUs, from NCCL's tuning model: LL, ring.
START, STEP, OVER_NETWORK = 6.6e-6, 0.6e-6, 2.7e-6


def box(*sizes):
    return tuple(itertools.product(*(range(size) for size in sizes)))


def tpu(target, coords, kind="TPU v5 lite", **axes):
    found = tuple(Axis(name, size) for name, size in axes.items())
    return Mesh(found, tuple(range(len(coords))), target, "tpu", kind, coords=coords)


def gpus(count, kind="NVIDIA H100 80GB HBM3"):
    return Mesh((Axis("x", count),), tuple(range(count)), "attached", "gpu", kind)


def collective(kind, megabytes, groups, axes=("x",), sent=1, **changes):
    """Return a collective whose result has so many bytes on a device."""
    made = Collective(0, kind, axes, groups, "u8", (megabytes * MB,), sent)
    return replace(made, **changes)


def seconds(mesh, *collectives, work=None):
    report = priced(Report("f", mesh, collectives=collectives, work=work))
    return [c.seconds for c in report.collectives]


ROW = (tuple(range(16)),)
RING = tpu("v5e:16x1", box(16, 1), x=16)
HALF = ((0, 1, 2, 3), (4, 5, 6, 7))
LINES = tpu("v5e:2x4", box(2, 4), y=2, x=4)
CUBE = tpu("v4:4x4x4", box(4, 4, 4), "TPU v4", x=4, y=4, z=4)


def test_an_all_gather_on_a_ring_uses_both_ways():
    # 16 MB in all, of which 15 come over two links.
    assert seconds(RING, collective("all-gather", 16, ROW)) == [pytest.approx(15e6 / (2 * LINK))]


def test_an_all_gather_on_a_line_takes_twice_as_long():
    assert seconds(LINES, collective("all-gather", 16, HALF)) == [pytest.approx(12e6 / LINK)]


def test_a_reduce_scatter_takes_as_long_as_an_all_gather_of_its_operand():
    assert seconds(RING, collective("reduce-scatter", 1, ROW)) == [pytest.approx(15e6 / (2 * LINK))]


def test_an_all_reduce_takes_twice_that():
    assert seconds(RING, collective("all-reduce", 16, ROW)) == [pytest.approx(30e6 / (2 * LINK))]


def test_an_all_to_all_on_a_ring_takes_a_quarter_of_an_all_gather():
    # Each device holds 1 MB of 16: V / (4 W), W both ways of a link.
    assert seconds(RING, collective("all-to-all", 1, ROW)) == [pytest.approx(16e6 / (4 * 2 * LINK))]


def test_an_all_to_all_on_a_line_is_bound_by_its_middle():
    # Two of four devices send half of their 4 MB each across one link.
    assert seconds(LINES, collective("all-to-all", 4, HALF)) == [pytest.approx(2 * 2e6 / LINK)]


def test_a_group_over_three_rings_uses_six_links():
    every = (tuple(range(64)),)
    one = collective("all-gather", 64, every, axes=("x", "y", "z"))
    assert seconds(CUBE, one) == [pytest.approx(63e6 / (6 * LINK))]


def test_a_shift_on_a_ring_takes_one_link():
    shift = tuple((at, (at + 1) % 16) for at in range(16))
    assert seconds(RING, collective("collective-permute", 3, shift)) == [pytest.approx(3e6 / LINK)]


def test_a_group_that_is_no_box_sends_from_chip_to_chip():
    # A corner of three chips: what goes around comes back over the links that it came by.
    corners = ((0, 1, 5), (2, 3, 7))
    one = collective("all-gather", 3, corners, sent=2 * MB)
    assert seconds(LINES, one) == [pytest.approx(2e6 / LINK)]


def test_a_small_exchange_takes_its_hops():
    # 8 hops to the other side of a ring of 16; an all-reduce goes twice.
    small = [
        replace(collective(kind, 0, ROW), shape=(64,)) for kind in ("all-gather", "all-reduce")
    ]
    small[1] = replace(small[1], id=1)
    assert seconds(RING, *small) == [pytest.approx(8e-6), pytest.approx(16e-6)]


def test_collectives_that_are_sent_as_one_pay_their_hops_once():
    one = replace(collective("all-gather", 0, ROW), shape=(64,), combined_with=(1,))
    other = replace(one, id=1, combined_with=(0,))
    assert sum(seconds(RING, one, other)) == pytest.approx(8e-6)


def test_cores_that_share_a_chip_share_its_links():
    cores = tuple(chip for chip in box(4, 1) for _ in range(2))
    mesh = tpu("v3:4x1", cores, "TPU v3", x=4, core=2)
    groups = ((0, 2, 4, 6), (1, 3, 5, 7))
    assert seconds(mesh, collective("all-gather", 4, groups)) == [pytest.approx(3e6 * 2 / 82e9)]


def test_an_exchange_within_a_chip_is_not_priced():
    cores = tuple(chip for chip in box(4, 1) for _ in range(2))
    mesh = tpu("v3:4x1", cores, "TPU v3", x=4, core=2)
    pairs = ((0, 1), (2, 3), (4, 5), (6, 7))
    report = priced(Report("f", mesh, collectives=(collective("all-reduce", 1, pairs),)))
    assert (report.collectives[0].seconds, report.cost.unpriced) == (None, 1)


def test_gpus_of_a_node_send_over_their_switch():
    one = collective("all-reduce", 8, (tuple(range(8)),), sent=14 * MB)
    assert seconds(gpus(8), one) == [pytest.approx(14e6 / 450e9 + START + 14 * STEP)]


def test_of_switch_and_network_the_slower_counts():
    # Each node takes 8 of 16 MB, 1 MB by each of its 8 cards, and the other 14 go over the switch.
    one = collective("all-gather", 16, (tuple(range(16)),), sent=15 * MB)
    assert 1e6 / 50e9 < 14e6 / 450e9
    # Of 15 steps around the ring, one goes to the other node.
    latency = START + 14 * STEP + OVER_NETWORK
    assert seconds(gpus(16), one) == [pytest.approx(14e6 / 450e9 + latency)]


def test_gpus_alone_in_their_nodes_have_one_network_card_each():
    groups = tuple((at, at + 8) for at in range(8))
    one = collective("all-reduce", 1, groups, sent=MB)
    assert seconds(gpus(16), one) == [pytest.approx(1e6 / 50e9 + START + 2 * OVER_NETWORK)]


def test_a_small_collective_of_gpus_takes_its_start_and_its_steps():
    one = replace(collective("all-reduce", 0, (tuple(range(8)),)), shape=(4,), wire_bytes=7)
    assert seconds(gpus(8), one) == [pytest.approx(6.6e-6 + 14 * 0.6e-6, rel=1e-3)]


def test_small_collectives_of_gpus_that_are_sent_as_one_start_once():
    one = replace(collective("all-gather", 0, (tuple(range(8)),)), shape=(8,), combined_with=(1,))
    other = replace(one, id=1, combined_with=(0,))
    assert sum(seconds(gpus(8), one, other)) == pytest.approx(START + 7 * STEP, rel=1e-3)


def test_bytes_are_split_by_the_links_that_they_go_over():
    # An all-reduce of 16 MB over two hosts of 8 sends 2 x 15 MB in all: each GPU sums an eighth
    # over the network, 2 x 1/2 x 2 MB, and the rest goes over NVLink.
    both = collective("all-reduce", 16, (tuple(range(16)),), sent=30 * MB, trips=3)
    pairs = tuple((at, at + 8) for at in range(8))
    across = collective("all-gather", 2, pairs, axes=("y",), sent=MB, id=1)
    inside = collective("all-gather", 8, (tuple(range(8)),), axes=("z",), sent=7 * MB, id=2)
    cost = priced(Report("f", gpus(16), collectives=(both, across, inside))).cost
    assert cost.crossing == {"x": (3 * 28 * MB, 3 * 2 * MB), "y": (0, MB)}
    assert cost.links == {
        "x": "NVLink within hosts and the network between them",
        "y": "the network between hosts",
        "z": "NVLink",
    }


def test_nvlink_joins_the_hosts_of_a_rack():
    report = replace(emulated(x=144), collectives=())
    rack = on_hardware(report, "gb200:36x4")
    assert rack.cost is not None
    two = replace(
        report, collectives=(collective("all-gather", 144, (tuple(range(144)),), sent=1),)
    )
    assert on_hardware(two, "gb200:36x4").cost.crossing.keys() == {"x"}
    one = replace(
        emulated(x=72), collectives=(collective("all-gather", 72, (tuple(range(72)),), sent=1),)
    )
    assert not on_hardware(one, "gb200:18x4").cost.crossing


def test_a_cluster_has_as_many_gpus_as_the_mesh():
    with pytest.raises(ValueError, match="the mesh has 8 devices, and 1 x 4 x 8 GPUs are 32"):
        on_hardware(emulated(x=8), "h100:4x8")


def test_slices_are_priced_by_name():
    # Two slices of 2 x 2: an all-reduce over both goes over the network.
    pairs = tuple((at, at + 4) for at in range(4))
    one = collective("all-reduce", 1, pairs, sent=MB)
    report = on_hardware(replace(emulated(x=8), collectives=(one,)), "2*v5e:2x2")
    assert report.collectives[0].seconds == pytest.approx(1e6 / 3.125e9)
    assert report.cost.links == {"x": "the data-center network between 2 slices"}
    small = replace(one, shape=(4,), wire_bytes=4)
    quick = on_hardware(replace(emulated(x=8), collectives=(small,)), "2*v5e:2x2")
    assert quick.collectives[0].seconds == pytest.approx(2 * 10e-6)
    assert any("is an assumption" in text for text in quick.cost.assumptions)


def test_an_emulated_mesh_has_bytes_and_no_seconds():
    mesh = Mesh((Axis("x", 8),), tuple(range(8)), emulated=True)
    report = priced(
        Report("f", mesh, collectives=(collective("all-reduce", 1, (tuple(range(8)),)),))
    )
    assert (report.cost, report.collectives[0].seconds) == (None, None)


def test_a_device_that_no_row_describes_has_no_seconds():
    report = Report("f", gpus(8, "NVIDIA RTX 4090"))
    assert priced(report) == report


def test_totals_count_the_trips_by_axis_and_by_phase():
    one = collective("all-gather", 16, ROW, trips=4, phase="forward")
    other = collective("all-gather", 16, ROW, axes=("y",), id=1, trips=None)
    cost = priced(Report("f", RING, collectives=(one, other))).cost
    once = 15e6 / (2 * LINK)
    assert cost.by_axis == {"x": pytest.approx(4 * once)}
    assert cost.by_phase == {"forward": pytest.approx(4 * once)}
    assert cost.unpriced == 1


def test_the_longest_part_bounds_the_step():
    work = Work(flops=197e12 * 1e-3, accessed_bytes=819e9 * 5e-4)
    cost = priced(Report("f", RING, work=work)).cost
    assert cost.bound == "compute"
    assert cost.seconds == (pytest.approx(1e-3), pytest.approx(1.5e-3))


@pytest.mark.parametrize(
    ("flops", "accessed_bytes", "trips", "may"),
    [
        # A v5e computes 197e12 operations and moves 819e9 bytes a second; the all-gather takes
        # 15e6 bytes over two links, 0.167 ms, for each trip.
        pytest.param(197e9, 8.19e8, 0, ("compute",), id="memory at most as long"),
        pytest.param(197e9, 1.638e9, 0, ("compute", "memory"), id="an upper bound proves nothing"),
        pytest.param(197e9, 1.638e9, 9, ("communication", "memory"), id="beside communication"),
        pytest.param(197e9, 1.638e9, 18, ("communication",), id="memory at most less long"),
    ],
)
def test_memory_bounds_a_step_only_perhaps(flops, accessed_bytes, trips, may):
    """What every operation reads and writes is an upper bound: fused, a matmul moves less."""
    work = Work(flops=flops, accessed_bytes=accessed_bytes)
    gather = collective("all-gather", 16, ROW, trips=trips)
    cost = priced(Report("f", RING, work=work, collectives=(gather,))).cost
    assert cost.may_bound == may
    assert cost.bound == (may[0] if len(may) == 1 else None)


def test_what_bounds_a_step_is_not_known_beside_custom_calls():
    work = Work(flops=1e12, accessed_bytes=1e9, uncounted=2)
    assert priced(Report("f", RING, work=work)).cost.bound is None


def test_what_bounds_a_step_is_not_known_without_its_work():
    assert priced(Report("f", RING)).cost.bound is None


def test_two_devices_of_a_chip_have_half_of_it_each():
    cores = tuple(chip for chip in box(4, 1) for _ in range(2))
    mesh = tpu("v3:4x1", cores, "TPU v3", x=4, core=2)
    assert priced(Report("f", mesh)).cost.peak_flops == find_hardware("v3").flops / 2


def emulated(**axes):
    count = 1
    for size in axes.values():
        count *= size
    found = tuple(Axis(name, size) for name, size in axes.items())
    return Report("f", Mesh(found, tuple(range(count)), emulated=True))


def test_other_hardware_is_marked_as_assumed():
    cost = on_hardware(emulated(data=4, model=2), "v5e").cost
    assert cost.assumed
    assert "priced as if for TPU v5e" in cost.assumptions[0]


def test_a_mesh_with_more_axes_than_links_needs_a_slice():
    with pytest.raises(ValueError, match="name a slice, as v5e:4x4"):
        on_hardware(emulated(a=2, b=2, c=2), "v5e")


def test_a_slice_that_no_pod_holds_is_refused():
    with pytest.raises(
        ValueError, match="a slice of 32x8 chips is more than a pod of TPU v5e, 16x16"
    ):
        on_hardware(emulated(data=32, model=8), "v5e")


def test_a_slice_within_a_pod_takes_the_same_mesh():
    assert on_hardware(emulated(data=32, model=8), "v5e:16x16").cost.hardware == "TPU v5e"


def test_hardware_that_is_not_known_names_what_is():
    with pytest.raises(ValueError, match="known are v2, v3, v4, v5e, v5p, v6e, tpu7x, a100"):
        on_hardware(emulated(a=2), "mi300")


def test_an_all_to_all_over_two_lines_is_bound_by_the_longer():
    # 8 chips of 2 x 4 hold 2 MB each: 4 chips send half of it over the 2 links of the cut.
    one = collective("all-to-all", 2, (tuple(range(8)),), axes=("y", "x"))
    assert seconds(LINES, one) == [pytest.approx(4 * 1e6 / (2 * LINK))]


def test_the_formula_of_an_all_to_all_gives_its_seconds():
    # V·l/m over 4w, with V the 16 MB of all 8 chips and a line of 4.
    one = collective("all-to-all", 2, (tuple(range(8)),), axes=("y", "x"))
    report = priced(Report("f", LINES, collectives=(one,)))
    assert "V·l/m over 8w on a ring of l chips and over 4w on a line" in str(report.cost)
    assert report.collectives[0].seconds == pytest.approx(16e6 * 4 / 8 / (4 * LINK))


def test_how_chips_that_are_no_box_are_priced_is_said():
    corner = collective("all-gather", 3, ((0, 1, 5), (2, 3, 7)), sent=2 * MB)
    said = [
        priced(Report("f", LINES, collectives=(c,))).cost
        for c in (corner, collective("all-gather", 16, HALF))
    ]
    assert [
        any(a.startswith("chips that do not form a box") for a in cost.assumptions) for cost in said
    ] == [True, False]


def test_an_all_reduce_over_two_rings_uses_four_links():
    # 16 x 16 chips: 255/256 of 256 MB, twice, over 4 links.
    pod = tpu("v5e:16x16", box(16, 16), x=16, y=16)
    one = collective("all-reduce", 256, (tuple(range(256)),), axes=("x", "y"))
    assert seconds(pod, one) == [pytest.approx(2 * 255e6 / (4 * LINK))]


def test_an_all_gather_over_a_ring_and_a_line_adds_up_their_links():
    # 8 x 16 chips of a v5e: the dimension of 16 is a ring (2 links), that of 8 a line (1 link).
    slice_of = tpu("v5e:8x16", box(8, 16), x=8, y=16)
    one = collective("all-gather", 128, (tuple(range(128)),), axes=("x", "y"))
    assert seconds(slice_of, one) == [pytest.approx(127e6 / (3 * LINK))]
