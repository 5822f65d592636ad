"""GPU clusters: devices that programs are compiled for, with no GPU attached."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import jax
import numpy as np

from shardnb.jax_compat.devices import GpuTopology, gpu_devices, topology_of
from shardnb.jax_compat.error_wordings import compilers_words
from shardnb.jax_compat.parts import NotAvailable
from shardnb.jax_compat.process_lock import PROCESS_LOCK
from shardnb.mesh import compilers
from shardnb.mesh.topologies import Devices, factorings

FORM = "a GPU cluster is written as h100:8 (GPUs of one host), h100:4x8 (hosts x GPUs of each)"

_CLUSTER = re.compile(r"(?:(\d+)\*)?([a-z]+\d+\w*(?:-\d+gb)?)[:=](\d+(?:x\d+)*)")

_MOST = 131_072
"""GPUs in all, as many as the largest clusters have; more is a slip, and would fill memory."""


@dataclass(frozen=True)
class Gpu:
    """A GPU as XLA's compiler needs to know it; memories in bytes, bandwidth in bytes a second.

    `per_host` GPUs are in one host, and NVLink joins those of `joined` hosts. The other figures are
    those of XLA's own target configurations (xla/backends/gpu/target_config/specs, 2026-08).
    """

    name: str
    description: str
    capability: tuple[int, int]
    cores: int
    fpus_per_core: int
    shared_memory_per_core: int
    shared_memory_per_block: int
    bandwidth: int
    l2_cache: int
    clock_ghz: float
    memory: int
    per_host: int = 8
    joined: int = 1

    @property
    def target_config(self) -> str:
        """XLA's GpuTargetConfigProto as text."""
        major, minor = self.capability
        return (
            "gpu_device_info { threads_per_block_limit: 1024 threads_per_warp: 32 "
            f"shared_memory_per_block: 49152 shared_memory_per_core: {self.shared_memory_per_core} "
            f"threads_per_core_limit: 2048 core_count: {self.cores} "
            f"fpus_per_core: {self.fpus_per_core} block_dim_limit_x: 2147483647 "
            "block_dim_limit_y: 65535 block_dim_limit_z: 65535 "
            f"memory_bandwidth: {self.bandwidth} l2_cache_size: {self.l2_cache} "
            f"clock_rate_ghz: {self.clock_ghz} device_memory_size: {self.memory} "
            f"shared_memory_per_block_optin: {self.shared_memory_per_block} "
            f"cuda_compute_capability {{ major: {major} minor: {minor} }} "
            "registers_per_core_limit: 65536 registers_per_block_limit: 65536 } "
            'platform_name: "CUDA" dnn_version_info { major: 9 minor: 7 } '
            "runtime_version { major: 12 minor: 8 patch: 0 } "
            f'device_description_str: "{self.description}"'
        )


_A100 = (8, 0), 108, 64, 167936, 166912
_HOPPER = (9, 0), 132, 128, 233472, 232448
_SHARED = 233472, 232448

GPUS = {
    gpu.name: gpu
    for gpu in (
        Gpu("a100", "NVIDIA A100-SXM4-80GB", *_A100, 2039040000000, 41943040, 1.41, 85100068864),
        Gpu(
            "a100-40gb", "NVIDIA A100-SXM4-40GB", *_A100, 1555200000000, 41943040, 1.41, 42331013120
        ),
        Gpu("h100", "NVIDIA H100 80GB HBM3", *_HOPPER, 3352320000000, 52428800, 1.98, 84942979072),
        Gpu(
            "h200", "NVIDIA H200", *_HOPPER, 4800000000000, 52428800, 1.98, 151397597184
        ),
        Gpu(
            "b200", "NVIDIA B200", (10, 0), 148, 128, *_SHARED,
            7672320000000, 132644864, 1.965, 191514411008,
        ),
        Gpu(
            "gb200", "NVIDIA GB200", (10, 0), 152, 128, *_SHARED,
            7928064000000, 135528448, 2.062, 197897748480, per_host=4, joined=18,
        ),
        Gpu(
            "b300", "NVIDIA B300", (10, 3), 158, 128, *_SHARED,
            7936000000000, 135528448, 1.965, 297021865984,
        ),
        Gpu(
            "gb300", "NVIDIA GB300", (10, 3), 152, 128, *_SHARED,
            7928064000000, 135528448, 2.07, 297021079552, per_host=4, joined=18,
        ),
    )
}  # fmt: skip

NAMES = (
    "a100:8",
    "a100-40gb:8",
    "h100:8",
    "h100:4x8",
    "h100:16x8",
    "2*h100:16x8",
    "h200:8",
    "b200:8",
    "gb200:18x4",
    "b300:8",
    "gb300:18x4",
)
"""Some clusters, for those who choose by Tab."""


