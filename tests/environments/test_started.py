"""Each way in which a notebook's code is run, once in each environment that is supported.

`.ci/run` makes the environments beside the tests' own: small ones, with another Python and another
ipykernel.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# The folder of each environment, its Python, and the first number of its ipykernel.
ENVIRONMENTS = {
    None: ("", "7"),
    ".venv-python3.13": ("3.13", "6"),
    ".venv-python3.14": ("3.14", "7"),
}
CELL = """\
%load_ext shardnb
import jax.numpy as jnp
x, W = jnp.ones((16, 8)), jnp.ones((8, 4))
%mesh data=4,model=2
"""
SHARD = "%%shard x=P('data', 'model') W=P('model')\ny = jnp.tanh(x @ W)"
ASYNC = """\
import asyncio
async def later(value):
    await asyncio.sleep(0.01)
    return value * 2
"""
# Runs the cells given as JSON in a kernel, and prints their outputs as JSON.
NBCLIENT = """\
import json, sys, nbformat
from nbclient import NotebookClient
cells = [nbformat.v4.new_code_cell(cell) for cell in json.load(sys.stdin)]
book = nbformat.v4.new_notebook(cells=cells)
NotebookClient(book, timeout=120, kernel_name="python3").execute()
print(json.dumps([cell.outputs for cell in book.cells]))
"""
VERSIONS = "import sys, ipykernel; sys.version_info[:2], ipykernel.version_info[0]"
MIME = "application/vnd.shardnb.report.v1+json"


@pytest.fixture(params=list(ENVIRONMENTS), ids=lambda folder: folder or "here")
def environment(request):
    """Return the Python of an environment, and which versions it is there for."""
    folder, (version, ipykernel) = request.param, ENVIRONMENTS[request.param]
    python = sys.executable if folder is None else str(ROOT / folder / "bin" / "python")
    if not Path(python).exists():
        pytest.skip(f"needs Python {version}, with ipykernel {ipykernel}, in {folder}: see .ci/run")
    return python, version, ipykernel


def run(python, *words, given=""):
    """Run a Python on a text; gives what it prints."""
    quiet = {"JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "default"}
    # The kernel "python3" of an environment is its own, whatever others are installed elsewhere.
    prefix = Path(python).parents[1]
    places = {"JUPYTER_PREFER_ENV_PATH": "1", "JUPYTER_PATH": str(prefix / "share" / "jupyter")}
    done = subprocess.run(
        [python, *words],
        input=given,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **quiet, **places},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def notebook(python, *cells):
    """Run cells by nbclient; gives the outputs of each."""
    outputs = json.loads(run(python, "-c", NBCLIENT, given=json.dumps(cells)).splitlines()[-1])
    assert not [one for cell in outputs for one in cell if one["output_type"] == "error"]
    return outputs


def sent(outputs):
    """Return the collectives of the one report among a cell's outputs."""
    (data,) = (one["data"][MIME] for one in outputs if MIME in one.get("data", {}))
    return [(one["kind"], one["axes"]) for one in data["collectives"]]


def test_a_kernel_and_async_cells(environment):
    python, version, ipykernel = environment
    *_, versions, shard, defined, awaited, again = notebook(
        python,
        CELL,
        VERSIONS,
        SHARD,
        ASYNC,
        "total = await later(float(y.sum()))\ntotal",
        SHARD.replace("y =", "z ="),
    )
    told = versions[0]["data"]["text/plain"]
    assert told.endswith(f", {ipykernel})")
    assert not version or told.startswith(f"(({version.replace('.', ', ')})")
    # Each of the 16 x 4 results is tanh(8).
    assert float(awaited[-1]["data"]["text/plain"]) == pytest.approx(2 * 64, rel=1e-5)
    assert not defined
    assert sent(shard) == sent(again) == [("all-reduce", ["model"])]


def test_a_terminal(environment):
    python, *_ = environment
    # In a terminal two empty lines end a cell.
    typed = f"{CELL}\n{SHARD}\n\n\nprint('sum', float(y.sum()))\nexit\n"
    options = (
        "--simple-prompt",
        "--no-banner",
        "--colors=NoColor",
        "--HistoryManager.enabled=False",
    )
    told = run(python, "-m", "IPython", *options, given=typed)
    assert "all-reduce[model]" in told
    (line,) = (line for line in told.splitlines() if "sum " in line and "print" not in line)
    assert float(line.rpartition("sum ")[2]) == pytest.approx(64, rel=1e-5)


def test_the_command_line_runs_a_notebook(environment, tmp_path):
    python, *_ = environment
    cells = [
        {"cell_type": "code", "id": f"c{at}", "metadata": {}, "outputs": [], "source": source}
        | {"execution_count": None}
        for at, source in enumerate((CELL, SHARD))
    ]
    book = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}
    path = tmp_path / "one.ipynb"
    path.write_text(json.dumps(book))
    (report,) = json.loads(run(python, "-m", "shardnb.cli", "explain", str(path), "--json"))
    assert [one["kind"] for one in report["collectives"]] == ["all-reduce"]
