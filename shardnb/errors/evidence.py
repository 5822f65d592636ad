"""The evidence in a JAX exception: the user's line, the arrays there, the operation.

It is read from the frames of the traceback. No code of the user runs: an expression is tried again
only if everything that it calls is JAX.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import FrameType
from typing import Any, NamedTuple

import jax
from jax.sharding import PartitionSpec

from shardnb.bugs import Inconclusive, refusable
from shardnb.jax_compat.frames import bound_primitives
from shardnb.jax_compat.tracing import full_tracebacks, mesh_context, traced_apart
from shardnb.mesh import Grid
from shardnb.report.model import Location
from shardnb.rewrite.expression import Expression
from shardnb.rewrite.source_expressions import expression_at
from shardnb.sources.positions import Position, of_exception
from shardnb.sources.source_texts import Sources

NAMES = "__shardnb_names__"
"""Attribute of an exception: the names of the cell when it raised, before they were restored."""


@dataclass(frozen=True)
class Operation:
    """The operation that raised, with the types of its operands.

    A primitive, or the user's `expression` if JAX raised before it reached one.
    """

    primitive: Any
    avals: tuple[Any, ...]
    params: dict[str, Any]
    expression: Expression | None = None

    def stating(self, spec: PartitionSpec) -> Callable[..., Any] | None:
        """Return the user's expression with an out_sharding, as a function of its arrays."""
        pieces = self.expression.with_out_sharding(spec) if self.expression else None
        alone = self.expression.alone(pieces) if self.expression and pieces else None
        function = alone.as_function() if alone else None
        return function[1] if function else None

    @property
    def name(self) -> str:
        """The primitive's name."""
        return str(self.primitive.name)

    @property
    def meshes(self) -> list[Any]:
        """The meshes of the operands, each once."""
        meshes = [aval.sharding.mesh for aval in self.avals]
        return list(dict.fromkeys(mesh for mesh in meshes if not mesh.empty))


class _Function(NamedTuple):
    """A function of arrays instead of a primitive."""

    name: str
    bind: Any


@dataclass
class ErrorEvidence:
    """What is known of an exception; `grid` is the mesh that the program was to run on."""

    error: BaseException
    sources: Sources
    grid: Grid | None = None

    @cached_property
    def frames(self) -> list[FrameType]:
        """The frames of the exception and of its causes, innermost first."""
        return [frame for error in _chain(self.error) for frame, _ in _frames(error)]

    @property
    def message(self) -> str:
        """JAX's message."""
        return str(self.error)

    @cached_property
    def classes(self) -> set[str]:
        """The class names of the exception and of its causes."""
        return {kind.__name__ for error in _chain(self.error) for kind in type(error).__mro__}

    @cached_property
    def user(self) -> tuple[FrameType, Position, Location] | None:
        """The innermost frame of the user's code, with its location."""
        for error in (self.error, *_chain(self.error)):
            for frame, position in _frames(error):
                if places := self.sources.locate((position.frame,)):
                    return frame, position, places[0]
        return None

    @cached_property
    def location(self) -> Location | None:
        """The innermost line of the user's code."""
        return self.user[2] if self.user else None

    @cached_property
    def names(self) -> dict[str, Any]:
        """The names visible at the user's line."""
        frame = self.user[0] if self.user else None
        if frame is None:
            return {}
        noted = getattr(self.error, NAMES, {})
        if frame.f_locals is frame.f_globals:
            return dict(noted or frame.f_globals)
        return {**frame.f_globals, **noted, **frame.f_locals}

    @cached_property
    def expression(self) -> Expression | None:
        """The part of the user's line that raised."""
        return expression_at(self.user[1], self.sources, self.names) if self.user else None

    @property
    def named(self) -> Mapping[str, Any]:
        """The values of the parts of the user's expression, by their text."""
        return self.expression.named if self.expression else {}

    @cached_property
    def arrays(self) -> dict[str, Any]:
        """The types of the arrays that the user's expression names, by their text."""
        avals = {text: aval_of(value) for text, value in self.named.items()}
        return {text: aval for text, aval in avals.items() if aval is not None}

    @cached_property
    def placed(self) -> dict[str, jax.Array]:
        """The arrays with devices that the user's expression names, by their text."""
        return {
            text: value
            for text, value in self.named.items()
            if isinstance(value, jax.Array) and not isinstance(value, jax.core.Tracer)
        }

    @cached_property
    def operation(self) -> Operation | None:
        """The primitive that raised, or the user's expression if JAX raised before that.

        JAX removes its own frames from tracebacks, except in a notebook. The user's expression is
        traced again to get them if it calls only JAX.
        """
        return self.bound or self._again()

    @property
    def bound(self) -> Operation | None:
        """The primitive that raised, if the traceback has JAX's own frames."""
        for primitive, operands, params in bound_primitives(self.frames):
            avals = tuple(map(aval_of, operands))
            if None not in avals:
                return Operation(primitive, avals, dict(params))
        return None

    def _again(self) -> Operation | None:
        function = self.expression.as_function() if self.expression else None
        avals = [self.arrays.get(name) for name in function[0]] if function else []
        if function is None or not avals or None in avals:
            return None
        alone = Operation(_Function("it", function[1]), tuple(avals), {}, self.expression)
        mesh = next(iter(alone.meshes), None)
        shapes = [jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=a.sharding) for a in alone.avals]

        def in_their_memories(*arrays: Any) -> Any:
            return function[1](*map(_in_memory_of, arrays, alone.avals))

        try:
            with refusable(), full_tracebacks(), mesh_context(mesh), traced_apart():
                jax.eval_shape(in_their_memories, *shapes)
        except Inconclusive as refusal:
            if refusal.__cause__ is not None:
                return ErrorEvidence(refusal.__cause__, self.sources).bound or alone
        return None


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Return an exception and its causes, the earliest first."""
    chain: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in chain:
        chain.append(current)
        current = current.__cause__ or current.__context__
    yield from reversed(chain)


def _frames(error: BaseException) -> list[tuple[FrameType, Position]]:
    tb, frames = error.__traceback__, []
    while tb is not None:
        frames.append(tb.tb_frame)
        tb = tb.tb_next
    return list(zip(reversed(frames), of_exception(error), strict=True))


def _in_memory_of(array: Any, aval: Any) -> Any:
    """Move an array to host memory if its type is there; `ShapeDtypeStruct` cannot say so."""
    space = jax.memory.Space.Host
    return jax.device_put(array, space) if aval.memory_space == space else array


def aval_of(value: Any) -> Any:
    """Return the type of an array, or a type itself; None for anything else."""
    if isinstance(value, jax.core.ShapedArray):
        return value
    if isinstance(value, jax.Array):
        return jax.typeof(value)
    return None
