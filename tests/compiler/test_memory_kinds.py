"""Arrays in the memory of a device's host: what is where, and how much."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.mesh import make_grid
from tests.needs import needs_libtpu

MIB = 1 << 20


def step(w, mu, g):
    """Update as MaxText does with its optimizer state offloaded to the host."""
    mu = 0.9 * jax.device_put(mu, jax.memory.Space.Device) + g
    return w - 0.1 * mu, jax.device_put(mu, jax.memory.Space.Host)


def shapes(mesh, kind="pinned_host"):
    """A quarter of 1024 x 1024 numbers is 1 MiB."""
    device, host = (NamedSharding(mesh, P("data"), memory_kind=k) for k in (None, kind))
    return [
        jax.ShapeDtypeStruct((1024, 1024), jnp.float32, sharding=s) for s in (device, host, device)
    ]


def memories(report):
    return [value.memory for value in (*report.inputs, *report.outputs)]


STATED = ["", "pinned_host", "", "", "pinned_host"]


@pytest.mark.parametrize("jit", [lambda fn: fn, jax.jit])
def test_what_is_on_the_host_is_not_the_devices(jit):
    report = sn.explain(jit(step), *shapes(make_grid("data=4").mesh))
    assert memories(report) == STATED
    memory = report.memory
    assert (memory.arguments, memory.host) == (2 * MIB, 2 * MIB)
    assert memory.outputs - MIB < 64
    assert "in pinned_host memory" in str(report)
    assert "2.0 MiB on the host" in str(report)


def test_in_specs_and_in_shardings_say_the_memory():
    mesh = make_grid("data=4").mesh
    w, mu, g = (jax.ShapeDtypeStruct(a.shape, a.dtype) for a in shapes(mesh))
    placed = tuple(a.sharding for a in shapes(mesh))
    assert memories(sn.explain(step, w, mu, g, mesh=mesh, in_specs=placed)) == STATED
    jitted = jax.jit(step, in_shardings=placed)
    assert memories(sn.explain(jitted, w, mu, g)) == STATED
    host = placed[1]
    jitted = jax.jit(lambda x: x * 2, in_shardings=placed[0], out_shardings=host)
    assert memories(sn.explain(jitted, w)) == ["", "pinned_host"]


def test_a_spec_leaves_an_array_in_its_memory():
    args = shapes(make_grid("data=4").mesh)
    report = sn.explain(step, *args, in_specs=P(None, "data"))
    assert memories(report) == STATED
    assert report.inputs[1].spec == ((), ("data",))


def test_an_array_on_the_host_is_not_moved():
    mesh = make_grid("data=4").mesh
    sharding = NamedSharding(mesh, P("data"), memory_kind="pinned_host")
    mu = jax.device_put(np.ones((8, 8), np.float32), sharding)
    report = sn.explain(
        lambda mu: jax.device_put(mu, jax.memory.Space.Device) * 2, mu, in_specs=sharding
    )
    assert memories(report) == ["pinned_host", ""]
    assert not [finding for finding in report.findings if finding.kind == "moved"]


def test_what_jax_refuses_is_refused():
    args = shapes(make_grid("data=4").mesh)
    with pytest.raises(ValueError, match="memory_space of all inputs"):
        sn.explain(lambda w, mu, g: w - mu, *args)


@needs_libtpu
def test_figures_of_a_tpu_are_those_of_jax():
    mesh = make_grid("data=8", on="v5e:2x4").mesh
    args = shapes(mesh)
    stats = jax.jit(step).lower(*args).compile().memory_analysis()
    report = sn.explain(step, *args)
    assert memories(report) == STATED
    assert report.memory.arguments == stats.argument_size_in_bytes == MIB
    assert report.memory.outputs == stats.output_size_in_bytes
    assert report.memory.host == MIB
    assert stats.host_argument_size_in_bytes + stats.host_output_size_in_bytes == MIB


def train(params, state, x):
    """Take the optimizer's state from the host, train, and give it back, as MaxText does."""
    state = jax.tree.map(lambda a: jax.device_put(a, jax.memory.Space.Device), state)
    grads = jax.grad(lambda p: jnp.mean((x @ p["w"]) ** 2))(params)
    mu = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["mu"], grads)
    nu = jax.tree.map(lambda m, g: 0.99 * m + 0.01 * g * g, state["nu"], grads)
    params = jax.tree.map(lambda p, m, v: p - m / (jnp.sqrt(v) + 1e-8), params, mu, nu)
    moved = jax.tree.map(lambda a: jax.device_put(a, jax.memory.Space.Host), {"mu": mu, "nu": nu})
    return params, moved


@needs_libtpu
def test_an_optimizer_state_on_the_host_is_copied_and_counted_as_jax_does():
    """Each of 8 devices has 512 KiB of each of 1024 x 1024 numbers; two of the four are moved."""
    w, mu, x = shapes(make_grid("data=8", on="v5e:2x4").mesh)
    jitted = jax.jit(train, donate_argnums=(0, 1))
    args = {"w": w}, {"mu": {"w": mu}, "nu": {"w": mu}}, x
    stats = jitted.lower(*args).compile().memory_analysis()
    report = sn.explain(jitted, *args, origins=False)
    host = {value.name for value in (*report.inputs, *report.outputs) if value.memory}
    assert host == {
        "state['mu']['w']",
        "state['nu']['w']",
        "result[1]['mu']['w']",
        "result[1]['nu']['w']",
    }
    assert {v.memory for v in report.inputs if v.memory} == {"pinned_host"}
    memory = report.memory
    assert memory.arguments == stats.argument_size_in_bytes == MIB
    assert memory.outputs == stats.output_size_in_bytes
    assert memory.aliased == stats.alias_size_in_bytes == MIB // 2
    # Donated, so that what goes back takes the place of what came.
    figures = stats.host_argument_size_in_bytes + stats.host_output_size_in_bytes
    assert memory.host == figures - stats.host_alias_size_in_bytes == MIB
    assert "each device copies 1.0 MiB per run from its host's memory, and 1.0 MiB back" in (
        report.notes
    )
    assert [(c.kind, c.axes) for c in report.collectives] == [
        ("all-gather", ("data",)),
        ("reduce-scatter", ("data",)),
    ]


def test_an_array_on_another_mesh_of_the_same_devices_is_moved():
    """Each of 4 devices has 4 rows of 8 numbers, and gets the other 4: 128 bytes."""
    mesh = make_grid("data=4").mesh
    other = jax.sharding.Mesh(mesh.devices.reshape(2, 2), ("rows", "columns"))
    x = jax.device_put(np.ones((8, 8), np.float32), NamedSharding(other, P("rows")))
    report = sn.explain(lambda x: x * 2, x, mesh=make_grid(mesh))
    (finding,) = (finding for finding in report.findings if finding.kind == "moved")
    assert finding.wasted_bytes == 128
    assert "another order or shape" in finding.message
