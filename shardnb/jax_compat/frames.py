"""Frames of JAX: the stack that an equation keeps, and the locals of JAX's functions that raise."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

import jax

from shardnb.jax_compat import parts
from shardnb.jax_compat.jaxprs import is_primitive
from shardnb.jax_compat.parts import NotAvailable

_JAX = os.path.dirname(jax.__file__) + os.sep  # noqa: PTH120 - compared with file names


def is_jaxs_own(file: str) -> bool:
    """Whether a file belongs to JAX."""
    return file.startswith(_JAX)


def raw_frames(equation: Any) -> list[tuple[CodeType, int]]:
    """Return the code objects and instruction offsets of the stack that wrote an equation.

    Innermost first. Raises `NotAvailable`; `lines` is then what is left.
    """
    traceback = parts.TRACEBACK.get(equation)
    if traceback is None:
        return []
    return list(zip(*parts.RAW_FRAMES.get(traceback)(), strict=True))


def lines(equation: Any) -> list[tuple[str, str, int]]:
    """Return file, function and line of the stack that wrote an equation, innermost first.

    None where JAX does not show it.
    """
    try:
        traceback = parts.TRACEBACK.get(equation)
        frames = parts.FRAMES.get(traceback) if traceback is not None else ()
    except NotAvailable:
        return []
    return [(frame.file_name, frame.function_name, frame.line_num) for frame in frames]


@dataclass(frozen=True)
class Locals:
    """Names that a function of JAX's has where it raises, and the JAX versions it was seen in.

    Where JAX has other names, or has removed its frames out of the traceback, nothing is found: an
    error is then explained by its text alone.
    """

    function: str
    names: tuple[str, ...]
    seen: tuple[str, ...]

    def find(self, frames: Iterable[FrameType]) -> dict[str, Any] | None:
        """Return the locals of the first frame of JAX's that has all of these names."""
        jaxs = (frame for frame in frames if is_jaxs_own(frame.f_code.co_filename))
        local_names = (frame.f_locals for frame in jaxs)
        return next((names for names in local_names if set(self.names) <= set(names)), None)


_SEEN = ("0.11.0", "0.12.0.1")
ARRAY_AND_SHARDING = Locals("_common_shard_shape", ("self", "global_shape"), _SEEN)
SHARD_MAP_ARGUMENTS = Locals("_shard_map", ("in_specs_flat", "dyn_args", "mesh"), _SEEN)
SHARD_MAP_BODY = Locals(
    "_shard_map_staging", ("jaxpr", "in_specs", "out_specs", "in_avals", "mesh"), _SEEN
)
MESH_AXIS_NAMES = Locals("make_mesh", ("axis_names",), _SEEN)
PRIMITIVE_PARAMETERS = ("params", "kwargs")
PRIMITIVE_OPERANDS = ("avals", "args", "tracers", "in_avals")


def bound_primitives(
    frames: Iterable[FrameType],
) -> Iterable[tuple[Any, Sequence[Any], dict[str, Any]]]:
    """Yield each primitive in the frames' locals that stands beside operands and parameters."""
    for frame in frames:
        names = frame.f_locals
        primitive = next((value for value in names.values() if is_primitive(value)), None)
        params = next((names[key] for key in PRIMITIVE_PARAMETERS if key in names), None)
        if primitive is None or not isinstance(params, dict):
            continue
        for key in PRIMITIVE_OPERANDS:
            operands = names.get(key)
            if isinstance(operands, list | tuple) and operands:
                yield primitive, operands, params
