"""A training step on 8 CPU devices, run three times under JAX's profiler.

    python train.py FOLDER

FOLDER/trace then has the profiler's trace, and FOLDER/dumps what XLA wrote as it compiled.
"""

import os
import sys
from pathlib import Path

folder = Path(sys.argv[1])
os.environ["XLA_FLAGS"] = (
    "--xla_force_host_platform_device_count=8 --xla_dump_hlo_as_text "
    f"--xla_dump_to={folder}/dumps --xla_dump_hlo_pass_re=shardy|spmd-partitioning"
)

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P


def loss(params, x):
    with jax.named_scope("mlp"):
        h = jax.nn.relu(x @ params["up"])
        y = h @ params["down"]
    return jnp.mean((y - x) ** 2)


@jax.jit
def step(params, x):
    value, grads = jax.value_and_grad(loss)(params, x)
    return value, jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)


types = (jax.sharding.AxisType.Auto,) * 2
mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=types)


def put(array, *spec):
    return jax.device_put(array, NamedSharding(mesh, P(*spec)))


params = {
    "up": put(jnp.full((256, 1024), 0.01), None, "model"),
    "down": put(jnp.full((1024, 256), 0.01), "model"),
}
x = put(jnp.ones((512, 256)), "data")

jax.block_until_ready(step(params, x))  # compiles
with jax.profiler.trace(folder / "trace"):
    for _ in range(3):
        jax.block_until_ready(step(params, x))
