"""Edits of a program: how a user would write one, and the lowered program that it makes."""

from __future__ import annotations

import contextlib
import io
import itertools
import random
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Protocol

import jax
import numpy as np
from jax.extend.core import jaxpr_as_fun
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from shardnb.compiler import Program
from shardnb.compiler.placement import named_leaves
from shardnb.fixes import hook
from shardnb.fixes.marks import Place
from shardnb.fixes.units import Unit
from shardnb.report.model import Location, Spec
from shardnb.report.spec import spec_text

Tree = Any
_attempts = itertools.count(1)


class NotTried(Exception):
    """An edit that did not take part in the program that was traced with it."""


class Edit(Protocol):
    """A change of a program."""

    @property
    def text(self) -> str:
        """The edit as the user would write it."""

    @property
    def location(self) -> Location | None:
        """Where the user would write it, if that is a line of a source."""

    def lowered(self, program: Program) -> Any:
        """Give JAX's lowered stage of the changed program; raises what JAX raises."""


def partition_spec(spec: Spec) -> PartitionSpec:
    """Give a spec as JAX has it."""
    entries = [axes[0] if len(axes) == 1 else axes or None for axes in spec]
    while entries and entries[-1] is None:
        entries.pop()
    return PartitionSpec(*entries)


@dataclass(frozen=True)
class InputEdit:
    """Other specs of some inputs, each for one array or for a family of arrays of one kind.

    `specs` holds (what the user would call it, the names of its arrays, the spec).
    """

    specs: tuple[tuple[str, tuple[str, ...], Spec], ...]
    location: Location | None = None

    @property
    def text(self) -> str:
        """Give the specs as `%%shard` takes them."""
        return " ".join(f"{name}={spec_text(spec)}" for name, _, spec in self.specs)

    def lowered(self, program: Program) -> Any:
        """Lower with the other specs; in Auto mode no Python of the user's runs again."""
        changed = {name: spec for _, names, spec in self.specs for name in names}
        recipe = replace(program.recipe, in_specs=_with_specs(program, changed))
        if _retrace(program):
            with quiet_retrace():
                return recipe.lower(recipe.trace())
        recipe = replace(recipe, fn=_replay(program))
        return recipe.lower(recipe.trace())


@dataclass(frozen=True)
class OutputEdit:
    """Another spec of the whole result: `None` leaves it to the compiler."""

    spec: Spec | None
    text: str
    location: Location | None = None

    def lowered(self, program: Program) -> Any:
        """Lower with the other spec; no Python of the user's runs again."""
        specs = None if self.spec is None else partition_spec(self.spec)
        recipe = replace(program.recipe, out_specs=specs, fn=_replay(program))
        return recipe.lower(recipe.trace())


@dataclass(frozen=True)
class ConstraintEdit:
    """A constraint on a named value, behind the line that makes it."""

    unit: Unit
    number: int
    place: Place
    spec: Spec
    explicit: bool
    location: Location | None = None

    @property
    def text(self) -> str:
        """Give the statement, and where it goes."""
        call = "jax.sharding.reshard" if self.explicit else "jax.lax.with_sharding_constraint"
        made = f"{call}({self.place.name}, {spec_text(self.spec)})"
        if self.place.kind == "returned":
            return f"line {self.place.line}: return {made}"
        return f"after line {self.place.last_line}: {self.place.name} = {made}"

    def lowered(self, program: Program) -> Any:
        """Trace the edited text and lower it; raises `NotTried` where its line did not run."""
        ran: list[int] = []
        constrain = jax.sharding.reshard if self.explicit else jax.lax.with_sharding_constraint

        def handle(number: int, value: Any) -> Any:
            if number != self.number or not isinstance(value, jax.core.Tracer):
                return value
            ran.append(number)
            return constrain(value, partition_spec(self.spec))

        recipe = program.recipe
        with quiet_retrace(), hook.handling(handle):
            with self.unit.with_call(recipe.fn, self.number) as fn:
                traced = replace(recipe, fn=fn).trace()
        if not ran:
            raise NotTried(self.text)
        return recipe.lower(traced)


def _retrace(program: Program) -> bool:
    """Whether another input spec changes what is traced."""
    return bool(program.manual) or AxisType.Explicit in program.mesh.axis_types


def _with_specs(program: Program, changed: dict[str, Spec]) -> dict[str, Tree]:
    names = [name for name, _ in named_leaves(program.args)]
    leaves, structure = jax.tree_util.tree_flatten(program.shardings)
    # tree_flatten sorts the arguments' names, and so the names of their arrays.
    names = [name for key in sorted(program.args) for name, _ in _leaves_of(program, key)]
    placed = [
        NamedSharding(program.mesh, partition_spec(changed[name])) if name in changed else leaf
        for name, leaf in zip(names, leaves, strict=True)
    ]
    specs: dict[str, Tree] = jax.tree_util.tree_unflatten(structure, placed)
    return specs


def _leaves_of(program: Program, key: str) -> list[tuple[str, Any]]:
    return named_leaves({key: program.args[key]})


def _replay(program: Program) -> Callable[..., Tree]:
    """Give the traced program as a function, so that nothing of the user's runs again."""
    run = jaxpr_as_fun(program.traced.jaxpr)
    result = jax.tree_util.tree_structure(program.lowered.out_info)

    def call(*args: Tree) -> Tree:
        return jax.tree_util.tree_unflatten(result, run(*jax.tree_util.tree_leaves(args)))

    call.__name__ = getattr(program.recipe.fn, "__name__", "program")
    return call


@cache
def _attempt() -> Any:
    return jax.make_user_context(0)


@contextmanager
def quiet_retrace() -> Iterator[None]:
    """Trace the user's Python once more, unheard and without meeting JAX's caches.

    What it prints is dropped, Python's and NumPy's random numbers go on where they were, and
    JAX traces inner `jit` functions anew without touching what it has cached for the user.
    """
    numbers, state = random.getstate(), np.random.get_state()  # noqa: NPY002 - the user's own
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
            stack.enter_context(contextlib.redirect_stderr(io.StringIO()))
            stack.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore")
            stack.enter_context(_attempt()(next(_attempts)))
            yield
    finally:
        random.setstate(numbers)
        np.random.set_state(state)  # noqa: NPY002
