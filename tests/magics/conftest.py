"""A shell with the extension loaded, and cells that run in it."""

from __future__ import annotations

import pytest
from IPython.testing.globalipapp import get_ipython, start_ipython
from IPython.utils.capture import capture_output

MIME = "application/vnd.shardnb.report.v1+json"


_started = []


@pytest.fixture(scope="session")
def shell():
    if not _started:  # another folder of tests may have taken this fixture first
        _started.append(start_ipython() or get_ipython())
    return _started[0]


@pytest.fixture
def ip(shell):
    shell.reset(new_session=False)
    shell.run_line_magic("load_ext", "shardnb")
    shell.run_cell("import jax, jax.numpy as jnp, numpy as np").raise_error()
    yield shell
    shell.run_line_magic("unload_ext", "shardnb")


class Shown:
    """What a cell printed and displayed."""

    def __init__(self, captured, result):
        self.out, self.err, self.result = captured.stdout, captured.stderr, result
        self.data = [output.data for output in captured.outputs]

    @property
    def reports(self):
        return [data[MIME] for data in self.data if MIME in data]


@pytest.fixture
def run(ip):
    def run(cell, *, fails=False):
        with capture_output() as captured:
            done = ip.run_cell(cell)
        if not fails:
            done.raise_error()
        return Shown(captured, done)

    return run
