"""A notebook whose cells run on hosts; a module of tests shares one set of processes."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from IPython.utils.capture import capture_output
from jupyter_client import session

from shardnb.hosts.guard import MARK
from tests.magics.conftest import Shown, shell

__all__ = ["shell"]


@pytest.fixture(autouse=True, scope="module")
def _as_in_a_kernel():
    """Interrupts arrive, also where tests run in the background of a shell, which ignores them.

    ipyparallel leaves the dates of Jupyter's messages as text, which nbclient warns of later.
    """
    dates, handler = session.extract_dates, signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, handler)
    session.extract_dates = dates


SETUP = """
import jax, jax.numpy as jnp, numpy as np
x = jnp.arange(32.0).reshape(8, 4)
w = jnp.ones((4, 6))
"""


COMPILES = """%%shard
open(f'{folder}/{os.getpid()}', 'w').close()
time.sleep(20)
compiled = x + 1
"""


class Notebook:
    """A shell with the extension, and the cells that run in it."""

    def __init__(self, shell):
        self.shell = shell

    def run(self, cell, *, fails=False):
        with capture_output() as captured:
            done = self.shell.run_cell(cell)
        if not fails:
            done.raise_error()
        return Shown(captured, done)

    def error(self, cell):
        """Run a cell that fails; gives the error."""
        return self.run(cell, fails=True).result.error_in_exec

    def __getitem__(self, name):
        return self.shell.user_ns[name]

    @property
    def engines(self):
        return self.shell.magics_manager.registry["ShardMagics"].hosts.running


def new_notebook(shell):
    shell.reset(new_session=False)
    shell.run_line_magic("load_ext", "shardnb")
    notebook = Notebook(shell)
    notebook.run(SETUP)
    return notebook


def when_busy(notebook, act):
    """Do something once host 1 is in the middle of what it is asked, where it writes a file."""
    file = Path(notebook["folder"], str(notebook.engines.where[1].pid))
    thread = threading.Thread(target=lambda: ends(file.exists, 60) and act())
    thread.start()
    return thread


def interrupt():
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)


@contextmanager
def notebook_on(shell, mesh):
    notebook = new_notebook(shell)
    try:
        notebook.run(f"%mesh {mesh}")
        mark = notebook.engines.cluster.mark
        yield notebook
    finally:
        shell.run_line_magic("unload_ext", "shardnb")
    assert not left(mark)


def left(mark):
    """Return the processes of a cluster that run; this test may not leave any."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and process.environ().get(MARK) == mark:
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return [p for p in found if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]


def ends(condition, seconds):
    """Wait until a condition holds; gives whether it does."""
    until = time.monotonic() + seconds
    while not condition() and time.monotonic() < until:
        time.sleep(0.1)
    return condition()


@pytest.fixture(scope="module")
def notebook(shell):
    with notebook_on(shell, "data=4,model=2 --hosts 2") as notebook:
        yield notebook
