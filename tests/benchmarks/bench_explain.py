"""What shardnb adds to what JAX does anyway, in seconds and in memory.

    python tests/benchmarks/bench_explain.py [--layers 24 96] [--repeat 3] [--profile]

Each measurement runs in a process of its own, after a small program has warmed JAX up. Plain is
`jax.jit(step).lower(...).compile()`; explain is the same program through `sn.explain`.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

LIMITS = {"ratio": 1.5, "load": 0.3, "mesh": 3.0}
WIDTH, HEADS, BATCH, LENGTH, VOCABULARY = 512, 8, 256, 128, 1024


def transformer(layers: int) -> tuple[Callable[..., Any], tuple[Any, ...], tuple[Any, ...]]:
    """Return an unrolled training step with Adam, its arguments as shapes, and their specs."""
    import jax
    import jax.numpy as jnp
    import optax
    from jax.sharding import PartitionSpec as P

    shapes = {
        "qkv": ((WIDTH, 3, HEADS, WIDTH // HEADS), P("data", None, "model")),
        "out": ((HEADS, WIDTH // HEADS, WIDTH), P("model", None, "data")),
        "up": ((WIDTH, 4 * WIDTH), P("data", "model")),
        "down": ((4 * WIDTH, WIDTH), P("model", "data")),
        "scale": ((2, WIDTH), P()),
    }
    adam = optax.adam(1e-3)

    def norm(x, scale):
        return scale * x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6)

    def layer(x, p):
        q, k, v = jnp.moveaxis(
            jnp.einsum("bsd,dchk->bschk", norm(x, p["scale"][0]), p["qkv"]), 2, 0
        )
        weights = jax.nn.softmax(jnp.einsum("bqhk,bshk->bhqs", q, k) / q.shape[-1] ** 0.5)
        x += jnp.einsum("bhqs,bshk,hkd->bqd", weights, v, p["out"])
        return x + jax.nn.gelu(norm(x, p["scale"][1]) @ p["up"]) @ p["down"]

    def loss(params, tokens):
        x = params["table"][tokens[:, :-1]]
        for p in params["layers"]:
            x = layer(x, p)
        scores = jax.nn.log_softmax(x @ params["table"].T)
        return -jnp.take_along_axis(scores, tokens[:, 1:, None], -1).mean()

    def step(params, state, tokens):
        value, slopes = jax.value_and_grad(loss)(params, tokens)
        updates, state = adam.update(slopes, state)
        return optax.apply_updates(params, updates), state, value

    def shape(size, dtype="float32"):
        return jax.ShapeDtypeStruct(size, dtype)

    one = {name: shape(size) for name, (size, _) in shapes.items()}
    specs = {name: spec for name, (_, spec) in shapes.items()}
    params = {"table": shape((VOCABULARY, WIDTH)), "layers": [one] * layers}
    params_specs = {"table": P(None, "model"), "layers": [specs] * layers}
    state = jax.eval_shape(adam.init, params)
    state_specs = jax.tree.map(lambda _: P(), state)
    state_specs = (state_specs[0]._replace(mu=params_specs, nu=params_specs), *state_specs[1:])
    tokens = shape((BATCH, LENGTH + 1), "int32")
    return step, (params, state, tokens), (params_specs, state_specs, P("data"))


def matmul() -> tuple[Callable[..., Any], tuple[Any, ...], tuple[Any, ...]]:
    """Return a small program, to warm up with."""
    import jax
    import jax.numpy as jnp
    from jax.sharding import PartitionSpec as P

    x = jax.ShapeDtypeStruct((4096, 4096), jnp.float32)
    return lambda a, b: jnp.tanh(a @ b), (x, x), (P("data", "model"), P("model"))


def equations(jaxpr: Any) -> int:
    """Count the equations of a jaxpr, with those inside its equations."""
    inner = [
        getattr(part, "jaxpr", part)
        for eqn in jaxpr.eqns
        for value in eqn.params.values()
        for part in (value if isinstance(value, tuple | list) else (value,))
        if hasattr(getattr(part, "jaxpr", part), "eqns")
    ]
    return len(jaxpr.eqns) + sum(map(equations, inner))


def plain(fn: Callable[..., Any], args: Any, specs: Any, mesh: str) -> Mapping[str, Any]:
    """Lower and compile, as JAX's users do."""
    import jax
    from jax.sharding import NamedSharding, PartitionSpec

    from shardnb.mesh import make_grid

    grid = make_grid(mesh).mesh
    placed = jax.tree.map(
        lambda spec, leaf: jax.ShapeDtypeStruct(
            leaf.shape, leaf.dtype, sharding=NamedSharding(grid, spec)
        ),
        specs,
        args,
        is_leaf=lambda leaf: isinstance(leaf, PartitionSpec),
    )
    with jax.set_mesh(grid):
        start, cpu = time.perf_counter(), time.process_time()
        traced = jax.jit(fn).trace(*placed)
        traced.lower().compile()
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    return {"seconds": seconds, "cpu": cpu, "equations": equations(traced.jaxpr.jaxpr)}


