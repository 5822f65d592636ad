"""A notebook whose functions JAX has compiled before shardnb is imported.

Run as a program with some cells on its standard input, it runs each cell, then calls the functions
again, and prints for each cell what JAX traced, lowered and compiled in those calls.
"""

from __future__ import annotations

import collections
import contextlib
import json
import sys
import threading

import jax
from IPython.testing.globalipapp import start_ipython
from IPython.utils.capture import capture_output

NOTEBOOK = """
import functools
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

traces = []
x, W = jnp.ones((16, 8)), jnp.ones((8, 4))
devices = len(jax.devices())
one = jax.make_mesh((devices,), ("rows",), axis_types=(AxisType.Auto,))
typed = jax.make_mesh((devices,), ("rows",), axis_types=(AxisType.Explicit,))
rows = NamedSharding(one, P("rows"))

@jax.jit
def plain(x, W):
    traces.append("plain")
    return jnp.tanh(x @ W)

@functools.partial(jax.jit, in_shardings=(rows, None), out_shardings=rows)
def placed(x, W):
    traces.append("placed")
    return jnp.tanh(x @ W)

@jax.jit
def nested(x, W):
    traces.append("nested")
    return plain(x, W).sum()

@jax.jit
@jax.value_and_grad
def gradient(W, x):
    traces.append("gradient")
    return jnp.where(nested(x, W) > 0, nested(x, W), 0.0)

@jax.jit
def constrained(x, W):
    traces.append("constrained")
    return jnp.tanh(jax.lax.with_sharding_constraint(x, P("rows"))) @ W

@jax.jit
@functools.partial(jax.shard_map, mesh=one, in_specs=P("rows"), out_specs=P())
def mapped(x):
    traces.append("mapped")
    return jax.lax.psum(x.sum(), "rows")

def train(x, W):
    return (W - 0.1 * gradient(W, x)[1]) * 2

def under_a_mesh(x, W):
    with jax.set_mesh(typed):
        return constrained_by_types(x, W)

@jax.jit
def constrained_by_types(x, W):
    traces.append("constrained_by_types")
    return jnp.tanh(jax.sharding.reshard(x, P("rows"))) @ W

def call_all():
    plain(x, W), placed(x, W), nested(x, W), mapped(x), train(x, W), under_a_mesh(x, W)
    with jax.set_mesh(one):
        constrained(x, W)
    jax.jit(lambda x, W: nested(x, W) + 1).trace(x, W)

jitted = [plain, placed, nested, gradient, constrained, mapped, constrained_by_types]
call_all()
"""


class Work:
    """What JAX traces, lowers and compiles in this thread, by its own events."""

    def __init__(self):
        self.events = collections.Counter()
        self.thread = threading.get_ident()

    def _note(self, event, _seconds, **_):
        if event.startswith("/jax/core/compile/") and threading.get_ident() == self.thread:
            self.events[event.rpartition("/")[2]] += 1

    @contextlib.contextmanager
    def counted(self):
        jax.monitoring.register_event_duration_secs_listener(self._note)
        try:
            yield
        finally:
            jax.monitoring.unregister_event_duration_listener(self._note)


def again(names):
    """Call the notebook's functions, and say what JAX did that it had done before."""
    work = Work()
    names["traces"].clear()
    with work.counted():
        names["call_all"]()
    # The one new function of each round is traced, and nothing else.
    work.events["jaxpr_trace_duration"] -= 1
    sizes = [fn._cache_size() for fn in names["jitted"]]
    return {"events": +work.events, "traces": names["traces"][:], "programs": sizes}


def main():
    shell = start_ipython()
    shell.run_cell(NOTEBOOK).raise_error()
    names = shell.user_ns
    told = {"before": again(names)}
    for name, cell in json.load(sys.stdin).items():
        with capture_output() as captured:
            shell.run_cell(cell)
        told[name] = again(names)
        shown = [text for output in captured.outputs for text in output.data.values()]
        told[name]["shown"] = "\n".join([captured.stdout, captured.stderr, *map(str, shown)])
    print(json.dumps(told))  # noqa: T201


if __name__ == "__main__":
    main()
