"""How the cost of a report grows: with devices, with the program, and at 10^12 parameters.

    python tests/benchmarks/bench_scale.py [giant] [growth] [--plot FILE.png] [--repeat 2]

`giant` is a dense transformer of 10^12 parameters on 2048 devices, forward and backward, scanned
and rematerialised, its weights and activations sharded over two axes as in the GSPMD paper; its
arrays are shapes only. It is explained for emulated devices, and, where libtpu is there, compiled
plainly and explained for v4:8x8x16. `growth` explains training steps of 1 to 96 layers on 8
devices, and one of 4 layers on 8 to 2048. Each measurement runs in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

LIMITS = {"seconds": 20.0, "mib": 2048, "tpu": 1.5, "slope": 1.2}
LAYERS, WIDTH, HIDDEN, HEADS, KEY, VOCABULARY = 160, 16384, 131072, 256, 128, 32000
BATCH, LENGTH = 128, 1024
POD = "v4:8x8x16"


def giant() -> tuple[Callable[..., Any], tuple[Any, ...], tuple[Any, ...]]:
    """Return the loss and gradient of the giant, its arguments as shapes, and their specs."""
    import jax
    import jax.numpy as jnp
    from jax.sharding import PartitionSpec as P

    shapes = {
        "query": ((LAYERS, WIDTH, HEADS, KEY), P(None, "x", "y", None)),
        "key": ((LAYERS, WIDTH, HEADS, KEY), P(None, "x", "y", None)),
        "value": ((LAYERS, WIDTH, HEADS, KEY), P(None, "x", "y", None)),
        "out": ((LAYERS, HEADS, KEY, WIDTH), P(None, "y", None, "x")),
        "up": ((LAYERS, WIDTH, HIDDEN), P(None, "x", "y")),
        "down": ((LAYERS, HIDDEN, WIDTH), P(None, "y", "x")),
    }

    def placed(x, *spec):
        return jax.lax.with_sharding_constraint(x, P(*spec))

    def norm(x):
        return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6)

    @jax.checkpoint
    def layer(x, p):
        h = norm(x)
        q, k, v = (
            placed(jnp.einsum("bsm,mhd->bshd", h, p[name]), "x", None, "y")
            for name in ("query", "key", "value")
        )
        weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(KEY))
        mixed = placed(jnp.einsum("bhqk,bkhd->bqhd", weights, v), "x", None, "y")
        x = placed(x + jnp.einsum("bqhd,hdm->bqm", mixed, p["out"]), "x", None, "y")
        hidden = placed(jax.nn.gelu(jnp.einsum("bsm,mf->bsf", norm(x), p["up"])), "x", None, "y")
        return placed(x + jnp.einsum("bsf,fm->bsm", hidden, p["down"]), "x", None, "y"), None

    def loss(params, tokens):
        x = placed(params["table"][tokens[:, :-1]], "x", None, "y")
        x, _ = jax.lax.scan(layer, x, params["layers"])
        scores = jax.nn.log_softmax(jnp.einsum("bsm,vm->bsv", norm(x), params["table"]))
        return -jnp.take_along_axis(scores, tokens[:, 1:, None], -1).mean()

    def shape(size, dtype="bfloat16"):
        return jax.ShapeDtypeStruct(size, dtype)

    layers = {name: shape(size) for name, (size, _) in shapes.items()}
    params = {"table": shape((VOCABULARY, WIDTH)), "layers": layers}
    specs = {"table": P("y", "x"), "layers": {name: spec for name, (_, spec) in shapes.items()}}
    tokens = shape((BATCH, LENGTH + 1), "int32")
    return jax.value_and_grad(loss), (params, tokens), (specs, P("x"))


def parameters() -> int:
    """Count the giant's parameters."""
    attention, feed_forward = 4 * WIDTH * HEADS * KEY, 2 * WIDTH * HIDDEN
    return LAYERS * (attention + feed_forward) + VOCABULARY * WIDTH


def plain_giant(target: str) -> dict[str, Any]:
    """Lower and compile the giant as JAX's users do."""
    import jax
    from jax.sharding import NamedSharding, PartitionSpec

    from shardnb.mesh import make_grid

    fn, args, specs = giant()
    grid = make_grid("x=32,y=64", None, target).mesh
    placed = jax.tree.map(
        lambda spec, leaf: jax.ShapeDtypeStruct(
            leaf.shape, leaf.dtype, sharding=NamedSharding(grid, spec)
        ),
        specs,
        args,
        is_leaf=lambda leaf: isinstance(leaf, PartitionSpec),
    )
    results = jax.tree.map(
        lambda spec: NamedSharding(grid, spec),
        (PartitionSpec(), specs[0]),
        is_leaf=lambda leaf: isinstance(leaf, PartitionSpec),
    )
    with jax.set_mesh(grid):
        start = time.perf_counter()
        jax.jit(fn, out_shardings=results).trace(*placed).lower().compile()
    return {"seconds": time.perf_counter() - start}


def explained_giant(target: str) -> dict[str, Any]:
    """Explain the giant."""
    from jax.sharding import PartitionSpec

    import shardnb as sn

    fn, args, specs = giant()
    start = time.perf_counter()
    results = (PartitionSpec(), specs[0])
    report = sn.explain(fn, *args, mesh="x=32,y=64", on=target, in_specs=specs, out_specs=results)
    return {
        "seconds": time.perf_counter() - start,
        "collectives": len(report.collectives),
        "compile": report.run.compile_seconds,
        "explain": report.run.explain_seconds,
        "memory_gib": report.memory.total / 2**30 if report.memory else None,
        "unknown": sum(one.reason == "unknown" for one in report.collectives),
        "json": len(report.to_json(texts=False)),
    }


