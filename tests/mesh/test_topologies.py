"""TPU topologies: their names, where mesh axes are on the torus, and what does not fit."""

from __future__ import annotations

import math
import os
import subprocess
import sys

import jax
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.mesh import make_grid, topologies
from shardnb.report import InvalidInput
from tests.needs import needs_libtpu


@pytest.mark.parametrize(
    ("text", "chips"),
    [
        # By the machine types of the clouds: cores for v2 to v4, v5p and tpu7x, chips for the rest.
        ("v2-8", "v2:2x2"),
        ("v3-32", "v3:4x4"),
        ("v3-2048", "v3:32x32"),
        ("v4-8", "v4:2x2x1"),
        ("v4-32", "v4:2x2x4"),
        ("v4-128", "v4:4x4x4"),
        ("v4-2048", "v4:8x8x16"),
        ("v5litepod-4", "v5e:2x2"),
        ("v5e-8", "v5e:2x4"),
        ("v5e-16", "v5e:4x4"),
        ("v5e-32", "v5e:4x8"),
        ("v5e-256", "v5e:16x16"),
        ("v5p-8", "v5p:2x2x1"),
        ("v5p-64", "v5p:2x4x4"),
        ("v6e-1", "v6e:1x1"),
        ("tpu7x-16", "tpu7x:2x2x2"),
        ("v5e=2x4", "v5e:2x4"),
        ("v5p:16x20x28", "v5p:16x20x28"),
        ("2*v5e-8", "2*v5e:2x4"),
        ("trillium-8", "v6e:2x4"),
        ("2*ironwood:2x2x1", "2*tpu7x:2x2x1"),
        ("1*v4:2x2x1", "v4:2x2x1"),
    ],
)
def test_a_topology_has_one_name_by_its_chips(text, chips):
    assert topologies.canonical(text) == chips


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("v9:2x2", "'v9' is not a TPU; the TPUs are v2, v3, v4, v5e, v5p, v6e, tpu7x$"),
        ("v5e-12", "'v5e-12' is not a TPU machine type; some are v5e-4, v5e-8"),
        ("v4-0", "not a TPU machine"),
        ("v5e:0x4", "expected a TPU topology of 1 to 9,216 chips, got 'v5e:0x4' with 0; a TPU"),
        ("v4:0x0x0", "with 0"),
        ("v5e:00x02", "with 0"),
        ("v5e:1000x1000", "with 1,000,000"),
        ("0*v5e:2x4", "slices of 1 to 65,536 chips in all, got '0\\*v5e:2x4' with 0"),
        ("99*v5p:16x20x28", "with 887,040"),
        ("v5p-18446744073709551616", "with 9,223,372,036,854,775,808"),
    ],
)
def test_a_name_that_is_none_shows_those_that_are(text, message):
    with pytest.raises(ValueError, match=message):
        topologies.canonical(text)


def test_a_topology_without_chips_is_refused():
    with pytest.raises(ValueError, match="1 to 9,216 chips, got 'v5e:0x4' with 0"):
        make_grid("data=1", on="v5e:0x4")


@needs_libtpu
def test_axes_lie_on_neighbouring_chips():
    mesh = make_grid("data=4,model=2", on="v5e:2x4").describe()
    assert (mesh.target, mesh.platform, mesh.kind, mesh.emulated) == (
        "v5e:2x4",
        "tpu",
        "TPU v5 lite",
        False,
    )
    assert sorted(mesh.coords) == [(x, y, 0) for x in range(2) for y in range(4)]
    # The two devices of each model pair are one hop apart.
    ends = np.array(mesh.coords).reshape(4, 2, 3)
    assert np.abs(ends[:, 0] - ends[:, 1]).sum(axis=1).tolist() == [1, 1, 1, 1]


@needs_libtpu
def test_a_machine_type_is_the_topology_of_its_chips():
    assert make_grid("data=8", on="v5e-8") is make_grid("data=8", on="v5e:2x4")


@needs_libtpu
@pytest.mark.parametrize("on", ["v3:2x2", "v4:2x2x1", "tpu7x:2x2x1"])
def test_the_two_cores_of_a_chip_are_neighbours_on_the_last_axis(on):
    mesh = make_grid("data=4,model=2", on=on).describe()
    chips = np.array(mesh.coords).reshape(4, 2, 3)
    assert (chips[:, 0] == chips[:, 1]).all()
    assert mesh.cores == (0, 1) * 4


@needs_libtpu
def test_a_chip_of_v5p_is_one_device():
    mesh = make_grid("data=4,model=2", on="v5p:2x2x2").describe()
    assert (mesh.size, mesh.cores) == (8, None)


@needs_libtpu
def test_2048_cores_of_v4():
    mesh = make_grid("data=128,model=16", on="v4:8x8x16").describe()
    assert (mesh.size, len(set(zip(mesh.coords, mesh.cores, strict=True)))) == (2048, 2048)


@needs_libtpu
def test_axes_of_all_types():
    types = make_grid("a=2:explicit,b=2:manual,c=2", on="v5e:2x4").describe().axes
    assert [axis.type for axis in types] == ["explicit", "manual", "auto"]


@needs_libtpu
@pytest.mark.parametrize(
    "one", ["v2:2x2", "v3:2x2", "v4:2x2x1", "v5e:2x4", "v5p:2x2x2", "v6e:2x4", "tpu7x:2x2x1"]
)
def test_the_first_axis_is_over_the_slices_of_each_generation(one):
    mesh = make_grid("dcn=2,data=4,model=2", on=f"2*{one}").describe()
    assert (mesh.target, mesh.slices) == (f"2*{one}", (0,) * 8 + (1,) * 8)
    # Both slices are laid as one slice alone is.
    alone = make_grid("data=4,model=2", on=one).describe()
    assert mesh.coords == alone.coords * 2
    assert mesh.cores == (alone.cores and alone.cores * 2)


