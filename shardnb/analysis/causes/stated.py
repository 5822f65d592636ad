"""What the user stated on a mesh with Explicit axes, read out of the jaxpr."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shardnb.analysis.causes.edges import Stated

_PARAMETERS = ("out_sharding", "sharding")


def read_stated(jaxpr: Any, *, explicit: bool, results: bool) -> Stated:
    """Find the operations whose `out_sharding` was given, and keep whether results were stated."""
    if not explicit:
        return Stated(results=results)
    return Stated(explicit=True, results=results, operations=frozenset(_operations(jaxpr)))


def _operations(jaxpr: Any) -> Iterator[tuple[str, str, int]]:
    jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
    for equation in jaxpr.eqns:
        if any(equation.params.get(name) is not None for name in _PARAMETERS):
            yield from _lines(equation)
        for value in equation.params.values():
            for inner in value if isinstance(value, (tuple, list)) else (value,):
                if hasattr(inner, "eqns") or hasattr(getattr(inner, "jaxpr", None), "eqns"):
                    yield from _operations(inner)


def _lines(equation: Any) -> Iterator[tuple[str, str, int]]:
    stack = str(equation.source_info.name_stack)
    name = f"{stack}/{equation.primitive.name}" if stack else equation.primitive.name
    traceback = equation.source_info.traceback
    for frame in traceback.frames if traceback is not None else ():
        yield name, frame.file_name, frame.line_num
