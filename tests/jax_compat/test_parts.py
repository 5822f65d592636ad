"""Each part of JAX that may go is taken away in turn; a report still says what is sent."""

import importlib
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.jax_compat import devices, mlir, parts
from shardnb.jax_compat.devices import compile_only, emulated_devices
from shardnb.jax_compat.parts import PARTS, NotAvailable, Part
from shardnb.mesh import grid, make_grid, targets, topologies

X = jax.ShapeDtypeStruct((8, 16), jnp.float32)
W = jax.ShapeDtypeStruct((16, 32), jnp.float32)
UNUSED = jax.ShapeDtypeStruct((3,), jnp.float32)
SPECS = (P(), P(None, "data"), P("data"))
CLOSED_OVER = np.ones((8, 32), np.float32)

by_name = {"ids": lambda part: part.what}


def program(unused, x, w):
    return x @ w + CLOSED_OVER


def with_a_loop(unused, x, w):
    return lax.fori_loop(0, 3, lambda _, y: jnp.tanh(y @ w @ w.T), x)


def explained(fn=program, **options):
    return sn.explain(fn, UNUSED, X, W, mesh="data=4", in_specs=SPECS, **options)


@pytest.fixture
def without(monkeypatch):
    """Take parts away, for this test."""
    original = Part.get

    def take(*gone):
        def get(self, owner=None):
            if self in gone:
                raise self.gone()
            return original(self, owner)

        monkeypatch.setattr(Part, "get", get)

    monkeypatch.setattr(parts, "_gone", {})
    mlir._registry.cache_clear()
    topologies.topology.cache_clear()
    yield take
    mlir._registry.cache_clear()
    devices._clients_devices.cache_clear()
    topologies.topology.cache_clear()
    grid._laid.cache_clear()


# The table


@pytest.mark.parametrize("part", [part for part in PARTS if part.module], **by_name)
def test_a_part_is_looked_up_when_it_is_used(part, monkeypatch):
    assert part.get() is not None
    if part.attribute or part.has:
        monkeypatch.delattr(f"{part.module}.{part.attribute or part.has[0]}")
    else:
        monkeypatch.setitem(sys.modules, part.module, None)
    with pytest.raises(NotAvailable, match=f"{part.what} is not available with jax "):
        part.get()


@pytest.mark.parametrize("part", PARTS, **by_name)
def test_the_table_says_why_a_part_is_used_and_what_is_lost_without_it(part):
    assert part.instead_of
    assert part.lost


def test_a_part_that_takes_other_arguments_now_is_gone(monkeypatch):
    monkeypatch.setattr("jaxlib.xla_client.make_cpu_client", lambda count: None)
    with pytest.raises(NotAvailable, match="a second CPU client"):
        parts.CPU_CLIENT.call(num_devices=4)


# A report without each part

THERE_IS_A_MESH = [part for part in PARTS if part != parts.CPU_CLIENT]


@pytest.mark.parametrize("part", THERE_IS_A_MESH, **by_name)
def test_a_report_says_what_is_sent_without(part, without):
    """8 x 32 floats of partial sums, by a ring of 4: 2 x 3/4 of 1024 bytes."""
    without(part)
    (sent,) = explained().collectives
    assert (sent.kind, sent.axes, sent.wire_bytes) == ("all-reduce", ("data",), 1536)
    # Causes and origins are read out of Shardy's modules.
    with_causes = part not in parts.MLIR_BINDINGS.values() or part.has == ("PassManager",)
    cause = ("inferred", "partial-sum") if with_causes else (None, "unknown")
    assert (sent.asked_by, sent.reason) == cause


NEEDED_BY = {
    parts.JIT_INFO: {"fn": jax.jit(program)},
    parts.JITTED_FUNCTION: {"fn": jax.jit(program)},
    parts.SIMPLIFIED_CONSTANTS: {},
    parts.LOWERING_PARAMETERS: {},
    parts.CLOSED_OVER: {},
    parts.CONSTANT_SHARDINGS: {},
    parts.CACHE_FLAGS: {},
    parts.TRACEBACK: {"axes": "explicit"},
    parts.RAW_FRAMES: {"axes": "explicit"},
    parts.FRAMES: {"axes": "explicit"},
    parts.HLO_FROM_TEXT: {"fn": with_a_loop},
    parts.COST_ANALYSIS: {"fn": with_a_loop},
}


@pytest.mark.parametrize("part", [part for part in PARTS if part.told_in == "report"], **by_name)
def test_a_report_says_once_what_it_lacks(part, without):
    without(part)
    options = NEEDED_BY[part]
    if "axes" in options:
        options = {**options, "fn": lambda u, x, w: jnp.tanh(jax.sharding.reshard(x, P()))}
    notes = explained(**options).notes
    lacks = f"{part.lost}: {part.what} is not available with jax {jax.__version__}"
    assert [note for note in notes if note.startswith(lacks)] != []
    assert len([note for note in notes if "is not available" in note]) == 1


