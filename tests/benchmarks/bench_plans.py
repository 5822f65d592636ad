"""How long a search for plans takes, and whether it leaves out a recipe that beats a plan shown.

    python -m tests.benchmarks.bench_plans [--mesh data=4,model=2] [--only mlp]

The steps are the transformer of `bench_explain` with two layers, and an MLP with Adam. Every product
of recipes that the search left out is compiled, too. Exits 1 where one of them beats a plan in time,
memory, bytes sent and work at once.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable
from typing import Any

from shardnb.bugs import Inconclusive
from shardnb.report.plans import Plan, Plans
from shardnb.views.plans import layout_name

Step = tuple[Callable[..., Any], tuple[Any, ...]]


def mlp(sizes: tuple[int, ...] = (1024, 4096, 4096, 1024), batch: int = 512) -> Step:
    """Return a training step of an MLP with Adam, and its arguments as shapes."""
    import jax
    import jax.numpy as jnp
    import optax

    adam = optax.adam(1e-3)

    def loss(params, x, y):
        for p in params:
            x = jax.nn.gelu(x @ p["w"] + p["b"])
        return jnp.mean((x - y) ** 2)

    def step(params, state, x, y):
        value, slopes = jax.value_and_grad(loss)(params, x, y)
        updates, state = adam.update(slopes, state, params)
        return optax.apply_updates(params, updates), state, value

    def shape(*size):
        return jax.ShapeDtypeStruct(size, jnp.float32)

    params = [{"w": shape(a, b), "b": shape(b)} for a, b in itertools.pairwise(sizes)]
    state = jax.eval_shape(adam.init, params)
    return step, (params, state, shape(batch, sizes[0]), shape(batch, sizes[-1]))


def transformer() -> Step:
    """Return the training step of `bench_explain`."""
    from tests.benchmarks.bench_explain import transformer as of_layers

    step, args, _ = of_layers(2)
    return step, args


def left_out(plans: Plans) -> list[Plan]:
    """Compile the products of recipes that a search left out."""
    known = [(plan.mesh, dict(plan.layout)) for plan in (*plans, *plans.beaten)]
    found = []
    for field in plans._found.fields:
        for state, layout in field.layouts.items():
            if (field.mesh, dict(layout)) not in known:
                try:
                    found.append(field.compiled(state))
                except Inconclusive as refusal:
                    print(f"{layout_name(layout)} is refused: {refusal}")
    return found


def beats(one: Plan, other: Plan) -> bool:
    """Whether a plan is better than another in all that is measured."""
    return (
        one.value < other.value
        and one.memory < other.memory
        and one.wire_bytes < other.wire_bytes
        and (one.flops or 0.0) <= (other.flops or 0.0)
    )


def main() -> int:
    """Search, compile the rest, and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mesh", default="data=4,model=2")
    parser.add_argument("--only", choices=("mlp", "transformer"))
    options = parser.parse_args()

    import shardnb as sn

    bad = 0
    for name, make in {"mlp": mlp, "transformer": transformer}.items():
        if options.only in (None, name):
            step, args = make()
            start = time.perf_counter()
            plans = sn.plan(step, *args, mesh=options.mesh)
            seconds = time.perf_counter() - start
            print(f"{name}: {seconds:.1f} s\n{plans}\n")
            rest = left_out(plans)
            better = [(one, other) for one in rest for other in plans if beats(one, other)]
            bad += len(better)
            print(f"{name}: {len(rest)} recipes left out were compiled, {len(better)} beat a plan")
            for one, other in better:
                print(f"  {layout_name(one.layout)} beats {layout_name(other.layout)}")
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
