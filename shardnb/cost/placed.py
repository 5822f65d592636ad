"""Where the devices of a mesh would be on other hardware: slices of chips, hosts of GPUs."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from shardnb.cost.hardware import HARDWARE, Hardware, find_hardware
from shardnb.cost.links import laid
from shardnb.report.model import Mesh

_NAME = re.compile(r"(?:(\d+)\*)?([^:*]+)(?::(\d+(?:x\d+)*))?")


class Named(NamedTuple):
    """Hardware by its name, and where it says so how many slices of which shape."""

    hardware: Hardware
    slices: int
    shape: tuple[int, ...] | None


def named(name: str) -> Named:
    """Read `h100`, `v5e:2x4`, `h100:4x8` or `2*v5e:4x4`; raises `ValueError` with the names.

    >>> named("2*v5e:4x4")[1:]
    (2, (4, 4))
    """
    match = _NAME.fullmatch(name.strip())
    hardware = find_hardware(match[2]) if match else None
    if match is None or hardware is None:
        known = ", ".join(hardware.short for hardware in HARDWARE)
        raise ValueError(f"unknown hardware {name!r}; known are {known}")
    shape = tuple(map(int, match[3].split("x"))) if match[3] else None
    return Named(hardware, int(match[1] or 1), shape)


def as_if(mesh: Mesh, on: Named) -> tuple[Mesh, str]:
    """Place a mesh on hardware, and say how. Raises `ValueError` where it does not fit."""
    hardware, slices, shape = on
    if not hardware.dims:
        return _in_hosts(mesh, on)
    if shape is not None:
        _check(shape, hardware)
        if mesh.size % slices:
            raise ValueError(
                f"the mesh has {mesh.size} devices, which {slices} slices do not share"
            )
        each = mesh.size // slices
        name = "x".join(map(str, shape))
        several = f"{slices} slices" if slices > 1 else "a slice"
        how = f"devices in their order, row by row on {several} of {name} chips"
        coords = (
            laid(replace(mesh, device_ids=tuple(range(each))), shape, hardware.devices) * slices
        )
        target = f"{f'{slices}*' if slices > 1 else ''}{hardware.short}:{name}"
        numbers = tuple(position // each for position in range(mesh.size))
        placed = replace(mesh, coords=coords, target=target, hosts=None, domains=None)
        return replace(placed, slices=numbers if slices > 1 else None), how
    sizes = [axis.size for axis in mesh.axes if axis.size > 1] or [1]
    if len(sizes) > hardware.dims or hardware.devices > 1 or not mesh.axes:
        dims = "x".join(["4"] * hardware.dims)
        raise ValueError(
            f"the layout of this mesh on {hardware.name} is ambiguous (each chip has "
            f"{hardware.dims} dimensions and {hardware.devices} devices): name a slice, as "
            f"{hardware.short}:{dims}"
        )
    _check(sizes, hardware)
    how = "each mesh axis along its own physical dimension"
    target = f"{hardware.short}:{'x'.join(map(str, sizes))}"
    return replace(mesh, coords=laid(mesh, sizes, 1), target=target), how


def _in_hosts(mesh: Mesh, on: Named) -> tuple[Mesh, str]:
    """Place a mesh on GPUs in their order, host by host."""
    hardware, slices, shape = on
    if shape is None:
        placed = replace(mesh, coords=None, slices=None, hosts=None, domains=None)
        return placed, f"devices in their order, {hardware.node} to a node"
    per_host = shape[-1]
    if len(shape) > 2 or slices * math.prod(shape) != mesh.size:
        raise ValueError(
            f"the mesh has {mesh.size} devices, and {slices} x {' x '.join(map(str, shape))} GPUs "
            f"are {slices * math.prod(shape)}: name as many, as {hardware.short}:8 or "
            f"{hardware.short}:4x8 (hosts x GPUs)"
        )
    hosts = tuple(position // per_host for position in range(mesh.size))
    in_slice = mesh.size // slices
    joined = min(in_slice, per_host * hardware.hosts)
    racks = -(-in_slice // joined)
    domains = tuple(p // in_slice * racks + p % in_slice // joined for p in range(mesh.size))
    numbers = tuple(position // in_slice for position in range(mesh.size))
    placed = replace(mesh, coords=None, hosts=hosts, domains=domains, slices=numbers)
    return placed, f"devices in their order, {per_host} to a host"


def _check(shape: Sequence[int], hardware: Hardware) -> None:
    """Refuse a slice that is larger than a pod."""
    pod = sorted(hardware.pod, reverse=True)
    sizes = sorted(shape, reverse=True)
    if len(sizes) > hardware.dims or any(a > b for a, b in zip(sizes, pod, strict=False)):
        whole = "x".join(map(str, hardware.pod)) or f"{hardware.dims} dimensions"
        raise ValueError(
            f"a slice of {'x'.join(map(str, shape))} chips is more than a pod of "
            f"{hardware.name}, {whole}: name a slice, as {hardware.short}:"
            f"{'x'.join(['4'] * hardware.dims)}"
        )