@needs_libtpu
def test_an_axis_may_be_over_slices_and_within_them():
    mesh = make_grid("data=4,model=4", on="2*v5e:2x4").describe()
    assert np.array(mesh.slices).reshape(4, 4)[:, 0].tolist() == [0, 0, 1, 1]


@needs_libtpu
def test_four_slices_are_shared_out_to_the_first_axes():
    mesh = make_grid("a=2,b=4,c=4", on="4*v5e:2x4").describe()
    grid = np.array(mesh.slices).reshape(2, 4, 4)
    assert grid[:, :, 0].tolist() == [[0, 0, 1, 1], [2, 2, 3, 3]]
    assert (grid == grid[:, :, :1]).all()


@needs_libtpu
def test_a_mesh_of_another_size_shows_which_slices_fit():
    with pytest.raises(ValueError, match=r"2\*v5e:2x4 has 16: .*; 2\*v5e:4x4 has 32"):
        make_grid("data=8,model=4", on="2*v5e:2x4")


@needs_libtpu
def test_a_program_for_two_slices_is_compiled_by_name():
    x, specs = jax.ShapeDtypeStruct((64, 1024), "float32"), {"in_specs": P("dcn"), "out_specs": P()}
    report = sn.explain(lambda x: x.sum(0), x, mesh="dcn=2,data=4", on="2*v5e:2x2", **specs)
    (between,) = report.collectives
    assert (between.kind, between.axes, between.shape) == ("all-reduce", ("dcn",), (1024,))
    assert set(between.groups) == {(0, 4), (1, 5), (2, 6), (3, 7)}


@needs_libtpu
def test_a_mesh_of_another_size_shows_what_fits():
    with pytest.raises(ValueError, match="has 16 devices, and v5e:2x4 has 8") as error:
        make_grid("data=4,model=4", on="v5e:2x4")
    assert "4 x 2 or 2 x 4" in str(error.value)
    assert "v5e:4x4 has 16" in str(error.value)


@needs_libtpu
def test_chips_with_two_devices_are_said_to_have_them():
    with pytest.raises(ValueError, match=r"v4:2x2x1 has 8 \(2 on each chip\)"):
        make_grid("model=4", on="v4:2x2x1")


@needs_libtpu
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("v5e:3x3", "expected a shape such as v5e:2x4 or v5e:2x2, got 'v5e:3x3': 3x3 chips cannot"),
        ("v5e:3x5", "such as v5e:4x4 or v5e:2x4, got 'v5e:3x5': .* among hosts of 2x2 chips"),
        ("2*v5e:1x3", "got '2.v5e:1x3': 1x3 chips cannot be divided among hosts of .x2 chips"),
    ],
)
def test_a_slice_that_does_not_exist_is_refused_with_shapes_that_do(name, says):
    size = 2 * 3 if name.startswith("2*") else math.prod(map(int, name[4:].split("x")))
    with pytest.raises(InvalidInput, match=says):
        make_grid(f"data={size}", on=name)


def test_a_slice_larger_than_a_pod_is_refused_before_the_compiler_ends_its_process():
    with pytest.raises(InvalidInput, match="a v5e pod, which has 16x16 chips, got 'v5e:32x32'"):
        topologies.canonical("v5e:32x32")


@needs_libtpu
def test_a_mesh_of_the_users_is_laid_on_a_topology():
    own = jax.sharding.Mesh(make_grid("data=4,model=2").mesh.devices, ("data", "model"))
    mesh = make_grid(own, on="v5e:2x4").describe()
    assert (mesh.shape, mesh.target) == ({"data": 4, "model": 2}, "v5e:2x4")


@needs_libtpu
def test_an_array_keeps_its_sharding_on_the_same_mesh_of_other_hardware():
    from shardnb.compiler import placement

    own, grid = make_grid("data=4,model=2").mesh, make_grid("data=4,model=2", on="v5e:2x4")
    leaf = jax.ShapeDtypeStruct((8, 8), "float32", sharding=NamedSharding(own, P("data")))
    assert placement.own_sharding(leaf, grid.mesh).spec == P("data")


@needs_libtpu
def test_the_environment_is_left_as_it_was():
    before = dict(os.environ)
    topologies.topology.cache_clear()
    topologies.topology("v5e:2x2")
    assert dict(os.environ) == before


KERNEL = """
import jax
{first}
from shardnb.mesh import make_grid
mesh = make_grid("data=4,model=2", on="v5e:2x4").mesh
print(len(mesh.devices.flat), mesh.devices.flat[0].platform)
print([device.platform for device in jax.devices()], float(jax.numpy.ones(3).sum()))
"""


@needs_libtpu
@pytest.mark.parametrize("platforms", [None, "cpu"])
def test_the_kernels_own_devices_stay_what_they_are_and_nothing_is_printed(platforms):
    env = {name: value for name, value in os.environ.items() if name != "JAX_PLATFORMS"}
    if platforms:
        env["JAX_PLATFORMS"] = platforms
    done = subprocess.run(
        [sys.executable, "-c", KERNEL.format(first="")],
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split("\n")[:2] == ["8 tpu", "['cpu'] 3.0"]
    assert done.stderr == ""


def test_without_libtpu_the_extra_is_named(monkeypatch):
    def missing(*_args, **_options):
        raise RuntimeError("JAX TPU support not installed; cannot generate TPU topology.")

    monkeypatch.setattr("jax.experimental.topologies.get_topology_desc", missing)
    topologies.topology.cache_clear()
    with pytest.raises(ValueError, match=r"pip install 'shardnb\[tpu\]'"):
        topologies.laid_out("v5e:2x4", (8,))
