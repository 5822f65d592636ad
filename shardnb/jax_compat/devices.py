"""Devices beside the notebook's own: emulated ones, and those that one can only compile for."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import jax

from shardnb.jax_compat import parts
from shardnb.jax_compat.parts import NotAvailable


def emulated_devices(count: int) -> Sequence[jax.Device]:
    """Give the devices of a new CPU client, beside the notebook's own backend.

    Without such a client, the CPU devices of the notebook; raises `ValueError` if they are fewer.
    """
    devices: Sequence[jax.Device] = ()
    try:
        devices = parts.CPU_CLIENT.call(num_devices=count).devices()
    except NotAvailable as error:
        with suppress(RuntimeError):  # JAX has no CPU backend, for its JAX_PLATFORMS
            devices = jax.devices("cpu")
        if len(devices) < count:
            raise ValueError(
                f"the mesh has {count} devices, but there are only {len(devices)} CPU devices: "
                f"{error}. In a new notebook, jax.config.update('jax_num_cpu_devices', {count}) "
                "before anything else gives as many"
            ) from error
    return devices[:count]


def compile_only(device: jax.Device) -> bool:
    """Whether a device is one of a topology, which one can compile for and nothing else."""
    if device.platform == "cpu":
        return False
    try:
        return type(parts.CLIENT.get(device)).__name__ == "CompileOnlyPyClient"
    except NotAvailable:
        return device not in jax.devices()


def topology_devices(name: str) -> tuple[Any, ...]:
    """Give the compile-only devices of a TPU topology.

    Raises `RuntimeError` where libtpu is missing or does not know the topology.
    """
    return tuple(parts.TOPOLOGIES.call(name, platform="tpu").devices)


def laid_on_torus(devices: Sequence[Any], sizes: Sequence[int]) -> Any:
    """Give devices as an array of shape `sizes`, as `jax.make_mesh` lays them."""
    return parts.DEVICE_MESH.call(tuple(sizes), list(devices), allow_split_physical_axes=True)
