"""Collectives over TPU slices: within each over its links, between them over the hosts.

Two slices of four chips; the right values are those of the program right after partitioning, and
of the targets that TPU writes beside each send.
"""

from __future__ import annotations

import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import Mesh, PartitionSpec
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.cost.hardware import find_hardware
from shardnb.cost.links import Torus
from shardnb.report import model
from shardnb.texts.replica_groups import AxisFinder
from tests.needs import needs_libtpu

_ENVIRONMENT = {
    "TPU_SKIP_MDS_QUERY": "1",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "true",
    "TPU_ACCELERATOR_TYPE": "v5litepod-8",
    "TPU_WORKER_HOSTNAMES": "localhost",
}


def slices(count, shape, names, *, transposed=False):
    """Lay a mesh over slices of 2x2 chips, one slice after the other."""
    from jax.experimental import topologies

    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    devices = topologies.get_topology_desc("v5e:2x2", "tpu", num_slices=count).devices
    ordered = sorted(devices, key=lambda device: (device.slice_index, device.id))
    grid = np.array(ordered).reshape(shape)
    return Mesh(grid.T if transposed else grid, names)


def f32(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def sent(report):
    return {(c.kind, c.axes, c.shape, c.wire_bytes) for c in report.collectives}


def step(w, x, y):
    return w - 0.1 * jax.grad(lambda w: jnp.mean((x @ w - y) ** 2))(w)


@pytest.fixture(scope="module")
def training():
    spec: PartitionSpec = P(("dcn", "data"))
    mesh = slices(2, (2, 4), ("dcn", "data"))
    args = f32(512, 512), f32(256, 512), f32(256, 512)
    return sn.explain(step, *args, mesh=mesh, in_specs=(P("data"), spec, spec))


@needs_libtpu
def test_a_training_step_over_two_slices_has_the_axes_bytes_lines_and_causes_of_all(training):
    # all-gather of w over data: 512 x 512 in bf16, three of four blocks are sent. The gradient:
    # summed over data and cut (3 blocks of 128 x 512 in f32), then summed over two slices.
    assert sent(training) == {
        ("all-gather", ("data",), (512, 512), 512 * 512 * 2 * 3 // 4),
        ("reduce-scatter", ("data",), (128, 512), 128 * 512 * 4 * 3),
        ("all-reduce", ("dcn",), (128, 512), 2 * 128 * 512 * 4 // 2),
    }
    told = {c.kind: (c.reason, c.producer, c.consumer) for c in training.collectives}
    assert told == {
        "all-gather": ("conflict", "w", "dot_general"),
        "reduce-scatter": ("partial-sum", "result of dot_general", "dot_general"),
        "all-reduce": ("partial-sum", "result of dot_general", "dot_general"),
    }
    between = next(c for c in training.collectives if c.axes == ("dcn",))
    assert between.groups == ((0, 4), (1, 5), (2, 6), (3, 7))
    assert (between.generated, between.asked_by) == (True, "inferred")
    line = step.__code__.co_firstlineno + 1
    assert {c.line for c in training.collectives} == {line}


@needs_libtpu
def test_what_goes_between_slices_is_priced_by_the_network_of_the_data_center(training):
    # 256 KiB at 3.125 GB/s; within a slice, by links of 45 GB/s.
    between = next(c for c in training.collectives if c.axes == ("dcn",))
    assert between.seconds == pytest.approx(256 * 1024 / 3.125e9)
    links = training.cost.links
    assert links["dcn"] == "the data-center network between 2 slices"
    assert "ring" in links["data"] or "line" in links["data"]
    assert "share" not in links["data"]
    assert not any("devices share a chip" in text for text in training.cost.assumptions)


def moved(fn, mesh, *specs, out=None):
    return sn.explain(fn, *(f32(64, 64) for _ in specs), mesh=mesh, in_specs=specs, out_specs=out)


@needs_libtpu
def test_gathers_exchanges_and_permutes_between_slices_are_collectives():
    mesh = slices(2, (2, 4), ("dcn", "data"))
    gathered = moved(lambda x: x * 2, mesh, P("dcn"), out=P())
    assert sent(gathered) == {("all-gather", ("dcn",), (64, 64), 64 * 64 * 4 // 2)}
    assert {c.reason for c in gathered.collectives} == {"output-spec"}
    exchanged = moved(lambda x: x * 2, mesh, P("dcn"), out=P(None, "dcn"))
    assert [(c.kind, c.axes) for c in exchanged.collectives] == [("all-to-all", ("dcn",))]
    assert {c.asked_by for c in exchanged.collectives} == {"requested"}

    @jax.shard_map(mesh=mesh, in_specs=P("dcn", "data"), out_specs=P("dcn", "data"))
    def swap(x):
        return lax.ppermute(x, "dcn", [(0, 1), (1, 0)])

    (permuted,) = moved(swap, mesh, P("dcn", "data")).collectives
    assert (permuted.kind, permuted.axes, permuted.asked_by) == (
        "collective-permute",
        ("dcn",),
        "called",
    )
    assert permuted.wire_bytes == 32 * 16 * 4
    assert set(permuted.groups) == {(a, b) for i in range(4) for a, b in ((i, i + 4), (i + 4, i))}


@needs_libtpu
def test_a_sum_over_both_is_one_within_each_slice_and_one_between_them():
    mesh = slices(2, (2, 4), ("dcn", "data"))
    report = moved(lambda x: x.sum(0), mesh, P(("dcn", "data")), out=P())
    assert [c.axes for c in report.collectives] == [("data",), ("dcn",)]
    assert {(c.reason, c.producer) for c in report.collectives} == {("partial-sum", "x.sum(0)")}


@needs_libtpu
def test_the_steps_of_a_large_sum_over_all_slices_have_its_cause():
    # 256 KiB x 4 on each device: scattered over a slice, summed between two, gathered again.
    mesh = slices(2, (8,), ("data",))
    args = f32(1024, 512), f32(512, 256)
    report = sn.explain(jnp.matmul, *args, mesh=mesh, in_specs=(P(None, "data"), P("data")))
    assert sent(report) == {
        ("reduce-scatter", ("data:(2)4",), (256, 256), 3 * 256 * 256 * 4),
        ("all-reduce", ("data:(1)2",), (64, 8, 128), 256 * 256 * 4),
        ("all-gather", ("data:(2)4",), (1024, 256), 3 * 256 * 256 * 4),
    }
    told = {(c.reason, c.producer, c.consumer, c.line) for c in report.collectives}
    assert len(told) == 1
    assert {reason for reason, *_ in told} == {"partial-sum"}


@needs_libtpu
@pytest.mark.parametrize(("axis", "groups"), [("x", (0, 8)), ("y", (0, 4))])
def test_of_four_slices_pairs_are_told_by_the_ids_of_their_devices(axis, groups):
    mesh = slices(4, (2, 2, 4), ("x", "y", "data"))
    (found,) = moved(lambda x: x.sum(0), mesh, P(axis, "data"), out=P("data")).collectives
    assert (found.axes, found.groups[0]) == ((axis,), groups)


@needs_libtpu
def test_slices_along_the_last_axis_of_a_mesh_are_told_as_well():
    mesh = slices(2, (2, 4), ("data", "dcn"), transposed=True)
    (found,) = moved(lambda x: x.sum(0), mesh, P("dcn", "data"), out=P("data")).collectives
    assert (found.axes, found.groups[0]) == (("dcn",), (0, 1))


# By hand: groups within a slice, and the chips of two slices


def two_slices():
    return model.Mesh(
        (model.Axis("data", 2), model.Axis("dcn", 2)),
        (100000, 200000, 100001, 200001),
        kind="TPU v5 lite",
        coords=((0, 0), (0, 0), (1, 0), (1, 0)),
        slices=(0, 1, 0, 1),
    )


def test_groups_of_a_program_for_one_slice_stand_for_those_of_each():
    mesh = two_slices()
    within = AxisFinder(mesh, 2)
    assert within.groups("{{0,1}}") == ((0, 2), (1, 3))
    assert within.axes(within.groups("{{0,1}}")) == ("data",)
    over_all = AxisFinder(mesh, 4)
    assert over_all.groups("{{0,1},{2,3}}") == ((0, 1), (2, 3))


def test_chips_of_two_slices_at_the_same_place_are_two_chips():
    hardware = find_hardware("v5e")
    torus = Torus.of(two_slices(), hardware)
    assert torus.devices == 1
    assert torus.slices_of(((0, 2), (1, 3))) == 1
    assert torus.slices_of(((0, 1), (2, 3))) == 2
    # Each slice has links of its own.
    assert torus.permutation(((0, 2), (1, 3))) == (1, 1)
