"""Edits of a program: how a user would write one, and the lowered program that it makes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Protocol

import jax
from jax.sharding import AxisType, NamedSharding

from shardnb.bugs import Inconclusive, refusable
from shardnb.compiler import Program, Request
from shardnb.compiler.placement import is_spec, named_leaves, partition_spec
from shardnb.report.model import Location, Spec
from shardnb.report.spec import spec_text
from shardnb.rewrite import hook
from shardnb.rewrite.retrace import quiet_retrace
from shardnb.rewrite.rewrite_points import RewritePoint, hooked
from shardnb.rewrite.source_units import SourceUnit

Tree = Any


class NotTried(Inconclusive):
    """An edit that did not take part in the program that was traced with it."""


class Edit(Protocol):
    """A change of a program."""

    @property
    def text(self) -> str:
        """The edit as the user would write it."""

    @property
    def location(self) -> Location | None:
        """Where the user would write it, if that is a line of a source."""

    @property
    def size(self) -> int:
        """How many things the user would have to change."""

    def lowered(self, program: Program) -> Any:
        """Return JAX's lowered stage of the changed program; `Inconclusive` where it is refused."""


@dataclass(frozen=True)
class InputEdit:
    """Other specs of some inputs, each for one array or for a family of arrays of one kind.

    `specs` holds (what the user would call it, the names of its arrays, the spec).
    """

    specs: tuple[tuple[str, tuple[str, ...], Spec], ...]
    location: Location | None = None

    @property
    def text(self) -> str:
        """Return the specs as `%%shard` takes them."""
        return " ".join(f"{name}={spec_text(spec)}" for name, _, spec in self.specs)

    @property
    def size(self) -> int:
        """Return the number of specs."""
        return len(self.specs)

    def lowered(self, program: Program) -> Any:
        """Lower with the other specs; in Auto mode no Python of the user's runs again."""
        changed = {name: spec for _, names, spec in self.specs for name in names}
        return with_specs(program, changed, {})


@dataclass(frozen=True)
class OutputEdit:
    """Another spec of one result, by its number among the results."""

    number: int
    name: str
    spec: Spec
    location: Location | None = None
    size: ClassVar[int] = 1

    @property
    def text(self) -> str:
        """Return the spec as `%%shard` takes it."""
        return f"--out {self.name}={spec_text(self.spec)}"

    def lowered(self, program: Program) -> Any:
        """Lower with the other spec; no Python of the user's runs again."""
        return with_specs(program, {}, {self.number: self.spec})


@dataclass(frozen=True)
class SpecsEdit:
    """Other specs of inputs, by their names, and of results, by their numbers, at once."""

    text: str
    inputs: Mapping[str, Spec]
    results: Mapping[int, Spec]
    location: Location | None = None

    @property
    def size(self) -> int:
        """Return the number of specs."""
        return len(self.inputs) + len(self.results)

    def lowered(self, program: Program) -> Any:
        """Lower with the other specs; in Auto mode no Python of the user's runs again."""
        return with_specs(program, self.inputs, self.results)


def with_specs(program: Program, inputs: Mapping[str, Spec], results: Mapping[int, Spec]) -> Any:
    """Lower with other specs; in Auto mode no Python of the user's runs again."""
    request = respecified(program, inputs, results)
    # Without types that hold shardings, other input specs change nothing in what is traced.
    if inputs and (program.manual or AxisType.Explicit in program.mesh.axis_types):
        with quiet_retrace():
            return lowered(request)
    return lowered(_replayed(request, program))


def respecified(
    program: Program, inputs: Mapping[str, Spec], results: Mapping[int, Spec]
) -> Request:
    """Return a program's request with other specs of inputs by name, and of results by number."""
    request = program.request
    if inputs:
        request = replace(request, in_specs=_with_specs(program, inputs))
    if results:
        leaves, structure = jax.tree_util.tree_flatten(program.lowered.out_info)
        specs = placement_of_results(program, len(leaves))
        for number, spec in results.items():
            specs[number] = partition_spec(spec)
        request = replace(request, out_specs=jax.tree_util.tree_unflatten(structure, specs))
    return request


@dataclass(frozen=True)
class ArgumentEdit:
    """Constraints on arrays of the arguments, by their names, where the function begins."""

    text: str
    specs: Mapping[str, Spec]
    location: Location | None = None

    @property
    def size(self) -> int:
        """Return the number of constraints."""
        return len(self.specs)

    def lowered(self, program: Program) -> Any:
        """Lower with the constraints; no Python of the user's runs again."""
        request = _replayed(program.request, program)
        names = [name for name, _ in named_leaves(program.request.arguments)]

        def call(*args: Tree) -> Tree:
            leaves, structure = jax.tree_util.tree_flatten(args)
            for at, name in enumerate(names):
                if name in self.specs:
                    spec = partition_spec(self.specs[name])
                    leaves[at] = jax.lax.with_sharding_constraint(leaves[at], spec)
            return request.function(*jax.tree_util.tree_unflatten(structure, leaves))

        call.__name__ = getattr(request.function, "__name__", "program")
        return lowered(replace(request, function=call))


