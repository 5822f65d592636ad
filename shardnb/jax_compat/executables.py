"""A compile in three steps: what JAX gives to XLA, XLA's part, and what JAX makes of the result.

The first and the last take milliseconds; XLA's part may take minutes, or end the process, so that
another process can do it (see `shardnb.worker`).
"""

from __future__ import annotations

import copy
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from shardnb.jax_compat import parts
from shardnb.jax_compat.compilation import Captured, Compilation, Description
from shardnb.jax_compat.compilation_cache import without_compilation_cache
from shardnb.jax_compat.devices import Topology, topology_of
from shardnb.jax_compat.parts import NotAvailable

CPU = "cpu"
# What a module in bytecode calls where a function of the process takes part in its partitioning.
_CUSTOM_PARTITIONING = b"CustomSPMDPartitioning"


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


def split(lowered: Any, options: Mapping[str, Any]) -> Split:
    """Split a lowered program from XLA's part of its compile, with these options of XLA's.

    Raises `Inseparable` where only this process can compile it: for attached accelerators, where
    Python functions of the user's take part, and where JAX has changed.
    """
    caught: list[Compilation] = []

    def catch(_: Any, module: Any, **given: Any) -> Any:
        caught.append(_compilation(module, given["compile_options"], given["executable_devices"]))
        raise Captured

    try:
        _compile(lowered, options, catch)
    except Captured:
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
