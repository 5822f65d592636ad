"""`--profile`: a cell that is measured before it runs."""

from __future__ import annotations

import jax
import pytest

SETUP = "%mesh data=4,model=2\nx, w = jnp.ones((8, 16)), jnp.ones((16, 16))"
CELL = "%%shard x=P('data', 'model') w=P('model') --save report {}\ny = jnp.tanh(x @ w)\ny.sum()"


def test_a_cell_shows_the_measured_time_of_each_collective(run, ip):
    run(SETUP)
    shown = run(CELL.format("--profile 2"))
    report = ip.user_ns["report"]
    assert report.profile.runs == 2
    assert all(c.measured.seconds > 0 for c in report.collectives)
    assert ip.user_ns["y"].shape == (8, 16)
    assert shown.result.result == pytest.approx(128.0)
    (data,) = shown.reports
    assert data["profile"]["runs"] == 2


def test_without_a_number_a_cell_is_measured_five_times(run, ip):
    run(SETUP)
    run(CELL.format("--profile --view none"))
    assert ip.user_ns["report"].profile.runs == 5


def test_a_spec_may_follow(run, ip):
    run(SETUP)
    run("%%shard --profile x=P('data') --save report\ny = x.sum()")
    assert ip.user_ns["report"].profile.runs == 5


def test_no_array_changes_and_the_cell_runs_once(run, ip):
    run(SETUP)
    run("key, x0 = jax.random.key(0), x")
    run("%%shard x=P('data') --profile 3\nx = x + jax.random.normal(key, x.shape)\nx.sum()")
    noise = jax.random.normal(jax.random.key(0), (8, 16))
    assert jax.numpy.allclose(ip.user_ns["x"], ip.user_ns["x0"] + noise)


def test_a_cell_that_is_not_measured_says_so_and_runs(run, ip):
    run(SETUP)
    run("%%shard x=P('data') --profile --save report\njax.debug.print('{}', x.sum())\ny = x.sum()")
    report = ip.user_ns["report"]
    assert report.profile is None
    assert any("nothing was measured" in note for note in report.notes)
    assert float(ip.user_ns["y"]) == 128


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--profile 0", "expected a number of runs from 1 to 1,000, got '0'"),
        ("--profile 2000", "expected a number of runs from 1 to 1,000, got '2000'"),
        ("--profile -1", "expected a number of runs from 1 to 1,000, got '-1'"),
        ("--profile=many", "expected a number of runs from 1 to 1,000, got 'many'"),
        ("--profile --no-run", "cannot be combined"),
        ("--profile --compare cpu,v5e:2x4", "cannot be combined"),
    ],
)
def test_what_cannot_be_measured_is_refused(run, options, said):
    run(SETUP)
    shown = run(CELL.format(options), fails=True)
    assert said in shown.out + shown.err


def test_a_trace_of_the_users_own_is_an_error_and_no_name_is_bound(run, ip, tmp_path):
    run(SETUP)
    with jax.profiler.trace(tmp_path):
        shown = run(CELL.format("--profile 1"), fails=True)
    assert "--profile: the profiler is in use" in shown.out + shown.err
    assert "y" not in ip.user_ns
