"""The devices that a mesh is laid on: emulated, attached, and later compile-only ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import jax

from shardnb.compiler import private

TARGETS = ("cpu", "attached")


def devices_for(target: str, count: int) -> Sequence[jax.Device]:
    """Give `count` devices of a target.

    `cpu` emulates any number beside the kernel's own backend; `attached` takes the first of
    `jax.devices()`. Raises `ValueError` for an unknown target or too few devices.
    """
    provider = _PROVIDERS.get(target)
    if provider is None:
        raise ValueError(f"{target!r} is no target; the targets are {', '.join(TARGETS)}")
    return provider(count)


@cache
def _emulated(count: int) -> Sequence[jax.Device]:
    return private.emulated_devices(count)


def _attached(count: int) -> Sequence[jax.Device]:
    devices = jax.devices()
    if count > len(devices):
        raise ValueError(
            f"the mesh has {count} devices, and {len(devices)} {devices[0].platform} "
            f"device{'s are' if len(devices) > 1 else ' is'} attached; "
            "--on cpu emulates any number"
        )
    return devices[:count]


_PROVIDERS: dict[str, Callable[[int], Sequence[jax.Device]]] = {
    "cpu": _emulated,
    "attached": _attached,
}
