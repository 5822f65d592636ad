"""Programs that run under the profiler here: what is measured, and what stays as it was."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.compiler.program import Program
from shardnb.jax_compat import parts
from shardnb.jax_compat.profiling import InUse


def layer(x, w):
    def step(h, _):
        return jnp.tanh(h @ w), None

    h, _ = jax.lax.scan(step, x, length=3)
    return h, jnp.sum(h)


SPECS = {"mesh": "data=2,model=2", "in_specs": (P("data", "model"), P("model"))}


def arrays():
    return jnp.ones((8, 16)), jnp.ones((16, 16))


def test_each_collective_has_its_measured_time():
    report = sn.explain(layer, *arrays(), profile=2, **SPECS)
    assert report.collectives
    for collective in report.collectives:
        measured = collective.measured
        assert measured.seconds > 0
        assert measured.waiting >= 0
        assert 0 <= measured.hidden <= 1
        assert measured.executions == collective.trips
    assert {c.trips for c in report.collectives} == {1, 3}


def test_a_run_has_its_time_and_a_timeline_of_each_device():
    report = sn.explain(layer, *arrays(), profile=2, **SPECS)
    profile = report.profile
    assert (profile.runs, profile.devices, profile.platform) == (2, 4, "cpu")
    assert profile.unmeasured == 0
    assert 0 < profile.exposed_seconds <= profile.communication_seconds < profile.step_seconds
    assert [line.position for line in profile.timeline] == [0, 1, 2, 3]
    ids = {c.id for c in report.collectives}
    for line in profile.timeline:
        assert set(line.ids) == ids
        assert len(line.communicating) == 2 * len(line.ids)
        assert max(line.communicating) <= 2 * profile.step_seconds + 1


def test_on_emulated_devices_the_times_are_said_to_mean_nothing():
    report = sn.explain(layer, *arrays(), profile=1, **SPECS)
    text = str(report)
    assert "emulated on CPU: these times say nothing about hardware" in " ".join(text.split())
    verdict = text.partition("\n\n")[2].partition("\n\n")[0]
    assert "Measured" not in verdict
    assert "measured" not in verdict


def test_donated_arrays_stay():
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("data",))
    x = jax.device_put(jnp.arange(8.0), NamedSharding(mesh, P()))
    report = sn.explain(lambda x: x + jnp.sum(x), x, profile=2, mesh=mesh, donate_argnums=0)
    assert report.profile.runs == 2
    assert not x.is_deleted()
    np.testing.assert_array_equal(x, np.arange(8.0))


def test_the_program_runs_as_often_as_asked_after_one_run_more(monkeypatch):
    runs = []
    execute = Program.execute
    monkeypatch.setattr(
        Program, "execute", lambda self, placed: runs.append(1) or execute(self, placed)
    )
    sn.explain(layer, *arrays(), profile=3, **SPECS)
    assert len(runs) == 4
    runs.clear()
    sn.explain(layer, *arrays(), **SPECS)
    assert not runs


def test_nothing_is_compiled_for_a_measurement():
    compiled = []

    def count(name, *_args, **_kwargs):
        compiled.append(name) if "backend_compile" in name else None

    x, w = arrays()
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("data",))
    x = jax.device_put(x, NamedSharding(mesh, P()))
    jax.monitoring.register_event_duration_secs_listener(count)
    try:
        sn.explain(layer, x, w, mesh=mesh, donate_argnums=0)
        once = len(compiled)
        sn.explain(layer, x, w, mesh=mesh, donate_argnums=0, profile=2)
        assert len(compiled) == 2 * once
    finally:
        jax.monitoring.unregister_event_duration_listener(count)


def test_a_program_with_effects_is_not_run(capfd):
    def printing(x):
        jax.debug.print("seen {}", x)
        return x

    report = sn.explain(printing, jnp.ones(4), mesh="data=2", profile=2)
    assert report.profile is None
    assert any("nothing was measured" in note for note in report.notes)
    assert "seen" not in capfd.readouterr().out


@pytest.mark.parametrize("runs", [0, -1, 1001, 2.5, "3"])
def test_what_is_not_a_number_of_runs_is_refused(runs):
    with pytest.raises(ValueError, match="expected a number of runs from 1 to 1,000"):
        sn.explain(layer, *arrays(), profile=runs, **SPECS)


def test_a_shape_has_no_data_to_run_on():
    shape = jax.ShapeDtypeStruct((8, 16), jnp.float32)
    with pytest.raises(ValueError, match="no data to run on"):
        sn.explain(layer, shape, jnp.ones((16, 16)), profile=1, **SPECS)


def test_a_trace_of_the_users_own_is_met_before_anything_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(Program, "execute", lambda *_: pytest.fail("it ran"))
    with jax.profiler.trace(tmp_path), pytest.raises(InUse, match="end the other one first"):
        sn.explain(layer, *arrays(), profile=1, **SPECS)


def test_without_jaxlibs_profiler_the_error_says_what_is_missing(monkeypatch):
    gone = dataclasses.replace(parts.PROFILER_SESSION, attribute="NotThere")
    monkeypatch.setattr(parts, "PROFILER_SESSION", gone)
    with pytest.raises(parts.NotAvailable, match="measuring a program is not available"):
        sn.explain(layer, *arrays(), profile=1, **SPECS)


def test_measurements_do_not_count_in_comparisons():
    plain, timed = (sn.explain(layer, *arrays(), profile=n, **SPECS) for n in (False, 1))
    assert plain.collectives == timed.collectives
    assert not plain.diff(timed).changes
