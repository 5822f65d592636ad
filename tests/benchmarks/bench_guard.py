"""What `sn.guard` adds to a call of what is compiled already.

    python tests/benchmarks/bench_guard.py [--calls 20000]

Each call waits for nothing but its dispatch. Plain and guarded calls take turns, so that what else
the machine does meets both; the least time of many rounds counts.
"""

from __future__ import annotations

import argparse
import time

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.mesh import make_grid

_ROUNDS = 20


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=20_000)
    calls = parser.parse_args().calls
    print(f"{'program':<28}{'plain':>12}{'guarded':>12}{'in a block':>12}   us per call")
    for name, arrays in (
        ("2 arrays, 1 device", one_device()),
        ("2 arrays, 8 devices", sharded(2)),
        ("100 arrays, 8 devices", sharded(100)),
    ):
        number = calls if "1 device" in name else calls // 40
        plain, guarded, inside = times(arrays, number // _ROUNDS)
        print(f"{name:<28}{plain:>12.2f}{guarded:>12.2f}{inside:>12.2f}")


def one_device() -> list[jax.Array]:
    """Give arrays on one device."""
    return [jnp.ones((8, 8)), jnp.ones((8, 8))]


def sharded(count: int) -> list[jax.Array]:
    """Give arrays that are sharded over 8 devices."""
    sharding = NamedSharding(make_grid("data=8").mesh, P("data"))
    return [jax.device_put(jnp.ones((8, 8)), sharding) for _ in range(count)]


def times(arrays: list[jax.Array], calls: int) -> tuple[float, float, float]:
    """Give the microseconds of a plain call, a guarded one, and a plain one in a guarded block."""

    def scaled(*arrays: jax.Array) -> list[jax.Array]:
        return [2 * array for array in arrays]

    plain = jax.jit(scaled)
    guard = sn.guard("inferred")
    guarded = guard(plain)
    jax.block_until_ready(guarded(*arrays))
    least = [float("inf")] * 3
    for _ in range(_ROUNDS):
        least[0] = min(least[0], seconds(plain, arrays, calls))
        least[1] = min(least[1], seconds(guarded, arrays, calls))
        with guard:
            least[2] = min(least[2], seconds(plain, arrays, calls))
    first, second, third = (1e6 * each / calls for each in least)
    return first, second, third


def seconds(function, arrays: list[jax.Array], calls: int) -> float:
    """Call a function many times."""
    start = time.perf_counter()
    for _ in range(calls):
        result = function(*arrays)
    taken = time.perf_counter() - start
    jax.block_until_ready(result)
    return taken


if __name__ == "__main__":
    main()
