"""What the user has compiled stays compiled, whatever of shardnb's is called afterwards.

JAX finds a compiled program by a key with every setting that exists: a setting that is added later
makes it compile everything again. So the functions are compiled first, in a process of their own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.needs import needs_libtpu

ROOT = Path(__file__).parents[2]

BODY = "h = plain(x, W)\nloss = (h * h).sum()"
LAYOUT = "x=P('data', 'model') W=P('model')"
SPECS = "mesh='data=4,model=2', in_specs=(P('data', 'model'), P('model'))"
FIX = "jnp.matmul(x, W, out_sharding=P('data', None))"
MAPPED = "mesh='data=4,model=2', in_specs=(P('data'), P())"

# Each cell, and a part of what it shows.
CELLS = {
    "import": ("import shardnb as sn", ""),
    "load": ("%load_ext shardnb", ""),
    "mesh": ("%mesh data=4,model=2", "data"),
    "auto": (f"%%shard {LAYOUT}\n{BODY}", "all-reduce"),
    "explicit": (f"%%shard --axes explicit x=P('data')\n{BODY}", "all-reduce"),
    "manual": (
        (
            "%%shard --axes manual x=P('data', 'model') --out total=P()\n"
            "total = jax.lax.psum(x.sum(), ('data', 'model'))"
        ),
        "all-reduce",
    ),
    "mixed": (
        (
            "%%shard --mesh data=4,model=2:manual x=P('data', 'model') W=P('model') --out y=P()\n"
            "y = jax.lax.psum(x @ W, 'model')"
        ),
        "all-reduce",
    ),
    "line": (f"%shard plain(x, W) {LAYOUT}", "all-reduce"),
    "tpu": (f"%%shard --on v5e:2x4 --no-run {LAYOUT}\n{BODY}", "all-reduce"),
    "fix": (f"%%shard --fix --no-run x=P('model', 'data')\n{BODY}", "all-reduce"),
    "compare": (
        (
            "%%shard x=P('data', 'model') W=P('model') --compare auto,explicit\n"
            "g = jnp.tanh(x)\ny = g @ W"
        ),
        "refused: ShardingTypeError",
    ),
    "check": (f"%%shard --check x=P('data')\n{BODY}", "agree"),
    "forbid": (f"%%shard --forbid all-reduce {LAYOUT}\n{BODY}", "ForbiddenCollectives"),
    "watch": (
        "%%shard --watch\nz = jax.jit(lambda a: nested(a, W) * 3)(x)\nplain(x, W)",
        "1 program ",
    ),
    "ambiguous": (f"%%shard --axes explicit {LAYOUT}\ny = x @ W", FIX),
    "ambiguous in a function": (
        f"%%shard --axes explicit {LAYOUT}\n{BODY}",
        FIX,
    ),
    "ranks": (
        f"%%shard x=P('data', None, None) W=P(None, 'data', 'model')\n{BODY}",
        "P(None, 'data')",
    ),
    "uneven": ("%%shard W=P(None, ('data', 'model'))\ny = W * 2", "UsageError"),
    "uneven inside": (
        "%%shard x=P('data')\ny = jax.lax.with_sharding_constraint(x[:3], P('data')) * 2",
        "divi",
    ),
    "output": (
        "%%shard --axes manual x=P('data', 'model') --out y=P()\ny = x.sum()",
        "out_specs",
    ),
    "shard_map": (
        (
            "%%shard x=P('data')\n"
            "y = jax.shard_map(lambda v: v.sum(), in_specs=P('data'), out_specs=P())(x)"
        ),
        "out_specs",
    ),
    "not sharding": ("%%shard x=P('data')\ny = x + undefined", "NameError"),
    "errors": (
        (
            "%shard --errors on\n"
            "a = jax.device_put(x, NamedSharding(typed, P(None, 'rows')))\n"
            "b = jax.device_put(jnp.ones((8, 4)), NamedSharding(typed, P('rows')))\n"
            "with jax.set_mesh(typed):\n    a @ b"
        ),
        "out_sharding=P(",
    ),
    "errors off": ("%shard --errors off", ""),
    "explain": (f"print(sn.explain(nested, x, W, fixes=True, run=True, {SPECS}))", "all-reduce"),
    "explain a gradient": (
        "print(sn.explain(gradient, W, x, mesh='data=8', in_specs=(P(), P('data'))))",
        "all-reduce",
    ),
    "why": (f"print(sn.explain(nested, x, W, origins=True, {SPECS}))", "all-reduce"),
    "explain_hlo": ("print(sn.explain_hlo(plain.lower(x, W).compile().as_text()))", "1 device"),
    "explore": (f"sn.explore(plain, x, W, {SPECS}).report", "all-reduce"),
    "predict": (f"sn.predict(plain, x, W, {SPECS}).report", "all-reduce"),
    "plan": ("print(sn.plan(plain, x, W, mesh='data=4,model=2', compiles=2))", "data"),
    "to_explicit": (f"print(sn.to_explicit(plain, x, W, {SPECS}))", "out_sharding"),
    "numeric_check": (f"print(sn.numeric_check(plain, x, W, {SPECS}))", "agree"),
    "check_shard_map": (
        f"print(sn.check_shard_map(lambda x, W: plain(x, W).sum(), x, W, {MAPPED}, out_specs=P()))",
        "psum",
    ),
    "unload": ("%unload_ext shardnb", ""),
    # Not shardnb's: what the count is able to see.
    "a new setting": ("setting = jax.make_user_context(default_value=None)", ""),
}
SHARDNB = [
    pytest.param(name, marks=[needs_libtpu] if name == "tpu" else [])
    for name in CELLS
    if name != "a new setting"
]


@pytest.fixture(scope="module", params=[1, 8], ids=["one device", "eight devices"])
def told(request, tmp_path_factory):
    """What each cell showed, and what JAX did again after it."""
    env = os.environ | {
        "JAX_NUM_CPU_DEVICES": str(request.param),
        "IPYTHONDIR": str(tmp_path_factory.mktemp("ipython")),
    }
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.magics.compiled"],
        input=json.dumps({name: cell for name, (cell, _) in CELLS.items()}),
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=env,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", SHARDNB)
def test_the_users_functions_are_not_compiled_again(told, name):
    assert CELLS[name][1] in told[name]["shown"]
    assert told[name]["events"] == {}
    assert told[name]["traces"] == []
    assert told[name]["programs"] == told["before"]["programs"] == [1] * 7


def test_the_count_sees_what_is_compiled_again(told):
    seen = told["a new setting"]
    # Beside seven jitted functions, the steps of `train` are programs.
    assert seen["events"]["backend_compile_duration"] >= 7
    assert seen["programs"] == [2] * 7
    assert set(seen["traces"]) >= {"plain", "placed", "nested", "gradient", "mapped"}
