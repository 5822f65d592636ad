"""Hardware as its makers describe it. A figure without a source is None.

All figures are per chip: floating-point operations per second for dense bf16, bytes of memory, and
bytes per second. A link's figure is for one direction; it carries as much in the other direction at
the same time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

GiB = 2**30

Wraps = Literal["pod", "cubes"]


@dataclass(frozen=True)
class Latency:
    """Seconds that a message takes without its bytes, and where the figures come from.

    `start` is for each collective, `step` for a step to a neighbour over a link or a switch,
    `network` for a step over the network.
    """

    start: float
    step: float
    network: float
    source: str


@dataclass(frozen=True)
class Hardware:
    """A chip and its interconnect.

    `kinds` are JAX's names for its devices, `devices` is how many of them one chip has. A TPU has
    links along `dims` physical dimensions, with wraparound along a dimension as long as the
    `pod`'s, or if every dimension is a multiple of 4 (`wraps` is `cubes`). A GPU (`dims` is 0)
    reaches the others of its NVLink domain, `node` GPUs of `hosts` hosts, over a switch, and others
    at `network` bytes per second, as a TPU reaches those of other slices.
    """

    name: str
    short: str
    kinds: tuple[str, ...]
    flops: float | None
    memory: int | None
    memory_bandwidth: float | None
    link: float | None
    source: str
    dims: int = 0
    devices: int = 1
    wraps: Wraps = "pod"
    pod: tuple[int, ...] = ()
    node: int = 8
    network: float | None = None
    hosts: int = 1
    latency: Latency | None = None


_OF_LINKS = Latency(
    0.0, 1e-6, 10e-6,
    "1 us per hop within a slice is from the book; 10 us per step between slices is an assumption: "
    "no public figure is known",
)  # fmt: skip
_NCCL = Latency(
    6.6e-6, 0.6e-6, 2.7e-6,
    "latencies are those of NCCL's model of a ring for small messages (src/graph/tuning.cc, LL)",
)  # fmt: skip
_DCN = "data-center network of a pod over its chips"
_BOOK = '"How to Scale Your Model", chapter 2 (ICI) and 3 (1 us a hop)'
_CLOUD = "the Cloud TPU documentation's page on {} (flops, HBM)"
_HOPS = _BOOK.replace("chapter 2 (ICI) and 3", "chapter 3")
_PAPER = '"A Domain-Specific Supercomputer for Training Deep Neural Networks", CACM 2020'
# A v3 pod has 340 TB/s in total over 1024 chips with 4 links: 83 GB/s per link, as in the paper.
_V3 = f"{_CLOUD.format('v3')}; {_PAPER} (ICI); {_HOPS}"
_MEMORY = "XLA's target configurations (memory)"
_DATASHEET = (
    "NVIDIA's {} datasheet (flops without sparsity, HBM, NVLink), {} datasheet (network), "
    f"{_MEMORY}"
)
_RACK = (
    "NVIDIA's {} NVL72 datasheet, a 72nd of it (flops without sparsity, HBM, NVLink, network), "
    f"{_MEMORY}"
)


def _cloud(page: str) -> str:
    return f"{_CLOUD.format(page)}; {_BOOK}"


HARDWARE: tuple[Hardware, ...] = (
    Hardware(
        "TPU v2", "v2", ("TPU v2",), 46e12, 16 * GiB, 700e9, 62e9, f"{_PAPER}; {_HOPS}",
        dims=2, devices=2, pod=(16, 16), latency=_OF_LINKS,
    ),
    Hardware(
        "TPU v3", "v3", ("TPU v3",), 123e12, 32 * GiB, 900e9, 82e9, _V3,
        dims=2, devices=2, pod=(32, 32), latency=_OF_LINKS,
    ),
    Hardware(
        "TPU v4", "v4", ("TPU v4",), 275e12, 32 * GiB, 1200e9, 45e9, _cloud("v4"),
        dims=3, wraps="cubes", pod=(16, 16, 16), latency=_OF_LINKS,
    ),
    Hardware(
        "TPU v5e", "v5e", ("TPU v5 lite", "TPU v5e"), 197e12, 16 * GiB, 819e9, 45e9,
        f"{_cloud('v5e')}; {_DCN}", dims=2, pod=(16, 16), latency=_OF_LINKS, network=3.125e9,
    ),
    Hardware(
        "TPU v5p", "v5p", ("TPU v5", "TPU v5p"), 459e12, 95 * GiB, 2765e9, 90e9,
        f"{_cloud('v5p')}; {_DCN}", dims=3, wraps="cubes", pod=(16, 20, 28), latency=_OF_LINKS,
        network=6.25e9,
    ),
    Hardware(
        "TPU v6e", "v6e", ("TPU v6 lite", "TPU v6e"), 918e12, 32 * GiB, 1638e9, 90e9,
        f"{_cloud('v6e')}; {_DCN}", dims=2, pod=(16, 16), latency=_OF_LINKS, network=12.5e9,
    ),
    Hardware(
        "TPU7x", "tpu7x", ("TPU7x", "TPU v7x"), 2307e12, 192 * GiB, 7380e9, 100e9,
        "the Cloud TPU documentation's page on TPU7x (flops, HBM, ICI of a chip over its 6 links);"
        ' "How to Scale Your Model", chapter 3 (1 us a hop)',
        dims=3, devices=2, wraps="cubes", latency=_OF_LINKS,
    ),
    Hardware(
        "NVIDIA A100 40GB SXM", "a100-40gb", ("NVIDIA A100-SXM4-40GB",),
        312e12, 42_331_013_120, 1555e9, 300e9, _DATASHEET.format("A100", "DGX A100"),
        network=25e9, latency=_NCCL,
    ),
    Hardware(
        "NVIDIA A100 80GB SXM", "a100", ("NVIDIA A100-SXM4-80GB",),
        312e12, 85_100_068_864, 2039e9, 300e9, _DATASHEET.format("A100", "DGX A100"),
        network=25e9, latency=_NCCL,
    ),
    Hardware(
        "NVIDIA H100 SXM", "h100", ("NVIDIA H100 80GB HBM3",),
        989e12, 84_942_979_072, 3350e9, 450e9, _DATASHEET.format("H100", "DGX H100"),
        network=50e9, latency=_NCCL,
    ),
    Hardware(
        "NVIDIA H200 SXM", "h200", ("NVIDIA H200",),
        989e12, 151_397_597_184, 4800e9, 450e9, _DATASHEET.format("H200", "DGX H200"),
        network=50e9, latency=_NCCL,
    ),
    Hardware(
        "NVIDIA B200", "b200", ("NVIDIA B200",),
        2250e12, 191_514_411_008, 8000e9, 900e9, _DATASHEET.format("HGX B200", "DGX B200"),
        network=50e9, latency=_NCCL,
    ),
    Hardware(
        "NVIDIA GB200", "gb200", ("NVIDIA GB200",),
        2500e12, 197_897_748_480, 8000e9, 900e9, _RACK.format("GB200"), node=72, hosts=18,
        network=50e9, latency=_NCCL,
    ),
    Hardware(
        "NVIDIA B300", "b300", ("NVIDIA B300",),
        2250e12, 297_021_865_984, 8000e9, 900e9, _DATASHEET.format("HGX B300", "DGX B300"),
        network=100e9, latency=_NCCL,
    ),
    Hardware(
        "NVIDIA GB300", "gb300", ("NVIDIA GB300",),
        2500e12, 297_021_079_552, 8000e9, 900e9, _RACK.format("GB300"), node=72, hosts=18,
        network=100e9, latency=_NCCL,
    ),
)  # fmt: skip


def find_hardware(name: str) -> Hardware | None:
    """Return the hardware with a JAX device kind, or with a short name such as `h100`.

    >>> find_hardware("TPU v5 lite").name, find_hardware("H100").name, find_hardware("cpu")
    ('TPU v5e', 'NVIDIA H100 SXM', None)
    """
    wanted = name.strip().lower()
    for hardware in HARDWARE:
        if wanted in (hardware.short, hardware.name.lower(), *map(str.lower, hardware.kinds)):
            return hardware
    return None
