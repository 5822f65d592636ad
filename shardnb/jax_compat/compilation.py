"""XLA's part of a compile: what it is given, what it does, and what it says of the result.

The process that compiles imports this and jaxlib, but not JAX, which takes five times as long: it
is imported only for what it registers with XLA, the targets of custom calls, and for devices that
are not emulated.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from shardnb.jax_compat import mlir, parts
from shardnb.jax_compat.devices import emulated_devices
from shardnb.jax_compat.parts import NotAvailable
from shardnb.jax_compat.xla import hlo_text, optimized_modules

if TYPE_CHECKING:
    from shardnb.jax_compat.devices import Topology

_CUSTOM_CALL = b"custom_call"
_MEMORY = (
    "argument_size_in_bytes",
    "output_size_in_bytes",
    "temp_size_in_bytes",
    "alias_size_in_bytes",
    "generated_code_size_in_bytes",
    "host_argument_size_in_bytes",
    "host_output_size_in_bytes",
    "host_temp_size_in_bytes",
    "host_alias_size_in_bytes",
)
_SINCE_0_12 = ("total_allocation_bytes", "indefinite_allocations")


@dataclass(frozen=True)
class Compilation:
    """What XLA compiles: MLIR bytecode, serialized options, and the ids of the devices.

    `topology` is what the devices are of; None stands for emulated CPU devices.
    """

    module: bytes
    options: bytes
    devices: tuple[int, ...]
    topology: Topology | None = None

    @property
    def has_custom_calls(self) -> bool:
        """Whether it may call what only the user's process has registered."""
        return _CUSTOM_CALL in self.module


@dataclass(frozen=True)
class Description:
    """What XLA says of a program that it compiled, and the executable itself where it may run."""

    text: str
    memory: Mapping[str, int] | None = None
    cost: Mapping[str, float] | None = None
    inputs: Sequence[Any] | None = None
    outputs: Sequence[Any] | None = None
    output_memory_kinds: Sequence[Sequence[str]] | None = None
    serialized: bytes = b""


class Captured(Exception):
    """Ends a compile of JAX's or XLA's once what is wanted of it is known."""


def load_xla() -> None:
    """Load XLA, which the first compile would wait for."""
    with suppress(NotAvailable):
        parts.CPU_CLIENT.get()


def compiled(compilation: Compilation, *, load: bool) -> Description:
    """Compile, and describe the result; with `load` it can be run by the process that asked."""
    executable = _executable(compilation)
    serialized = executable.client.serialize_executable(executable) if load else b""
    return _described(executable, serialized)


def optimized(compilation: Compilation) -> Description:
    """Compile as far as the optimized program's text: no machine code is made for CPU."""
    if compilation.topology:
        return Description(text_of(_executable(compilation)))
    protos: list[bytes] = []

    def catch(proto: bytes) -> bytes | None:
        protos.append(bytes(proto))
        raise Captured

    with ExitStack() as stack:
        with suppress(NotAvailable):  # else the compile goes on to its end
            stack.enter_context(optimized_modules("shardnb: the optimized program", catch))
        try:
            return Description(text_of(_executable(compilation)))
        # XLA raises an error of its own for `Captured`; the program was made by then.
        except Exception:
            if not protos:
                raise
    return Description(hlo_text(protos[0]))


def _executable(compilation: Compilation) -> Any:
    if compilation.has_custom_calls:
        importlib.import_module("jax")  # registers LAPACK's targets
    ids = compilation.devices
    by_id = {device.id: device for device in _devices(compilation.topology, max(ids) + 1)}
    options = parts.COMPILE_OPTIONS.get().ParseFromString(compilation.options)
    chosen = parts.DEVICE_LIST.get()(tuple(by_id[number] for number in ids))
    client, given = chosen[0].client, {"executable_devices": chosen, "compile_options": options}
    if compilation.topology:
        return client.compile(mlir.from_bytecode(compilation.module), **given)
    return client.compile_and_load(compilation.module, **given)


@cache
def _devices(topology: Topology | None, count: int) -> Sequence[Any]:
    """Return the devices of a topology, or `count` emulated ones, in the order of their ids."""
    devices = topology.devices() if topology else emulated_devices(count)
    return sorted(devices, key=lambda device: device.id)


def _described(executable: Any, serialized: bytes) -> Description:
    return Description(
        text=text_of(executable),
        memory=_known(lambda: _memory(executable.get_compiled_memory_stats())),
        cost=_known(lambda: dict(executable.cost_analysis())),
        inputs=_known(executable.get_parameter_shardings),
        outputs=_known(executable.get_output_shardings),
        output_memory_kinds=_known(executable.get_output_memory_kinds),
        serialized=serialized,
    )


def text_of(executable: Any) -> str:
    """Return the optimized program of XLA's executable as text."""
    return "\n\n".join(module.to_string() for module in executable.hlo_modules())


def _memory(stats: Any) -> dict[str, int]:
    known = [*_MEMORY, *(name for name in _SINCE_0_12 if hasattr(stats, name))]
    return {name: getattr(stats, name) for name in known}


def _known[T](read: Callable[[], T]) -> T | None:
    """Read what not every backend says; JAX itself takes an error there for "unknown"."""
    try:
        return read()
    except (RuntimeError, NotImplementedError, TypeError):
        return None