def placement_of_results(program: Program, count: int) -> list[Any]:
    """Return what was stated for each result, None where nothing was."""
    if program.request.out_specs is None:
        return [None] * count
    spread = jax.tree_util.tree_map(
        lambda spec, part: [spec] * len(jax.tree_util.tree_leaves(part)),
        program.request.out_specs,
        program.lowered.out_info,
        is_leaf=is_spec,
    )
    return jax.tree_util.tree_leaves(spread, is_leaf=is_spec)


@dataclass(frozen=True)
class ConstraintEdit:
    """A constraint on a value, after the line that makes it."""

    unit: SourceUnit
    point: RewritePoint
    spec: Spec
    explicit: bool
    location: Location | None = None
    size: ClassVar[int] = 1

    @property
    def text(self) -> str:
        """Return the statement, and where it goes."""
        made = f"{self.function}({self.point.name}, {spec_text(self.spec)})"
        if self.point.kind == "returned":
            return f"line {self.point.line}: return {made}"
        return f"after line {self.point.last_line}: {self.point.name} = {made}"

    @property
    def function(self) -> str:
        """What gives a value its sharding: a reshard in Explicit mode."""
        return "jax.sharding.reshard" if self.explicit else "jax.lax.with_sharding_constraint"

    def lowered(self, program: Program) -> Any:
        """Trace the edited text and lower it; raises `NotTried` where its line did not run."""
        return lowered_with([self], program.request)

    def changed(self, value: Any) -> Any:
        """Return the value with the constraint; what is not traced stays as it is."""
        constrain: Callable[..., Any] = (
            jax.sharding.reshard if self.explicit else jax.lax.with_sharding_constraint
        )
        is_traced = isinstance(value, jax.core.Tracer)
        return constrain(value, partition_spec(self.spec)) if is_traced else value


class PointEdit(Edit, Protocol):
    """An edit at one rewrite point of a text of the user's."""

    @property
    def unit(self) -> SourceUnit:
        """The text."""

    @property
    def point(self) -> RewritePoint:
        """The point in it."""

    def changed(self, *operands: Any) -> Any:
        """Return what the point gives instead: of a value, or of the two sides of a product."""


def lowered_with(edits: Sequence[PointEdit], request: Request) -> Any:
    """Trace a request of a program with edits of its texts, and lower it; raises `NotTried`."""
    traced = traced_with(edits, request)
    with refusable():
        return request.lower(traced)


def traced_with(edits: Sequence[PointEdit], request: Request) -> Any:
    """Trace a request with edits of its texts.

    Raises `NotTried` where a point was not reached, or its value was left as it was.
    """
    numbered = dict(enumerate(edits))
    left = set(numbered)

    def handle(number: int, *operands: Any) -> Any:
        result = numbered[number].changed(*operands)
        if result is not operands[0]:
            left.discard(number)
        return result

    with quiet_retrace(), hook.handling(handle), ExitStack() as stack, refusable():
        function = request.function
        # A cell is another function when it is edited; those of files and of other cells stay.
        units = sorted(
            dict.fromkeys(edit.unit for edit in edits), key=lambda unit: unit.cell is None
        )
        for unit in units:
            here = {e.point.number: n for n, e in numbered.items() if e.unit is unit}
            transform = partial(hooked, only=here, top=unit.cell is not None)
            function = stack.enter_context(unit.edited(function, transform))
        traced = replace(request, function=function).trace()
    if left:
        raise NotTried(", ".join(numbered[number].text for number in sorted(left)))
    return traced


def lowered(request: Request) -> Any:
    """Trace and lower a changed program; `Inconclusive` where it is refused."""
    with refusable():
        return request.lower(request.trace())


def _with_specs(program: Program, changed: Mapping[str, Spec]) -> dict[str, Tree]:
    leaves, structure = jax.tree_util.tree_flatten(program.shardings)
    # tree_flatten sorts the arguments' names, and so the names of their arrays.
    arguments = {key: program.arguments[key] for key in sorted(program.arguments)}
    names = [name for name, _ in named_leaves(arguments)]
    placed = [
        NamedSharding(program.mesh, partition_spec(changed[name])) if name in changed else leaf
        for name, leaf in zip(names, leaves, strict=True)
    ]
    specs: dict[str, Tree] = jax.tree_util.tree_unflatten(structure, placed)
    return specs


def _replayed(request: Request, program: Program) -> Request:
    """Return a request with the traced program, so that nothing of the user's runs again."""
    result = jax.tree_util.tree_structure(program.lowered.out_info)
    return request.replayed(program.traced.jaxpr, result)
