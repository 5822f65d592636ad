"""The grammar of meshes, and the devices they are laid on."""

from __future__ import annotations

from pathlib import Path

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from shardnb.mesh import make_grid, parse_mesh, target_name

AXES = st.lists(
    st.tuples(
        st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True).filter(str.isidentifier),
        st.integers(1, 4096),
        st.sampled_from(["auto", "explicit", "manual"]),
    ),
    min_size=1,
    max_size=5,
    unique_by=lambda axis: axis[0],
)


@given(AXES)
def test_what_is_written_is_read(axes):
    text = ", ".join(f"{name} = {size} : {kind}" for name, size, kind in axes)
    spec = parse_mesh(text)
    assert [(a.name, a.size, a.type) for a in spec.axes] == axes
    assert parse_mesh(str(spec)) == spec


def test_axes_without_a_type_take_the_one_of_all():
    assert [a.type for a in parse_mesh("a=2,b=2:auto", "explicit").axes] == ["explicit", "auto"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not a mesh axis"),
        ("data", "'data' is not a mesh axis; a mesh is written as data=4,model=2"),
        ("data=0", "size 0"),
        ("data=2,data=4", "twice"),
        ("data=2:magic", "'magic' is not an axis type; the types are auto, explicit, manual"),
        ("2=data", "is not a mesh axis"),
        ("data=-1", "is not a mesh axis"),
    ],
)
def test_a_bad_mesh_shows_the_right_form(text, message):
    with pytest.raises(ValueError, match=message):
        parse_mesh(text)


def test_the_same_text_gives_the_same_mesh():
    assert make_grid("data=4,model=2").mesh is make_grid("data=4,model=2").mesh


def test_types_reach_jax():
    assert make_grid("a=2:explicit,b=2").mesh.axis_types == (AxisType.Explicit, AxisType.Auto)


def test_manual_axes_are_kept_for_shard_map():
    grid = make_grid("a=2:manual,b=2")
    assert grid.manual == {"a"}
    assert [a.type for a in grid.describe().axes] == ["manual", "auto"]


def test_a_mesh_of_the_users_is_taken_as_it_is():
    mesh = jax.make_mesh((1,), ("x",))
    assert make_grid(mesh).mesh is mesh
    assert make_grid(mesh, "auto").mesh.axis_types == (AxisType.Auto,)


def test_without_a_mesh_the_one_of_the_arguments_is_taken():
    mesh = make_grid("data=4").mesh
    arg = jax.ShapeDtypeStruct((4,), "float32", sharding=NamedSharding(mesh, P("data")))
    assert make_grid(None, args=(arg,)).mesh is mesh


def test_without_any_mesh_the_form_is_shown():
    with pytest.raises(ValueError, match="pass mesh='data=4,model=2'"):
        make_grid(None)


def test_the_mesh_of_set_mesh_is_the_last_resort():
    mesh = make_grid("data=4").mesh
    with jax.set_mesh(mesh):
        assert make_grid(None).mesh == mesh


def test_an_unknown_target_is_refused():
    with pytest.raises(ValueError, match="'moon' is not a target; the targets are cpu, attached"):
        make_grid("data=4", on="moon")


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("v100:8", "'v100' is not a chip .* the TPUs are v2, .*, and the GPUs are a100, .*gb300$"),
        ("rtx4090:8", "'rtx4090' is not a chip"),
        ("2*mi300:4x8", "'mi300' is not a chip"),
        ("v9-8", "'v9' is not a chip"),
        ("H100:4x8", "'H100:4x8' is not a target; did you mean h100:4x8"),
        ("h100-8", "did you mean h100:8"),
        ("h100", "'h100' is not a target; did you mean h100:8"),
        ("2*V5E", r"did you mean 2\*v5e:2x2"),
        ("Ironwood", "did you mean ironwood:2x2x1"),
        ("V5P-8", "did you mean v5p-8"),
    ],
)
def test_another_chip_or_form_names_what_there_is(target, message):
    with pytest.raises(ValueError, match=message):
        make_grid("data=4", on=target)
    if ":" in target or "-" in target:
        with pytest.raises(ValueError, match=message):
            target_name(target)


def test_more_devices_than_are_attached():
    count = len(jax.devices())
    with pytest.raises(ValueError, match=f"has {count + 1} devices, and {count} cpu device"):
        make_grid(f"data={count + 1}", on="attached")


def test_2048_emulated_devices():
    mesh = make_grid("data=256,model=8").describe()
    assert (mesh.size, mesh.emulated, mesh.shape) == (2048, True, {"data": 256, "model": 8})


def test_a_mesh_of_more_devices_than_xla_emulates_is_refused_with_the_number():
    with pytest.raises(ValueError, match=r"at most 2,048 devices, .* got a mesh of 16,384"):
        make_grid("data=16384")
    with pytest.raises(ValueError, match=r"got a mesh of 10,000,000,000"):
        make_grid("data=100000,model=100000")


def test_a_program_compiles_for_as_many_devices_as_xla_emulates():
    grid, over = make_grid("data=2048"), P("data")
    x = jax.ShapeDtypeStruct((4096,), "float32", sharding=NamedSharding(grid.mesh, over))
    assert "all-reduce" in jax.jit(lambda x: x.sum()).lower(x).compile().as_text()


def test_meshes_of_many_sizes_share_their_clients():
    before = threads()
    clients = {id(make_grid(f"data={n}").mesh.devices.flat[0].client) for n in range(33, 65)}
    assert len(clients) == 1
    # Three or four threads a device, of 64 devices at most.
    assert threads() - before < 5 * 64


def test_a_mesh_has_the_first_devices_of_a_client_and_runs_on_them():
    mesh = make_grid("data=3").mesh
    assert [device.id for device in mesh.devices.flat] == [0, 1, 2]
    x = jax.device_put(np.arange(6.0), NamedSharding(mesh, P("data")))
    assert float(jax.jit(lambda x: x.sum())(x)) == 15


def threads():
    return sum(1 for _ in Path("/proc/self/task").iterdir())
