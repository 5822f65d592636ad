"""What runs in an engine: one process of a JAX program that several processes run together."""

from __future__ import annotations

import os
import platform
import socket
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

Place = tuple[tuple[int, int], ...]
"""Where a block of an array starts and ends in each dimension."""

ARRAYS: dict[str, Any] = {}
"""The arrays that the kernel has names for, by their keys, which are the same in each process."""

_LOOK_FOR_PARENT = 1.0  # seconds
# Seconds in which all processes have joined: they are asked at the same time.
_TO_JOIN = 60


@dataclass(frozen=True)
class Versions:
    """What must be the same in the kernel and all processes: code is sent as bytecode."""

    python: str
    jax: str

    def __str__(self) -> str:
        return f"Python {self.python} and JAX {self.jax}"

    @classmethod
    def here(cls) -> Versions:
        """Return those of this process."""
        import jax

        return cls(".".join(platform.python_version_tuple()[:2]), jax.__version__)


@dataclass(frozen=True)
class Address:
    """Where a process runs, and a port that is free there."""

    host: str
    ip: str
    port: int
    pid: int
    versions: Versions


def address(*, local: bool) -> Address:
    """Return where this process runs; a `local` one is not reached from other machines."""
    if local:
        threading.Thread(target=_watch, args=(os.getppid(),), daemon=True).start()
    from jupyter_client.localinterfaces import public_ips

    name = socket.gethostname()
    ips = [] if local else public_ips()
    with socket.socket() as free:
        free.bind(("", 0))
        port = int(free.getsockname()[1])
    return Address(name, next(iter(ips), "127.0.0.1"), port, os.getpid(), Versions.here())


def _watch(parent: int) -> None:
    """End this process as soon as the one that started it is gone."""
    while os.getppid() == parent:
        time.sleep(_LOOK_FOR_PARENT)
    os._exit(1)


def join(coordinator: str, count: int, number: int, devices: int | None) -> list[int]:
    """Join the processes of a program; gives the process of each device, in JAX's order.

    With `devices` so many CPU devices are emulated here; else the attached ones are used.
    Raises `RuntimeError` where JAX has started here before, and not with these processes.
    """
    import jax

    # JAX does not take an engine for a notebook, and would add a note to each traceback.
    jax.config.update("jax_traceback_filtering", "tracebackhide")
    if not jax.distributed.is_initialized():
        if devices is not None:
            jax.config.update("jax_platforms", "cpu")
            jax.config.update("jax_num_cpu_devices", devices)
            jax.config.update("jax_cpu_collectives_implementation", "gloo")
        jax.distributed.initialize(
            coordinator, num_processes=count, process_id=number, initialization_timeout=_TO_JOIN
        )
    if (jax.process_count(), jax.process_index()) != (count, number):
        raise RuntimeError(
            f"JAX has started in this engine as process {jax.process_index()} of "
            f"{jax.process_count()}: restart the engines of the cluster"
        )
    return [device.process_index for device in jax.devices()]


@dataclass(frozen=True)
class ArrayInfo:
    """What the kernel knows of an array that stays here.

    `spec` and `axes` (names and sizes) are None where its sharding names no mesh axes. `places` has
    for each host the blocks that it holds, each once.
    """

    shape: tuple[int, ...]
    dtype: Any
    spec: Any
    axes: tuple[tuple[str, int], ...] | None
    places: tuple[tuple[Place, ...], ...]


def keep(key: str, array: Any) -> ArrayInfo:
    """Keep an array here under a key, and describe it."""
    import jax

    ARRAYS[key] = array
    named = isinstance(array.sharding, jax.sharding.NamedSharding)
    places: list[dict[Place, None]] = [{} for _ in range(jax.process_count())]
    for device, index in array.sharding.devices_indices_map(array.shape).items():
        places[device.process_index][_place(index, array.shape)] = None
    return ArrayInfo(
        array.shape,
        array.dtype,
        array.sharding.spec if named else None,
        tuple(array.sharding.mesh.shape.items()) if named else None,
        tuple(map(tuple, places)),
    )


def _place(index: tuple[slice, ...], shape: tuple[int, ...]) -> Place:
    return tuple(part.indices(size)[:2] for part, size in zip(index, shape, strict=True))


def forget(keys: Iterable[str]) -> None:
    """Drop arrays that the kernel has no name for any more."""
    for key in keys:
        ARRAYS.pop(key, None)


def forget_all() -> None:
    """Drop all arrays."""
    ARRAYS.clear()


@dataclass(frozen=True)
class Block:
    """A block of an array, and its values."""

    place: Place
    values: Any


def blocks(key: str) -> list[Block]:
    """Return the blocks of an array that are here, each from one process only."""
    import jax

    array = ARRAYS[key]
    if jax.dtypes.issubdtype(array.dtype, jax.dtypes.prng_key):
        array = jax.random.key_data(array)
    kept = [shard for shard in array.addressable_shards if shard.replica_id == 0]
    return [Block(_place(shard.index, array.shape), np.asarray(shard.data)) for shard in kept]
