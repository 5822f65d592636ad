"""Where the engines come from: an existing cluster, and what refuses to start one."""

import os
import signal
import subprocess
import sys
import uuid

import numpy as np
import psutil
import pytest

from shardnb.hosts.guard import MARK, end_all
from tests.hosts.conftest import ends, left, new_notebook


@pytest.fixture
def notebook(shell):
    yield new_notebook(shell)
    shell.run_line_magic("unload_ext", "shardnb")


@pytest.fixture
def profile(tmp_path, monkeypatch):
    """Start a cluster of two engines, as a user would; gives its profile."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    mark = uuid.uuid4().hex
    command = [sys.executable, "-m", "ipyparallel.cluster", "start", "-n", "2", "--profile=several"]
    cluster = subprocess.Popen(
        command,
        env={**os.environ, MARK: mark},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    file = tmp_path / "profile_several" / "security" / "ipcontroller-client.json"
    assert ends(file.exists, 120)
    yield "several"
    end_all(mark)
    cluster.wait()
    assert not left(mark)


def test_the_engines_of_a_cluster_are_taken_left_and_taken_again(notebook, profile):
    from ipyparallel import Client

    with Client(profile=profile) as client:
        client.wait_for_engines(2, timeout=120, interactive=False)
    for number in (1, 2):
        shown = notebook.run(f"%mesh data=4 --cluster {profile}")
        assert shown.out.strip() == "data=4 (auto): 4 emulated cpu devices on 2 hosts"
        notebook.run(f"%%shard --view none x=P('data')\nmore = x + {number}")
        expected = np.arange(32.0).reshape(8, 4) + number
        np.testing.assert_array_equal(notebook["more"].fetch(), expected)
        notebook.run("%mesh --hosts 0")
    with Client(profile=profile) as client:
        assert len(client.ids) == 2
    message = str(notebook.error(f"%mesh data=6 --cluster {profile} --hosts 3"))
    assert "expected 3 engines, but the cluster of 'several' has " in message
    check_a_death_is_noticed(notebook, profile)


def check_a_death_is_noticed(notebook, profile):
    """An engine of a cluster dies while nothing runs: the next cell names it, the other ends."""
    notebook.run(f"%mesh data=4 --cluster {profile}")
    engines = notebook.engines
    os.kill(engines.where[1].pid, signal.SIGKILL)
    assert ends(lambda: len(engines.client.ids) < 2, 60)
    error = notebook.error("%%shard\nresult = x + 1")
    assert f"host 1 (process {engines.where[1].pid} on " in str(error)
    assert ends(lambda: not psutil.pid_exists(engines.where[0].pid), 10)


def test_without_ipyparallel_the_error_names_the_extra(notebook, monkeypatch):
    monkeypatch.setitem(sys.modules, "ipyparallel", None)
    message = str(notebook.error("%mesh data=4 --hosts 2"))
    assert message == "several hosts need ipyparallel: pip install 'shardnb[hosts]'"


def test_a_profile_without_a_cluster_says_how_one_is_started(notebook, tmp_path, monkeypatch):
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    message = str(notebook.error("%mesh data=4 --cluster nothing"))
    assert "no cluster of the profile 'nothing' answers" in message
    assert "ipcluster start --profile=nothing starts one" in message


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("data=4 --hosts 3", "the 4 devices of the mesh cannot be shared equally by 3 hosts"),
        ("data=4 --hosts two", "expected the number of hosts, such as 2, got 'two'"),
        ("data=4 --hosts 2 --on attached", "add --cluster PROFILE"),
        ("data=4 --hosts 2 --on v5e:2x2", "hosts run cells, so --on is cpu or attached"),
    ],
)
def test_what_hosts_cannot_be_is_refused(notebook, line, message):
    assert message in str(notebook.error(f"%mesh {line}"))
    assert notebook.engines is None


def test_hosts_that_are_not_there_can_be_stopped(notebook):
    assert notebook.run("%mesh --hosts 0").out.strip() == "no hosts are running"
