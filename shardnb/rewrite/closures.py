"""An array that functions close over, placed otherwise: for one trace it is an argument."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from types import CellType, FunctionType
from typing import Any, ClassVar

import jax
from jax.sharding import NamedSharding

from shardnb.compiler import Program
from shardnb.compiler.placement import partition_spec
from shardnb.jax_compat.process_lock import names_traced
from shardnb.report.model import Location, Spec
from shardnb.report.spec import spec_text
from shardnb.rewrite.program_edits import NotTried, lowered
from shardnb.rewrite.retrace import quiet_retrace

_ARGUMENT = "closed_over"


@dataclass(frozen=True)
class ClosureEdit:
    """Another placement of an array that functions of the user's read from outside.

    `number` is its place among the program's closed-over arrays, `functions` may read it, `in_jit`
    says that these run inside of the user's `jax.jit`.
    """

    number: int
    name: str
    spec: Spec
    functions: tuple[FunctionType, ...]
    in_jit: bool = False
    location: Location | None = None
    size: ClassVar[int] = 1

    @property
    def text(self) -> str:
        """Return the statement that places it, before the function is called.

        Inside of a `jax.jit` it is a constant, and only an argument can be placed.
        """
        if self.in_jit:
            return f"pass {self.name} as an argument, placed as {spec_text(self.spec)}"
        placed = f"NamedSharding(mesh, {spec_text(self.spec)})"
        return f"{self.name} = jax.device_put({self.name}, {placed})"

    def lowered(self, program: Program) -> Any:
        """Trace with the array as an argument of this placement, and lower it.

        Raises `NotTried` where no function reads it from a name.
        """
        request, array = program.request, program.closed_over[self.number]
        shape = jax.ShapeDtypeStruct(array.shape, array.dtype)
        sharding = NamedSharding(request.mesh, partition_spec(self.spec))
        changed = replace(
            request,
            function=self._with_argument(request.function, array),
            arguments={**request.arguments, _ARGUMENT: shape},
            in_specs={**request.in_specs, _ARGUMENT: sharding},
        )
        with quiet_retrace():
            return lowered(changed)

    def _with_argument(self, fn: Callable[..., Any], array: Any) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            *given, value = args
            with rebound(self.functions, array, value) as count:
                if not count:
                    raise NotTried(self.text)
                return fn(*given)

        call.__name__ = getattr(fn, "__name__", "program")
        return call


@contextmanager
def rebound(functions: Sequence[FunctionType], array: Any, value: Any) -> Iterator[int]:
    """Let the names that functions read hold `value` for `array`; gives the number of names."""
    count = 0
    with names_traced(), ExitStack() as stack:
        for function in functions:
            for name in function.__code__.co_names:
                holder = function.__globals__
                if _holds(holder.get(name), array):
                    stack.callback(holder.__setitem__, name, holder[name])
                    holder[name] = _with_value(holder[name], array, value)
                    count += 1
            for cell in function.__closure__ or ():
                count += _rebind_cell(cell, array, value, stack)
        yield count


def _rebind_cell(cell: CellType, array: Any, value: Any, stack: ExitStack) -> bool:
    try:
        held = cell.cell_contents
    except ValueError:  # the cell of a name that has no value yet
        return False
    if not _holds(held, array):
        return False
    stack.callback(setattr, cell, "cell_contents", held)
    cell.cell_contents = _with_value(held, array, value)
    return True


def _holds(tree: Any, array: Any) -> bool:
    return any(leaf is array for leaf in jax.tree_util.tree_leaves(tree))


def _with_value(tree: Any, array: Any, value: Any) -> Any:
    """Return a copy of a pytree with `value` for `array`."""
    return jax.tree_util.tree_map(lambda leaf: value if leaf is array else leaf, tree)
