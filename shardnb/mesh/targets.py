"""The devices of a mesh: emulated, attached, or those of a TPU topology."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import jax
import numpy as np

from shardnb.jax_compat.devices import emulated_devices
from shardnb.jax_compat.parts import NotAvailable
from shardnb.mesh import topologies
from shardnb.mesh.topologies import Devices

TARGETS = ("cpu", "attached", *topologies.NAMES)
"""The targets that every machine has, and some TPU topologies."""


def devices_for(target: str, sizes: Sequence[int]) -> Devices:
    """Return the devices of a target as an array of shape `sizes`.

    `cpu` emulates any number, separate from the kernel's own backend; `attached` uses the first of
    `jax.devices()`; the devices of a TPU topology such as `v5e:2x4` can only be compiled for.
    Raises `ValueError` for an unknown target, or if the number of devices does not match.
    """
    if topologies.is_topology(target):
        try:
            return topologies.laid_out(target, sizes)
        except NotAvailable as error:
            raise ValueError(f"{target} cannot be compiled for: {error}") from error
    count = math.prod(sizes)
    if target == "cpu":
        devices = _emulated(count)
    elif target == "attached":
        devices = jax.devices()
        if count > len(devices):
            raise ValueError(
                f"the mesh has {count} devices, and {len(devices)} {devices[0].platform} "
                f"device{'s are' if len(devices) > 1 else ' is'} attached; "
                "--on cpu emulates any number"
            )
    else:
        raise ValueError(
            f"{target!r} is not a target; the targets are cpu, attached, "
            "or a TPU topology such as v5e:2x4"
        )
    return np.array(devices[:count], dtype=object).reshape(tuple(sizes))


def target_name(target: str) -> str:
    """Return the canonical name of a target: a TPU topology by its chips."""
    return topologies.canonical(target) if topologies.is_topology(target) else target


@cache
def _emulated(count: int) -> Sequence[jax.Device]:
    """Emulate devices; meshes of one size share them, so that arrays pass from cell to cell."""
    return emulated_devices(count)
