"""Interrupts one scenario at many moments, and writes what was left behind as JSON.

    python -m tests.worker.interrupted SCENARIO MOMENTS

Each moment is a share of the time that the scenario takes without an interrupt.
"""

from __future__ import annotations

import faulthandler
import gc
import json
import os
import random
import re
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from jax._src import compilation_cache, pjit
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.worker.process import WORKER

LATE = 1.5  # seconds after which the stacks say what an interrupt waits for
SETUP = """
import jax, jax.numpy as jnp
x, w, y = jnp.ones((64, 64)), jnp.ones((64, 64)), 'before'
def deep(x, w, layers):
    for i in range(layers):
        x = jnp.sin(x @ w + i) + jnp.cumsum(x, axis=i % 2)
    return x
"""
CELL = "%%shard --mesh data=4 --view none x=P('data')\ny = deep(x, w, {})"
FIXED = CELL.replace("--view", "--fix --view").replace("x=P('data')", "x=P(None, 'data')")


def planned(shell):
    shape = jax.ShapeDtypeStruct((64, 64), jnp.float32)
    deep = shell.user_ns["deep"]
    sn.plan(lambda x, w: deep(x, w, 8), shape, shape, mesh="data=4", previews=60, compiles=4)


def explored(shell):
    deep = shell.user_ns["deep"]
    shape = jax.ShapeDtypeStruct((64, 64), jnp.float32)
    explorer = sn.explore(
        lambda x, w: deep(x, w, 40), shape, shape, mesh="data=4", in_specs=(P("data"), P())
    )
    try:
        explorer._hear({"kind": "preview", "number": 1, "plan": explorer.plan})
    finally:
        explorer.close()


SCENARIOS = {
    "cell": lambda shell: shell.run_cell(CELL.format(40)),
    "fix": lambda shell: shell.run_cell(FIXED.format(2)),
    "plan": planned,
    "explore": explored,
}


class Kernel:
    """A shell with the extension, and what it must look like after an interrupt."""

    def __init__(self, folder):
        tempfile.tempdir = folder
        self.folder = Path(folder)
        self.shell = InteractiveShell.instance()
        self.shell.run_line_magic("load_ext", "shardnb")
        self.shell.run_cell(SETUP).raise_error()
        self.compiled = []
        jax.monitoring.register_event_duration_secs_listener(
            lambda event, *_, **__: self.compiled.append(event) if "compile" in event else None
        )
        self.jitted = jax.jit(lambda v: jnp.tanh(v) * 2)
        self.jitted(np.ones(8, np.float32))

    def state(self):
        """What must be the same before and after."""
        names = {
            name: id(value)
            for name, value in self.shell.user_ns.items()
            if not name.startswith("_") and name not in ("In", "Out")
        }
        random.seed(7)
        return {
            "names": names,
            "config": {name: str(value) for name, value in jax.config.values.items()},
            "cache": (compilation_cache._cache_checked, compilation_cache._cache_used),
            "patched": id(pjit.const_args_shardings),
            "streams": (id(sys.stdout), id(sys.stderr), id(self.shell.display_pub)),
            "descriptor 2": os.fstat(2).st_ino,
            "mesh": str(jax.sharding.get_mesh()),
            "files": sorted(path.name for path in self.folder.iterdir()),
            "handler": str(signal.getsignal(signal.SIGINT)),
            "collector": gc.isenabled(),
            "children": children(),
        }

    def recompiled(self):
        """Whether JAX has forgotten what the user had compiled."""
        self.compiled.clear()
        self.jitted(np.ones(8, np.float32))
        return list(self.compiled)


def children():
    """Processes of this one that have ended and were not waited for."""
    dead = 0
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            dead += fields[1] == str(os.getpid()) and fields[0] == "Z"
    return dead


def open_files():
    """What the descriptors of this process are of; the numbers of sockets and pipes do not count."""
    files = Counter()
    for link in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # the folder's own
            files[re.sub(r"\d+", "", str(link.readlink()))] += 1
    return files


def run(kernel, scenario):
    """Run a scenario; an interrupt ends it, whoever catches it."""
    with suppress(KeyboardInterrupt), capture_output():
        SCENARIOS[scenario](kernel.shell)


def interrupted(kernel, scenario, seconds):
    """Run a scenario, interrupt it after some seconds; gives how long it then went on."""
    at = []

    def strike():
        at.append(time.perf_counter())
        faulthandler.dump_traceback_later(LATE, file=sys.__stderr__)
        os.kill(os.getpid(), signal.SIGINT)

    def lost(unraisable):
        """Interrupt again where Python has shown and dropped it, as in the collector's callbacks."""
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            at.clear()
            strike()

    sys.unraisablehook = lost
    timer = threading.Timer(seconds, strike)
    timer.start()
    try:
        run(kernel, scenario)
        timer.cancel()
        timer.join()
    except KeyboardInterrupt:  # it came as the scenario had just ended
        timer.join()
    faulthandler.cancel_dump_traceback_later()
    return time.perf_counter() - at[0] if at else None


def main(scenario, moments):
    with tempfile.TemporaryDirectory() as folder:
        kernel = Kernel(folder)
        run(kernel, scenario)
        start = time.perf_counter()
        run(kernel, scenario)
        whole = time.perf_counter() - start
        WORKER.end()
        kernel.shell.user_ns["y"] = "before"
        descriptors = open_files()
        threads = threading.active_count()
        before, late, left, seconds = kernel.state(), [], [], []
        for number in range(moments):
            start = time.perf_counter()
            waited = interrupted(kernel, scenario, whole * (number + 0.5) / moments)
            if waited is None:  # it had ended before, and bound its results
                kernel.shell.user_ns["y"] = "before"
                whole = min(whole, time.perf_counter() - start)
                continue
            seconds.append(waited)
            after = kernel.state()
            if (
                after["names"] != before["names"]
                and after["names"].keys() == before["names"].keys()
            ):
                kernel.shell.user_ns["y"] = "before"  # it came after the results were bound
                after["names"] = before["names"]
            if after != before:
                left.append({k: (before[k], after[k]) for k in before if before[k] != after[k]})
            late += kernel.recompiled()
        WORKER.end()
        time.sleep(1.5)
        found = {
            "whole": whole,
            "interrupts": len(seconds),
            "seconds": sorted(seconds),
            "left": left,
            "recompiled": late,
            "descriptors": list((open_files() - descriptors).elements()),
            "threads": threading.active_count() - threads,
        }
        sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
