"""Each text that gives a plan runs, and gives the plan's own collectives."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from shardnb.texts import hlo
from shardnb.widgets import explore
from tests.widgets.conftest import layer, shape


def texts(explorer):
    return {code["title"]: code["text"] for code in explorer.compiled["codes"]}


def kinds(explorer):
    return Counter(c.kind for c in explorer.report.collectives)


def mlp(params, x):
    h = jnp.tanh(x @ params["up"])
    return h @ params["down"]


PLANS = {
    "layer": (layer, (shape(64, 32), shape(32, 16)), (P("data", "model"), P("model"))),
    "tree": (
        mlp,
        ({"up": shape(32, 64), "down": shape(64, 32)}, shape(16, 32)),
        ({"up": P(None, "model"), "down": P("model")}, P("data")),
    ),
}


@pytest.fixture(params=sorted(PLANS))
def planned(request):
    fn, args, specs = PLANS[request.param]
    explorer = explore(fn, *args, mesh="data=4,model=2", in_specs=specs)
    yield fn, args, explorer
    explorer.close()


def names(fn):
    return fn.__code__.co_varnames[: fn.__code__.co_argcount]


def test_the_cell_runs_and_sends_the_same(planned, run):
    fn, args, explorer = planned
    cell = texts(explorer)["%%shard"]
    report = run(cell, {fn.__name__: fn, "P": P, **dict(zip(names(fn), zeros(args), strict=True))})
    assert Counter(c.kind for c in report.collectives) == kinds(explorer)
    assert report.wire_bytes == explorer.report.wire_bytes


def zeros(args):
    return jax.tree_util.tree_map(lambda one: np.zeros(one.shape, one.dtype), args)


@pytest.fixture
def run():
    """Run a cell of `%%shard`; gives its report."""
    from IPython.testing.globalipapp import start_ipython

    shell = start_ipython() or sys.modules["IPython"].get_ipython()
    shell.run_line_magic("load_ext", "shardnb")

    def run(cell, namespace):
        from IPython.utils.capture import capture_output

        import shardnb as sn

        shell.user_ns.update(namespace)
        line, _, body = cell.partition("\n")
        with capture_output() as shown:
            shell.run_cell(line + "\n" + body).raise_error()
        found = next(
            out.data[kind]
            for out in shown.outputs
            for kind in out.data
            if kind.startswith("application/vnd.shardnb.report")
        )
        import json

        return sn.Report.from_json(json.dumps(found))

    return run


CHILD = """
import sys
import jax
jax.config.update("jax_num_cpu_devices", 8)
import jax.numpy as jnp
import numpy as np
{setup}
text = sys.stdin.read()
exec(text)
with jax.set_mesh(mesh):
    print((jitted if "jitted" in globals() else jax.jit(mapped)).lower({args}).compile().as_text())
"""


def in_eight_devices(text, setup, args):
    child = CHILD.format(setup=setup, args=args)
    done = subprocess.run(
        [sys.executable, "-c", child], input=text, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return Counter(
        one.opcode.removesuffix("-start")
        for one in hlo.parse(done.stdout).instructions()
        if one.opcode.startswith(("all-", "reduce-scatter", "collective-"))
    )


def test_in_shardings_run_and_send_the_same(planned):
    import inspect

    fn, args, explorer = planned
    made = [f"{name} = {literal(arg)}" for name, arg in zip(names(fn), args, strict=True)]
    setup = "\n".join([inspect.getsource(fn), *made])
    found = in_eight_devices(texts(explorer)["jax.jit"], setup, ", ".join(names(fn)))
    assert found == kinds(explorer)


def literal(arg):
    if isinstance(arg, dict):
        return "{" + ", ".join(f"{key!r}: {literal(part)}" for key, part in arg.items()) + "}"
    return f"np.zeros({arg.shape}, np.float32)"


def test_explicit_axes_are_written_so():
    explorer = explore(
        *(layer, shape(64, 32), shape(32, 16)),
        mesh="data=4:explicit,model=2:explicit",
        in_specs=(P("data"), P(None, "model")),
    )
    text = texts(explorer)["jax.jit"]
    assert "axis_types=(AxisType.Explicit, AxisType.Explicit)" in text
    setup = "x, W = np.zeros((64, 32), np.float32), np.zeros((32, 16), np.float32)\n"
    setup += "def layer(x, W):\n    h = x @ W\n    return jnp.tanh(h)\n"
    assert in_eight_devices(text, setup, "x, W") == kinds(explorer)
    explorer.close()


def summed(x):
    return jax.lax.psum(x, "data")


def test_a_shard_map_is_written_for_a_body_of_one_device():
    explorer = explore(
        *(summed, shape(8, 4)), mesh="data=8:manual", in_specs=(P("data"),), out_specs=P()
    )
    found = texts(explorer)
    assert set(found) == {"%%shard", "jax.shard_map"}
    setup = "x = np.zeros((8, 4), np.float32)\n"
    setup += "def summed(x):\n    return jax.lax.psum(x, 'data')\n"
    assert in_eight_devices(found["jax.shard_map"], setup, "x") == kinds(explorer)
    assert kinds(explorer) == {"all-reduce": 1}
    explorer.close()


def test_what_cannot_be_written_is_left_out():
    explorer = explore(lambda x: x + 1, shape(8), mesh="data=4")
    assert texts(explorer) == {}
    explorer.close()
    explorer = explore(layer, shape(8, 8), shape(8, 8), mesh="data=4", donate_argnums=(0,))
    assert texts(explorer) == {}
    explorer.close()
