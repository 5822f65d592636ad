"""The devices of a mesh: emulated, attached, or those of a TPU topology or GPU cluster."""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax
import numpy as np

from shardnb.jax_compat.devices import MOST_EMULATED, emulated_devices
from shardnb.jax_compat.parts import NotAvailable
from shardnb.mesh import gpus, topologies
from shardnb.mesh.topologies import Devices
from shardnb.report.invalid_input import InvalidInput

TARGETS = ("cpu", "attached", *topologies.NAMES, *gpus.NAMES)
"""Those of every machine, and some TPU topologies and GPU clusters."""


def devices_for(target: str, sizes: Sequence[int]) -> Devices:
    """Return the devices of a target as an array of shape `sizes`.

    `cpu` emulates up to 2,048, separate from the kernel's own backend; `attached` uses the first of
    `jax.devices()`; the devices of a TPU topology such as `v5e:2x4`, of a
    GPU cluster such as `h100:4x8`, or of slices of them (`2*v5e:4x4`) can only be compiled for.
    Raises `InvalidInput` for an unknown target, or if the number of devices does not match.
    """
    layout = gpus.laid_out if gpus.is_cluster(target) else topologies.laid_out
    if compiled_for(target):
        try:
            return layout(target, sizes)
        except NotAvailable as error:
            raise InvalidInput(f"{target} cannot be compiled for: {error}") from error
    count = math.prod(sizes)
    if target == "cpu":
        refuse_too_many(count)
        devices = emulated_devices(count)
    elif target == "attached":
        devices = jax.devices()
        if count > len(devices):
            raise InvalidInput(
                f"the mesh has {count} devices, and {len(devices)} {devices[0].platform} "
                f"device{'s are' if len(devices) > 1 else ' is'} attached; "
                "--on cpu emulates up to 2,048"
            )
    else:
        raise InvalidInput(
            f"{target!r} is not a target; the targets are cpu, attached, a TPU topology such as "
            "v5e:2x4, a GPU cluster such as h100:4x8, or slices of them such as 2*v5e:4x4"
        )
    return np.array(devices[:count], dtype=object).reshape(tuple(sizes))


def refuse_too_many(count: int) -> None:
    """Raise `ValueError` for more devices than can be emulated."""
    if count > MOST_EMULATED:
        raise ValueError(
            f"expected at most {MOST_EMULATED:,} devices, which is what XLA emulates on a CPU, "
            f"got a mesh of {count:,}; a TPU topology such as v5p:16x16x16 can have more"
        )


def compiled_for(target: str) -> bool:
    """Whether a target is a TPU topology or a GPU cluster, for which nothing runs here."""
    return gpus.is_cluster(target) or topologies.is_topology(target)


def is_target(text: str) -> bool:
    """Whether a text names devices, also ones that do not exist.

    >>> is_target("cpu"), is_target("2*v5e:4x4"), is_target("auto")
    (True, True, False)
    """
    return text in ("cpu", "attached") or compiled_for(text)


def target_name(target: str) -> str:
    """Return the canonical name of a target: a TPU topology by its chips."""
    if gpus.is_cluster(target):
        return str(gpus.parse(target))
    return topologies.canonical(target) if topologies.is_topology(target) else target
