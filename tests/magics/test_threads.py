"""Several threads at once: they work or wait, and none loses what another holds or prints."""

from __future__ import annotations

import gc
import signal
import sys
import tempfile
import threading
import time
from contextlib import contextmanager

import jax
import jax.numpy as jnp
import pytest
from IPython.core.interactiveshell import InteractiveShell

import shardnb as sn
from shardnb.jax_compat import parts
from shardnb.jax_compat.process_lock import names_traced
from shardnb.rewrite.retrace import quiet_retrace, silenced


@pytest.fixture
def cell(ip, run):
    run("%mesh data=2")
    run("import time, threading\nx = jnp.arange(8.0)\nparams = {'w': x}")
    run("%%shard --view none\ny = x + 1")  # what is imported with the first cell is there
    return run


def together(*functions):
    """Run functions in threads of their own, and raise what one of them raised."""
    errors = []

    def kept(function):
        try:
            function()
        except BaseException as error:  # noqa: BLE001  it is raised below
            errors.append(error)

    threads = [threading.Thread(target=kept, args=(function,)) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    if errors:
        raise errors[0]


def test_two_cells_at_once_leave_arrays(ip, cell):
    def shard(number, seconds):
        body = f"a{number} = params['w'] * 2\ntime.sleep({seconds})\nb{number} = a{number} + 1"
        return lambda: ip.run_cell_magic("shard", "--view none", body)

    together(shard(0, 0.3), shard(1, 0.1), shard(2, 0.2))
    x = ip.user_ns["x"]
    assert ip.user_ns["params"]["w"] is x
    for number in range(3):
        assert ip.user_ns[f"b{number}"].tolist() == (x * 2 + 1).tolist()


def test_a_cell_of_another_thread_begins_after_the_trace(ip, cell):
    begun = threading.Event()
    seen = []
    ip.user_ns.update(begun=begun, seen=seen)

    def subshell():
        begun.wait(60)
        ip.run_cell("seen.append(type(x))")

    shard = "begun.set()\ntime.sleep(0.3)\nx = x * 2"
    together(lambda: ip.run_cell_magic("shard", "--view none", shard), subshell)
    assert not any(issubclass(kind, jax.core.Tracer) for kind in seen)


def test_a_cell_within_a_traced_cell_does_not_wait_for_itself(ip, cell):
    cell("%%shard --view none\nget_ipython().run_cell('inner = 3')\ny = x * 2")
    assert ip.user_ns["inner"] == 3


def test_other_threads_print_while_one_is_silent(capsys):
    stop = threading.Event()

    def silent():
        with silenced():
            print("dropped")  # noqa: T201
            stop.wait(60)
            print("dropped too")  # noqa: T201

    def loud():
        time.sleep(0.1)
        print("kept")  # noqa: T201
        stop.set()

    stdout, stderr = sys.stdout, sys.stderr
    together(silent, loud)
    assert capsys.readouterr().out == "kept\n"
    assert (sys.stdout, sys.stderr) == (stdout, stderr)
    assert "write" not in vars(stdout)


def test_what_a_silent_thread_displays_is_dropped_and_no_publisher_replaced(ip, run):
    publisher = ip.display_pub
    with silenced():
        ip.display_pub.publish({"text/plain": "dropped"})
        assert ip.display_pub is publisher
    assert "publish" not in vars(publisher)


def wrong(v):
    return jax.shard_map(lambda u: u, in_specs=jax.P("data"), out_specs=jax.P("data"))(v)


def test_functions_from_four_threads_leave_the_process_as_it_was():
    check = parts.SHARD_MAP_CHECK.get()
    streams = sys.stdout, sys.stderr
    v, w = (jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((7, 6), (8, 8)))

    def refused():
        with pytest.raises(ValueError, match="data"):
            sn.explain(wrong, v, mesh="data=4")

    def explicit():
        sn.to_explicit(lambda u: jnp.tanh(u @ u), w, mesh="data=2", in_specs=jax.P("data"))

    together(refused, explicit, refused, explicit)
    assert parts.SHARD_MAP_CHECK.get() is check
    assert (sys.stdout, sys.stderr) == streams


def test_one_thread_may_trace_within_a_trace():
    with names_traced(), quiet_retrace(), names_traced():
        pass


# Interrupts


@contextmanager
def interrupted_after(seconds):
    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


BODY = """
losses.append(x.sum())
params['w'] = params['w'] * 2
thing.w = x + 1
count += 1
first, second = x * 2, x * 3
"""


# Between the opening of a file and its assignment, Python itself closes it, and says so.
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
def test_an_interrupt_at_any_moment_leaves_all_of_a_cell_or_nothing(
    ip, cell, tmp_path, monkeypatch
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    cell("import types\nlosses, count, thing = [], 0, types.SimpleNamespace(w=None)")
    space = ip.user_ns
    line = "--view none"
    start = time.perf_counter()
    ip.run_cell_magic("shard", line, BODY)
    whole = time.perf_counter() - start
    done = 1
    for moment in range(60):
        before = state_of(space)
        try:
            with interrupted_after(max(1e-4, whole * 1.2 * moment / 60)):
                ip.run_cell_magic("shard", line, BODY)
        except KeyboardInterrupt:
            pass
        now = state_of(space)
        done += now != before
        assert now == (done, done, done, 2.0**done), (moment, now, before)
        assert not isinstance(space["x"], jax.core.Tracer)
    # What an interrupt kept from being removed goes with the exception that holds its frame.
    for _ in range(50):
        gc.collect()
        if not list(tmp_path.iterdir()):
            break
        time.sleep(0.1)
    assert list(tmp_path.iterdir()) == []


def state_of(space):
    """Each part of the cell's work counts how often it was done."""
    assert (space["thing"].w is None) == (space["count"] == 0)
    assert len({n in space for n in ("first", "second")}) == 1
    w = float(space["params"]["w"][1])
    return len(space["losses"]), space["count"], space["count"], w


def test_the_shell_of_the_tests_is_the_one_that_is_silenced(shell):
    assert InteractiveShell.instance() is shell
