"""Devices beside the notebook's own: emulated ones, and those that one can only compile for."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, Any

from shardnb.jax_compat import parts
from shardnb.jax_compat.parts import NotAvailable

if TYPE_CHECKING:
    import jax

QUIET_LIBTPU = {
    # No TPU is sought on this machine, or asked for over the network.
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-8",
    "TPU_WORKER_HOSTNAMES": "localhost",
    # Other processes may compile as well.
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "true",
    # Nothing is written to descriptor 2 or to files.
    "TPU_STDERR_LOG_LEVEL": "3",
    "TPU_MIN_LOG_LEVEL": "3",
    "TPU_LOG_DIR": "disabled",
}
"""What libtpu reads from the environment as it is loaded, on a machine without a TPU."""


MOST_EMULATED = 2048
"""XLA numbers the CPU devices of a process in 11 bits, and takes one more for another process's."""


@cache
def _clients_devices(count: int) -> Sequence[jax.Device]:
    devices: Sequence[jax.Device] = parts.CPU_CLIENT.call(num_devices=count).devices()
    return devices


def emulated_devices(count: int) -> Sequence[jax.Device]:
    """Return the first devices of a CPU client beside the notebook's own backend.

    A client has three threads a device, and JAX keeps each mesh, and so its client, for ever: the
    number of devices of a client is a power of two, so that there are at most 12
    (test_meshes_of_many_sizes_share_their_clients).
    Without such a client, the CPU devices of the notebook; raises `ValueError` if they are fewer.
    """
    devices: Sequence[jax.Device] = ()
    try:
        devices = _clients_devices(1 << (count - 1).bit_length())
    except NotAvailable as error:
        import jax

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
    import jax

    try:
        return type(parts.CLIENT.get(device)).__name__ == "CompileOnlyPyClient"
    except NotAvailable:
        return device not in jax.devices()


def topology_devices(name: str, slices: int = 1) -> tuple[Any, ...]:
    """Return the compile-only devices of so many slices of a TPU topology.

    Raises `RuntimeError` where libtpu is missing or does not know the topology.
    """
    several = {"num_slices": slices} if slices > 1 else {}
    devices = parts.TOPOLOGIES.call(name, platform="tpu", **several).devices
    return _as_known(TpuTopology(name, slices, os.environ.get(_LIBRARY)), devices)


_LIBRARY = "TPU_LIBRARY_PATH"


@dataclass(frozen=True)
class TpuTopology:
    """Slices of a TPU topology by its name, and libtpu's file (None: the one that JAX finds)."""

    name: str
    slices: int
    library: str | None

    def devices(self) -> tuple[Any, ...]:
        """Return its devices, in a process that has none of them yet."""
        if self.library is not None:
            os.environ[_LIBRARY] = self.library
        return topology_devices(self.name, self.slices)


@dataclass(frozen=True)
class GpuTopology:
    """A GPU cluster: what `gpu_devices` made it from."""

    plugin: str
    target_config: str
    shape: str

    def devices(self) -> tuple[Any, ...]:
        """Return its devices, in a process that has none of them yet."""
        return gpu_devices(self.plugin, self.target_config, self.shape)


Topology = TpuTopology | GpuTopology

_topologies: dict[Topology, tuple[Any, ...]] = {}


def topology_of(device: Any) -> Topology | None:
    """Give what a compile-only device is of, where `topology_devices` or `gpu_devices` gave it."""
    return next((known for known, devices in _topologies.items() if device in devices), None)


def laid_on_torus(devices: Sequence[Any], sizes: Sequence[int]) -> Any:
    """Return devices as an array of shape `sizes`, as `jax.make_mesh` lays them."""
    return parts.DEVICE_MESH.call(tuple(sizes), list(devices), allow_split_physical_axes=True)


def gpu_compiler_version() -> str:
    """Return the version of XLA's GPU compiler that the installed JAX can load: jaxlib's own."""
    return metadata.version("jaxlib")


_plugins: dict[str, Any] = {}


def gpu_devices(plugin: str, target_config: str, shape: str) -> tuple[Any, ...]:
    """Return the compile-only devices of a GPU cluster of `shape`: slices x hosts x GPUs of each.

    `plugin` is the path of XLA's GPU compiler, which is loaded once a process and becomes no
    backend. Raises `RuntimeError` where it refuses the configuration.
    """
    xla_client = parts.GPU_TOPOLOGIES.get()
    if plugin not in _plugins and xla_client.pjrt_plugin_loaded("cuda"):
        # JAX has loaded the compiler itself, for a GPU that is attached.
        options = {"platform": "cuda", "target_config": target_config}
        topology = parts.TOPOLOGIES.call(shape, **options)
        return _as_known(GpuTopology(plugin, target_config, shape), topology.devices)
    if plugin not in _plugins:
        _plugins[plugin] = xla_client.load_pjrt_plugin_dynamically("cuda", plugin)
        if not xla_client.pjrt_plugin_initialized("cuda"):
            xla_client.initialize_pjrt_plugin("cuda")
    topology = xla_client.make_c_api_device_topology(
        _plugins[plugin], "", target_config=target_config, topology=shape
    )
    devices = topology._make_compile_only_devices()
    return _as_known(GpuTopology(plugin, target_config, shape), devices)


def _as_known(topology: Topology, devices: Sequence[Any]) -> tuple[Any, ...]:
    _topologies[topology] = tuple(devices)
    return _topologies[topology]