def explained(fn: Callable[..., Any], args: Any, specs: Any, mesh: str) -> Mapping[str, Any]:
    """Compile through shardnb, and read the evidence into a report."""
    import shardnb as sn

    start, cpu = time.perf_counter(), time.process_time()
    report = sn.explain(fn, *args, mesh=mesh, in_specs=specs)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    return {
        "seconds": seconds,
        "cpu": cpu,
        "collectives": len(report.collectives),
        "trace": report.run.trace_seconds,
        "compile": report.run.compile_seconds,
        "explain": report.run.explain_seconds,
        "json": len(report.to_json(texts=False)),
    }


def imported(*, extension: bool) -> Mapping[str, Any]:
    """Time `import jax` or, after it, `%load_ext shardnb`."""
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    start = time.perf_counter()
    import jax  # noqa: F401

    jax_seconds = time.perf_counter() - start
    start = time.perf_counter()
    if extension:
        shell.run_line_magic("load_ext", "shardnb")
    return {"seconds": time.perf_counter() - start if extension else jax_seconds}


def measure(what: str, layers: int, mesh: str, *, profile: bool) -> Mapping[str, Any]:
    """Do one measurement in this process."""
    if what in {"jax", "load_ext"}:
        return imported(extension=what == "load_ext")
    work = {"plain": plain, "explain": explained}[what]
    work(*matmul(), "data=2,model=1")  # the mesh itself stays cold
    program = transformer(layers) if layers else matmul()
    if not profile:
        return work(*program, mesh)
    import cProfile

    with cProfile.Profile() as profiler:
        result = work(*program, mesh)
    profiler.print_stats("cumulative")
    return result


def in_child(what: str, layers: int, mesh: str) -> dict[str, Any]:
    """Do a measurement in a process of its own; gives its peak memory in MiB, too."""
    command = [sys.executable, __file__, "--child", what, "--layers", str(layers), "--mesh", mesh]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def by_turns(repeat: int, *jobs: tuple[str, int, str]) -> list[dict[str, Any]]:
    """Do measurements by turns, so that a busy machine troubles all alike; gives the best."""
    rounds = [[in_child(*job) for job in jobs] for _ in range(repeat)]
    return [
        {key: min(one[key] for one in found) for key in found[0]}
        for found in zip(*rounds, strict=True)
    ]


def row(name: str, found: Mapping[str, Any], verdict: str = "") -> None:
    """Print one line of the table."""
    rest = " ".join(
        f"{key} {value:.2f}" if isinstance(value, float) else f"{key} {value}"
        for key, value in found.items()
        if key not in {"seconds", "peak_mib"}
    )
    print(f"{name:<30}{found['seconds']:>9.2f} s {found['peak_mib']:>7.0f} MiB  {rest} {verdict}")


def judged(value: float, limit: float, unit: str) -> str:
    """Say a figure beside its limit."""
    return f"-> {value:.2f}{unit} ({'within' if value <= limit else 'ABOVE'} {limit}{unit})"


def table(layer_counts: list[int], repeat: int) -> None:
    """Run all measurements and print them."""
    few, many = "data=4,model=2", "data=256,model=8"
    for layers in layer_counts:
        base, ours = by_turns(repeat, ("plain", layers, few), ("explain", layers, few))
        row(f"plain, {layers} layers", base)
        ratio = ours["seconds"] / base["seconds"]
        row(f"explain, {layers} layers", ours, judged(ratio, LIMITS["ratio"], "x"))
    start, load = by_turns(repeat, ("jax", 0, few), ("load_ext", 0, few))
    row("import jax", start)
    row("%load_ext shardnb after it", load, judged(load["seconds"], LIMITS["load"], " s"))
    small, large = by_turns(repeat, ("explain", 8, few), ("explain", 8, many))
    row("explain, 8 layers, 8 devices", small)
    extra = judged(large["seconds"] - small["seconds"], LIMITS["mesh"], " s more")
    row("the same, 2048 devices", large, extra)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, nargs="+", default=[24, 96])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--mesh", default="data=4,model=2", help=argparse.SUPPRESS)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--profile", action="store_true", help="profile explain, in this process")
    given = parser.parse_args()
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    if given.child or given.profile:
        what = given.child or "explain"
        found = dict(measure(what, given.layers[0], given.mesh, profile=given.profile))
        found["peak_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps(found))
    else:
        table(given.layers, given.repeat)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    main()