def test_a_report_lacks_nothing_with_the_installed_jax(monkeypatch):
    monkeypatch.setattr(parts, "_gone", {})
    assert not any("is not available" in note for note in explained().notes)


# What is left without each part, where more than a note says so


def test_without_a_second_cpu_client_the_notebooks_own_devices_are_taken():
    code = (
        "import jax; jax.config.update('jax_num_cpu_devices', 4); jax.devices()\n"
        "import jaxlib.xla_client; del jaxlib.xla_client.make_cpu_client\n"
        "import shardnb as sn, jax.numpy as jnp; from jax.sharding import PartitionSpec as P\n"
        "x = jax.ShapeDtypeStruct((8, 16), jnp.float32)\n"
        "w = jax.ShapeDtypeStruct((16, 32), jnp.float32)\n"
        "r = sn.explain(jnp.dot, x, w, mesh='data=4', in_specs=(P(None, 'data'), P('data')))\n"
        "print([(c.kind, c.axes, c.wire_bytes) for c in r.collectives])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[('all-reduce', ('data',), 1536)]", done.stderr


def test_with_too_few_devices_of_its_own_the_error_names_the_setting(without):
    without(parts.CPU_CLIENT)
    expected = r"the mesh has 5 devices, but there are only 1 .*'jax_num_cpu_devices', 5"
    with pytest.raises(ValueError, match=expected):
        emulated_devices(5)


def test_inputs_keep_their_names_without_the_list_of_used_arguments(without):
    before = explained()
    without(parts.KEPT_ARGUMENTS)
    after = explained()
    assert [value.name for value in after.inputs][:3] == ["unused", "x", "w"]
    assert after.inputs == before.inputs
    assert after.collectives == before.collectives


@pytest.mark.parametrize(
    "part", [parts.SIMPLIFIED_CONSTANTS, parts.LOWERING_PARAMETERS, parts.CLOSED_OVER], **by_name
)
def test_closed_over_arrays_are_constants_where_they_cannot_be_lifted(part, without):
    closed = jnp.asarray(CLOSED_OVER)
    assert [v.closed_over for v in explained(lambda u, x, w: x @ w + closed).inputs][3:] == [True]
    without(part)
    assert [v.name for v in explained(lambda u, x, w: x @ w + closed).inputs] == ["u", "x", "w"]


def test_lines_are_left_without_columns(without):
    def fn(unused, x, w):
        return jnp.tanh(x)

    def lines():
        typed = sn.explain(fn, UNUSED, X, W, mesh="data=4", axes="explicit", in_specs=SPECS).typed
        return [line.location.line for line in typed if line.location]

    before = lines()
    without(parts.RAW_FRAMES)
    assert before
    assert lines() == before


def test_traces_stay_apart_without_the_setting(without):
    """`jax.make_user_context` does the same; it is public, and makes JAX compile again."""
    without(parts.TRACE_KEY)
    report = explained(fixes=60)
    (sent,) = report.collectives
    assert sent.fixes, report.notes


@pytest.mark.parametrize("part", parts.MLIR_BINDINGS.values(), ids=parts.MLIR_BINDINGS)
def test_without_shardy_the_report_says_that_origins_are_not_known(part, without):
    without(part)
    said = f"origins of shardings are unknown: {part.what} is not available"
    assert [note for note in explained().notes if note.startswith(said)]


def test_a_device_without_a_client_is_compiled_for_only_where_it_is_not_attached(without):
    without(parts.CLIENT)

    class Device:
        platform = "tpu"

    assert compile_only(Device())
    assert not compile_only(jax.devices()[0])


def test_a_cpu_device_is_never_only_compiled_for():
    assert not make_grid("data=4").compile_only


@pytest.mark.parametrize("part", [parts.TOPOLOGIES, parts.DEVICE_MESH], **by_name)
def test_a_mesh_on_a_topology_says_what_is_not_available(part, without, monkeypatch):
    if part == parts.DEVICE_MESH:
        monkeypatch.setattr(topologies, "topology_devices", lambda *_: jax.devices() * 8)
    without(part)
    with pytest.raises(ValueError, match=f"v5e:2x4 cannot be compiled for: {part.what}"):
        targets.devices_for("v5e:2x4", (4, 2))


def test_no_private_part_of_jax_is_needed_to_import_shardnb():
    modules = sorted({part.module for part in PARTS if part.module})
    assert all(map(importlib.import_module, modules))
    code = (
        "import sys, jax\n"
        f"sys.modules.update(dict.fromkeys({modules!r}))\n"
        "import shardnb.engine, shardnb.search.explicit, shardnb.search.plans, shardnb.magics\n"
        "print({'jax.extend'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "set()", done.stderr