def explained_step(layers: int, mesh: str) -> dict[str, Any]:
    """Explain an unrolled training step."""
    import shardnb as sn
    from tests.benchmarks.bench_explain import equations, matmul, transformer

    sn.explain(*_call(matmul()), mesh="data=2,model=1", in_specs=matmul()[2])
    fn, args, specs = transformer(layers)
    start = time.perf_counter()
    report = sn.explain(fn, *args, mesh=mesh, in_specs=specs)
    seconds = time.perf_counter() - start
    import jax

    return {
        "seconds": seconds,
        "explain": report.run.explain_seconds,
        "collectives": len(report.collectives),
        "equations": equations(jax.make_jaxpr(fn)(*args).jaxpr),
    }


def _call(program: tuple[Callable[..., Any], tuple[Any, ...], Any]) -> tuple[Any, ...]:
    fn, args, _ = program
    return (fn, *args)


JOBS = {
    "plain": lambda given: plain_giant(given.on),
    "giant": lambda given: explained_giant(given.on),
    "step": lambda given: explained_step(given.layers, given.mesh),
}


def in_child(*arguments: str, repeat: int = 1) -> dict[str, Any]:
    """Do a measurement in processes of its own; gives the fastest, with its peak memory in MiB."""
    command = [sys.executable, __file__, "--child", *arguments]
    found = []
    for _ in range(repeat):
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        found.append(json.loads(done.stdout.splitlines()[-1]))
    best: dict[str, Any] = min(found, key=lambda one: one["seconds"])
    return best


def row(name: str, found: dict[str, Any], verdict: str = "") -> None:
    """Print one line of the table."""
    rest = " ".join(
        f"{key} {value:.2f}" if isinstance(value, float) else f"{key} {value}"
        for key, value in found.items()
        if key not in {"seconds", "peak_mib"}
    )
    print(f"{name:<34}{found['seconds']:>8.2f} s {found['peak_mib']:>6.0f} MiB  {rest}  {verdict}")


def show_giant(repeat: int) -> None:
    """Explain the giant for emulated devices and for a pod."""
    print(f"{parameters():.3g} parameters, {LAYERS} layers, 2048 devices")
    found = in_child("giant", "--on", "cpu", repeat=repeat)
    fits = found["seconds"] <= LIMITS["seconds"] and found["peak_mib"] <= LIMITS["mib"]
    row("emulated", found, "within 20 s and 2 GiB" if fits else "ABOVE 20 s or 2 GiB")
    try:
        import libtpu  # noqa: F401
    except ImportError:
        print("libtpu is not installed: no pod")
        return
    base = in_child("plain", "--on", POD, repeat=repeat)
    row(f"{POD}, plain", base)
    found = in_child("giant", "--on", POD, repeat=repeat)
    ratio = found["seconds"] / base["seconds"]
    row(POD, found, f"-> {ratio:.2f}x ({'within' if ratio <= LIMITS['tpu'] else 'ABOVE'} 1.5x)")


def show_growth(repeat: int, plot: str | None) -> None:
    """Explain steps of growing size, on growing meshes."""
    few = "data=4,model=2"
    by_size = [
        in_child("step", "--layers", str(n), "--mesh", few, repeat=repeat) for n in (1, 4, 24, 96)
    ]
    meshes = ["data=4,model=2", "data=16,model=4", "data=64,model=8", "data=256,model=8"]
    by_mesh = [in_child("step", "--layers", "4", "--mesh", mesh, repeat=repeat) for mesh in meshes]
    for found in by_size:
        row(f"{found['equations']} equations", found)
    devices = [math.prod(int(part.partition("=")[2]) for part in m.split(",")) for m in meshes]
    for count, found in zip(devices, by_mesh, strict=True):
        row(f"{count} devices", found)
    print("slope of the report's seconds, in log and log (1 is linear):")
    sizes = [found["equations"] for found in by_size]
    for name, at, found in (("equations", sizes, by_size), ("devices", devices, by_mesh)):
        steep = slope(at, [one["explain"] for one in found])
        print(f"  {name}: {steep:.2f} {'' if steep <= LIMITS['slope'] else 'ABOVE linear'}")
    if plot:
        draw(plot, (sizes, by_size), (devices, by_mesh))


def slope(at: list[int], seconds: list[float]) -> float:
    """Return the slope from the second measurement to the last one, in log and log."""
    return math.log(seconds[-1] / seconds[1]) / math.log(at[-1] / at[1])


def draw(path: str, *series: tuple[list[int], list[dict[str, Any]]]) -> None:
    """Plot the seconds against the size and against the number of devices."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    names = ("equations, on 8 devices", "devices, 4 layers")
    for axes, name, (at, found) in zip(figure.subplots(1, 2), names, series, strict=True):
        for key in ("seconds", "explain"):
            axes.loglog(at, [one[key] for one in found], marker="o", label=key)
        axes.set(xlabel=name, ylabel="seconds")
        axes.legend(["explain, in all", "reading and explaining"])
    figure.savefig(path, dpi=120)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="*", default=["giant", "growth"])
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--plot", help="a PNG to draw the growth into")
    parser.add_argument("--child", choices=JOBS, help=argparse.SUPPRESS)
    parser.add_argument("--layers", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--mesh", help=argparse.SUPPRESS)
    parser.add_argument("--on", default="cpu", help=argparse.SUPPRESS)
    given = parser.parse_args()
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    if given.child:
        found = JOBS[given.child](given)
        found["peak_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps(found))
        return
    if "giant" in given.what:
        show_giant(given.repeat)
    if "growth" in given.what:
        show_growth(given.repeat, given.plot)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    main()
