"""A compile in three steps: what JAX gives to XLA, XLA's part, and what JAX makes of the result.

The first and the last take milliseconds; XLA's part may take minutes, or end the process, so that
another process can do it (see `shardnb.worker`).
"""

from __future__ import annotations

import copy
import io
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import Any

import jax

from shardnb.jax_compat import mlir, parts
from shardnb.jax_compat.compilation_cache import without_compilation_cache
from shardnb.jax_compat.devices import Topology, emulated_devices, topology_of
from shardnb.jax_compat.parts import NotAvailable
from shardnb.jax_compat.xla import hlo_text, optimized_modules

CPU = "cpu"
# What a module in bytecode calls where a function of the process takes part in its partitioning.
_CUSTOM_PARTITIONING = b"CustomSPMDPartitioning"
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


@dataclass(frozen=True)
class Split:
    """A lowered program, apart from XLA's part of its compile."""

    lowered: Any
    options: Mapping[str, Any]
    compilation: Compilation

    def compiled(self, description: Description) -> Any:
        """Return JAX's compiled stage; one that can run where the executable was serialized."""

        def loaded(client: Any, _: Any, **given: Any) -> Any:
            if not description.serialized:
                return _Described(description)
            callbacks = given.get("host_callbacks", ())
            return client.deserialize_executable(
                description.serialized,
                given["executable_devices"],
                given["compile_options"],
                *([callbacks] if callbacks else []),
            )

        return _compile(self.lowered, self.options, loaded)


class Inseparable(Exception):
    """Another process cannot compile a program; the message says why."""


class _Captured(Exception):
    """Ends a compile of JAX's or XLA's once what is wanted of it is known."""


def split(lowered: Any, options: Mapping[str, Any]) -> Split:
    """Split a lowered program from XLA's part of its compile, with these options of XLA's.

    Raises `Inseparable` where only this process can compile it: for attached accelerators, where
    Python functions of the user's take part, and where JAX has changed.
    """
    caught: list[Compilation] = []

    def catch(_: Any, module: Any, **given: Any) -> Any:
        caught.append(_compilation(module, given["compile_options"], given["executable_devices"]))
        raise _Captured

    try:
        _compile(lowered, options, catch)
    except _Captured:
        return Split(lowered, options, caught[0])
    except NotAvailable as error:
        raise Inseparable(str(error)) from error
    raise Inseparable("JAX compiles in another way than it did")


def _compilation(module: Any, options: Any, devices: Sequence[Any]) -> Compilation:
    topology = _topology_of(devices)
    code = io.BytesIO()
    module.operation.write_bytecode(code)
    if _CUSTOM_PARTITIONING in code.getvalue():
        raise Inseparable("custom_partitioning calls functions of this process")
    ids = tuple(device.id for device in devices)
    return Compilation(code.getvalue(), options.SerializeAsString(), ids, topology)


def _topology_of(devices: Sequence[Any]) -> Topology | None:
    """Return the topology of devices, None for CPU devices that another process can emulate."""
    first = devices[0]
    if first.platform == CPU and all(device.process_index == 0 for device in devices):
        return None
    topology = topology_of(first)
    if topology is None:
        raise Inseparable(f"{first.device_kind} devices are attached to this process")
    return topology


class _Client:
    """A client of JAX's whose compile is a function of ours."""

    def __init__(self, client: Any, compile_by: Callable[..., Any]) -> None:
        self._client = client
        self._compile = compile_by

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def compile_and_load(self, module: Any, **given: Any) -> Any:
        return self._compile(self._client, module, **given)


def _compile(lowered: Any, options: Mapping[str, Any], compile_by: Callable[..., Any]) -> Any:
    """Compile as JAX does, with another function in the place of XLA's; `lowered` stays as it is.

    JAX's persistent cache takes no part.
    """
    lowering = copy.copy(parts.LOWERING.get(lowered))
    arguments = parts.COMPILE_CLIENT.get(lowering)
    if "backend" not in arguments:
        raise parts.COMPILE_CLIENT.gone()
    lowering.compile_args = {**arguments, "backend": _Client(arguments["backend"], compile_by)}
    lowering._executable = None
    copied = copy.copy(lowered)
    copied._lowering = lowering
    with without_compilation_cache():
        return copied.compile(compiler_options=dict(options))


class _Described:
    """Stands for XLA's executable where only what is known of it is needed."""

    def __init__(self, description: Description) -> None:
        self._description = description

    def get_hlo_text(self) -> str:
        return self._description.text

    def get_compiled_memory_stats(self) -> Any:
        memory = self._description.memory
        return None if memory is None else SimpleNamespace(**memory)

    def cost_analysis(self) -> Mapping[str, float] | None:
        return self._description.cost

    def get_parameter_shardings(self) -> Sequence[Any] | None:
        return self._description.inputs

    def get_output_shardings(self) -> Sequence[Any] | None:
        return self._description.outputs

    def get_output_memory_kinds(self) -> Any:
        kinds = self._description.output_memory_kinds
        if kinds is None:
            raise NotImplementedError
        return kinds


# In the other process


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
        raise _Captured

    with ExitStack() as stack:
        with suppress(NotAvailable):  # else the compile goes on to its end
            stack.enter_context(optimized_modules("shardnb: the optimized program", catch))
        try:
            return Description(text_of(_executable(compilation)))
        # XLA raises an error of its own for `_Captured`; the program was made by then.
        except Exception:
            if not protos:
                raise
    return Description(hlo_text(protos[0]))


def _executable(compilation: Compilation) -> Any:
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
    return {name: getattr(stats, name) for name in _MEMORY}


def _known[T](read: Callable[[], T]) -> T | None:
    """Read what not every backend says; JAX itself takes an error there for "unknown"."""
    try:
        return read()
    except (jax.errors.JaxRuntimeError, NotImplementedError, TypeError):
        return None