@dataclass(frozen=True)
class Cluster:
    """So many slices of so many hosts, each with so many GPUs."""

    gpu: Gpu
    slices: int
    hosts: int
    per_host: int

    @property
    def size(self) -> int:
        """Number of GPUs."""
        return self.slices * self.hosts * self.per_host

    def __str__(self) -> str:
        """Write it in its one form: `2*h100:16x8`, `h100:8`."""
        slices = f"{self.slices}*" if self.slices > 1 else ""
        hosts = f"{self.hosts}x" if self.hosts > 1 else ""
        return f"{slices}{self.gpu.name}:{hosts}{self.per_host}"


def is_cluster(text: str) -> bool:
    """Whether a text is meant as a GPU cluster, also one that does not exist.

    >>> is_cluster("h100:4x8"), is_cluster("2*gb200:18x4"), is_cluster("v5e:2x4")
    (True, True, False)
    """
    match = _CLUSTER.fullmatch(text)
    return match is not None and (match[2] in GPUS or match[2][0] in "abglh")


def parse(text: str) -> Cluster:
    """Read a cluster; raises `ValueError` with the right form.

    >>> str(parse("h100:1x8")), parse("2*h100:16x8").size
    ('h100:8', 256)
    >>> parse("h100:16")
    Traceback (most recent call last):
        ...
    ValueError: h100:16 has 16 GPUs in one host, but a host has at most 8; did you mean h100:2x8?
    """
    match = _CLUSTER.fullmatch(text)
    gpu = GPUS.get(match[2]) if match else None
    if match is None or gpu is None:
        known = ", ".join(GPUS)
        raise ValueError(
            f"{text!r} is not a GPU cluster that can be compiled for ({known}); {FORM}"
        )
    sizes = [int(size) for size in match[3].split("x")]
    if len(sizes) > 2:
        raise ValueError(f"{text!r} has {len(sizes)} sizes, but {FORM}")
    slices, hosts, per_host = int(match[1] or 1), math.prod(sizes[:-1]), sizes[-1]
    if not 0 < slices * hosts * per_host <= _MOST:
        raise ValueError(
            f"expected a cluster of 1 to {_MOST:,} GPUs in all, got {text!r} with "
            f"{slices * hosts * per_host:,}; {FORM}"
        )
    if per_host > gpu.per_host:
        count = hosts * per_host
        fits = count % gpu.per_host == 0
        hint = f"; did you mean {gpu.name}:{count // gpu.per_host}x{gpu.per_host}?" if fits else ""
        raise ValueError(
            f"{text} has {per_host} GPUs in one host, but a host has at most {gpu.per_host}{hint}"
        )
    return Cluster(gpu, slices, hosts, per_host)


class Placement(NamedTuple):
    """Where the GPUs of a mesh are: the host, the NVLink domain and the slice of each."""

    hosts: tuple[int, ...]
    domains: tuple[int, ...]
    slices: tuple[int, ...]


def placement(devices: Sequence[Any]) -> Placement | None:
    """Return where GPUs are; None where one is not of a cluster that is only compiled for.

    The slices of a cluster have equally many hosts, which the compiler numbers through.
    """
    kinds = {gpu.description: gpu for gpu in GPUS.values()}
    topology, gpu = topology_of(devices[0]), kinds.get(devices[0].device_kind)
    if not isinstance(topology, GpuTopology) or gpu is None:
        return None
    per_slice = int(topology.shape.split("x")[1])
    racks = -(-per_slice // gpu.joined)
    hosts = tuple(device.process_index for device in devices)
    return Placement(
        hosts,
        tuple(host // per_slice * racks + host % per_slice // gpu.joined for host in hosts),
        tuple(host // per_slice for host in hosts),
    )


def laid_out(text: str, sizes: Sequence[int]) -> Devices:
    """Return a cluster's devices as an array of shape `sizes`, in their order: hosts one by one.

    The last mesh axes therefore stay within a host where their sizes allow it. Raises `ValueError`
    where the number of devices is another.
    """
    cluster = parse(text)
    if cluster.size != math.prod(sizes):
        fitting = " or ".join(factorings(cluster.size, len(sizes)))
        raise ValueError(
            f"a mesh of {' x '.join(map(str, sizes))} has {math.prod(sizes)} devices, but "
            f"{cluster} has {cluster.size}: {fitting} fits it"
        )
    return np.array(devices_of(str(cluster)), dtype=object).reshape(tuple(sizes))


@cache
def devices_of(text: str) -> tuple[Any, ...]:
    """Return the compile-only devices of a cluster.

    Raises `ValueError` where the compiler is not there, or refuses.
    """
    cluster = parse(text)
    plugin = compilers.gpu_plugin()
    if plugin is None:
        raise ValueError(
            f"{text} needs XLA's GPU compiler: run `shardnb targets add gpu` (no GPU is needed)"
        )
    jax.devices()  # JAX's own backends start first and as always: the plugin is not one of them.
    shape = f"{cluster.slices}x{cluster.hosts}x{cluster.per_host}"
    try:
        with PROCESS_LOCK:
            return gpu_devices(str(plugin), cluster.gpu.target_config, shape)
    except NotAvailable:
        raise
    except RuntimeError as error:
        raise ValueError(f"the GPU compiler refuses {text}: {compilers_words(error)}") from error
