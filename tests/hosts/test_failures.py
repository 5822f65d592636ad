"""Engines that die, hang or are interrupted: named, and the others stopped, within ten seconds."""

import os
import signal
import time

import numpy as np
import pytest

from shardnb.hosts import process
from shardnb.hosts.engines import HostsEnded
from shardnb.hosts.remote_array import RemoteArray
from tests.hosts.conftest import COMPILES, interrupt, left, new_notebook, when_busy


@pytest.fixture
def notebook(shell, tmp_path):
    """Start hosts for one test, which may end them."""
    notebook = new_notebook(shell)
    notebook.run("%mesh data=2 --hosts 2")
    mark = notebook.engines.cluster.mark
    notebook.run(
        f"import os, time\nfrom jax.sharding import PartitionSpec as P\nfolder = {str(tmp_path)!r}"
    )
    notebook.run("%%shard --view none x=P('data')\nbefore = x + 1")
    yield notebook
    shell.run_line_magic("unload_ext", "shardnb")
    assert not left(mark)


def killed_while(notebook, act, number=signal.SIGKILL):
    """Do what calls the engines, and send a signal to host 1 meanwhile; gives error and seconds."""
    pid = notebook.engines.where[1].pid
    at = []

    def send():
        at.append(time.monotonic())
        os.kill(pid, number)

    thread = when_busy(notebook, send)
    try:
        with pytest.raises(HostsEnded) as caught:
            act()
    finally:
        thread.join()
    return caught.value, time.monotonic() - at[0]


def check_ended(notebook, error, seconds, word):
    engines = notebook["before"].engines
    pid = engines.where[1].pid
    assert seconds < 10
    assert f"host 1 (process {pid} on " in str(error)
    assert word in str(error)
    assert not left(engines.cluster.mark)
    # Names are as before, and say what happened to what was there only.
    np.testing.assert_array_equal(notebook["x"], np.arange(32.0).reshape(8, 4))
    assert isinstance(notebook["before"], RemoteArray)
    assert notebook["before"].shape == (8, 4)
    with pytest.raises(HostsEnded, match="the hosts are gone"):
        notebook["before"].fetch()
    assert "the hosts are gone" in str(notebook.error("%%shard\nr = x + 1"))
    assert "r" not in notebook.shell.user_ns


def test_an_engine_that_is_killed_while_it_compiles_is_named(notebook):
    def act():
        raise notebook.error(COMPILES)

    error, seconds = killed_while(notebook, act)
    check_ended(notebook, error, seconds, "died")


RUNS = """%%shard x=P('data')
def wait(block):
    open(f'{folder}/{os.getpid()}', 'w').close()
    until = time.time() + 20
    while time.time() < until:
        try:
            time.sleep(1)
        except KeyboardInterrupt:
            pass
    return block
def called(block):
    return jax.pure_callback(wait, jax.ShapeDtypeStruct(block.shape, block.dtype), block)
r = jax.shard_map(called, in_specs=P('data'), out_specs=P('data'))(x).sum()
"""


def test_an_engine_that_is_killed_while_it_runs_is_named(notebook):
    def act():
        raise notebook.error(RUNS)

    error, seconds = killed_while(notebook, act)
    check_ended(notebook, error, seconds, "died")


def test_an_engine_that_is_killed_while_it_is_fetched_from_is_named(notebook, monkeypatch):
    engines = notebook.engines
    engines.call(_slow_fetches, notebook["folder"])
    error, seconds = killed_while(notebook, notebook["before"].fetch)
    check_ended(notebook, error, seconds, "died")


def _slow_fetches(folder):
    import os
    import time
    from pathlib import Path

    class Slow(dict):
        def __getitem__(self, key):
            Path(folder, str(os.getpid())).touch()
            time.sleep(20)
            return super().__getitem__(key)

    process.ARRAYS = Slow(process.ARRAYS)


def test_an_engine_that_hangs_is_named(notebook):
    def act():
        raise notebook.error(COMPILES)

    error, seconds = killed_while(notebook, act, signal.SIGSTOP)
    check_ended(notebook, error, seconds, "is suspended")


def test_hosts_that_do_not_end_when_they_are_interrupted_are_stopped(notebook):
    at = []
    thread = when_busy(notebook, lambda: (at.append(time.monotonic()), interrupt()))
    error = notebook.error(RUNS)
    thread.join()
    assert isinstance(error, KeyboardInterrupt)
    assert time.monotonic() - at[0] < 10
    assert "did not end within 5 s after the interrupt" in notebook["before"].engines.ended
    assert not left(notebook["before"].engines.cluster.mark)
    assert "r" not in notebook.shell.user_ns
