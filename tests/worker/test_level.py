"""Threads, files, clients and memory stay level, however often something is compiled."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import jax
import jax.numpy as jnp
from IPython.utils.capture import capture_output
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.worker.process import WORKER
from tests.magics.conftest import ip, shell

__all__ = ["ip", "shell"]

# Of each: a cell, `explain` here and apart, previews on a mesh of another size.
WARM, RUNS = 12, 48
SIZES = 12


def step(x, w):
    return jnp.tanh(x @ w).sum()


def level(process="self"):
    """Threads, open files and MiB of a process."""
    folder = Path(f"/proc/{process}")
    threads, files = (sum(1 for _ in (folder / name).iterdir()) for name in ("task", "fd"))
    pages = int((folder / "statm").read_text().split()[1])
    return threads, files, pages * 4 // 1024


def one_of_each(shell, number):
    size = 1 + number % SIZES
    shapes = [jax.ShapeDtypeStruct(dims, jnp.float32) for dims in ((size * 8, 64), (64, 32))]
    options = {"mesh": f"data={size}", "in_specs": (P("data"), P())}
    with capture_output():
        shell.run_cell(
            f"%%shard --mesh data={size} x=P('data')\ny = jnp.tanh(x @ W).sum()"
        ).raise_error()
    sn.explain(step, *shapes, **options, isolate=number % 2 == 0)
    if number % 4 == 0:
        explorer = sn.explore(step, *shapes, **options)
        explorer._hear({"kind": "preview", "number": 1, "plan": explorer.plan})
        explorer.close()


def test_threads_files_and_memory_stay_level(ip):
    ip.run_cell(f"x, W = jnp.ones(({8 * 27720}, 2)), jnp.ones((2, 3))").raise_error()
    for number in range(WARM):
        one_of_each(ip, number)
    ip.user_ns.pop("y", None)
    gc.collect()
    worker = WORKER._process._popen.pid
    before, before_there = level(), level(worker)
    for number in range(RUNS):
        one_of_each(ip, number)
    ip.user_ns.pop("y", None)
    gc.collect()
    after, after_there = level(), level(worker)
    # XLA's pools start some threads late, one for each core.
    assert after[0] <= before[0] + 4
    assert after[1] <= before[1]
    assert after[2] < before[2] + RUNS
    assert after_there[0] <= before_there[0] + 4
    assert after_there[1] <= before_there[1]
    assert after_there[2] < before_there[2] + RUNS


def test_an_explorer_that_is_closed_holds_nothing():
    def explored():
        held = jnp.ones((64, 1024))
        explorer = sn.explore(lambda v: (v @ held).sum(), held.T, mesh="data=4")
        explorer.close()
        return weakref.ref(explorer)

    explored()
    gc.collect()
    before = sum(array.nbytes for array in jax.live_arrays())
    closed = [explored() for _ in range(3)]
    gc.collect()
    assert sum(array.nbytes for array in jax.live_arrays()) == before
    assert [explorer() for explorer in closed] == [None] * 3
