"""Plans: layouts that were compiled, with what each holds, sends and takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, overload

from shardnb.report import shown
from shardnb.report.cost import Cost
from shardnb.report.model import Mesh, Report, Spec
from shardnb.terms.recipes import Recipe

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Tree = Any
MOST_WORK = 1.2
"""Work of a device, relative to the plan with the least, above which a plan is never the best."""

Layout = Mapping[str, Recipe]
"""The recipe that each mesh axis is for."""


@dataclass(frozen=True)
class Plan:
    """A layout that was compiled: a spec for each pattern of arrays.

    `memory` and `wire_bytes` are per device: held at once, and sent per call. `collectives` counts
    by kind and axes, and `untold` those in loops whose trips are unknown. `flops` and `cost` are
    None if they are unknown. `layout` has the recipe of each mesh axis that is nearest, and
    `otherwise` the patterns that have other specs in it. With `activations`, constraints in the
    model shard what it carries from layer to layer so.
    """

    mesh: Mesh
    specs: Mapping[str, Spec]
    memory: int
    wire_bytes: int
    collectives: Mapping[str, int] = field(default_factory=dict)
    untold: int = 0
    flops: float | None = None
    cost: Cost | None = None
    layout: Layout = field(default_factory=dict)
    otherwise: tuple[str, ...] = ()
    activations: Spec | None = None

    @property
    def seconds(self) -> float | None:
        """Seconds to compute and then to communicate, by formulas, or None without hardware."""
        return None if self.cost is None else self.cost.step_seconds

    @property
    def value(self) -> float:
        """What plans are compared by besides memory: seconds, else bytes sent."""
        return float(self.wire_bytes) if self.seconds is None else self.seconds

    @property
    def is_recipe(self) -> bool:
        """Whether it is recipes alone, without other specs and constraints."""
        return bool(self.layout) and not self.otherwise and self.activations is None

    @property
    def fits(self) -> bool | None:
        """Whether it fits into the memory of the hardware, None where that is not known."""
        size = self.cost.memory_size if self.cost else None
        return None if size is None else self.memory <= size


class Code(Protocol):
    """A plan as Python: `str` of it, and what it changes in the model."""

    @property
    def diff(self) -> str:
        """The constraints as a unified diff of the user's texts."""


class Found(Protocol):
    """What a search keeps so that a plan can be explained and written later."""

    def explain(self, plan: Plan) -> Report:
        """Return a plan's report."""

    def trees(self, plan: Plan) -> dict[str, Tree]:
        """Return a plan's specs by argument."""

    def results(self, plan: Plan) -> Tree:
        """Return a plan's specs of the results."""

    def code(self, plan: Plan) -> Code:
        """Return a plan's code."""


@dataclass(frozen=True)
class Plans(Sequence[Plan]):
    """The plans that no other plan beats in both memory and time, the best first.

    `limit` is the memory allowed; `least` is the plan that holds least, allowed or not. `beaten`
    are the recipes that were compiled and are not among the plans. `looked` and `compiled` count
    the layouts that were estimated and compiled, `recipes` the products of recipes among the
    former. `least_work` are the operations of a device where it does least; a plan with more than
    `MOST_WORK` times as many comes after all others.
    """

    title: str
    plans: tuple[Plan, ...]
    least: Plan | None = None
    beaten: tuple[Plan, ...] = ()
    least_work: float | None = None
    recipes: int = 0
    limit: int | None = None
    looked: int = 0
    compiled: int = 0
    notes: tuple[str, ...] = ()
    _found: Found | None = field(default=None, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.plans)

    @overload
    def __getitem__(self, index: int) -> Plan: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Plan, ...]: ...

    def __getitem__(self, index: int | slice) -> Plan | tuple[Plan, ...]:
        return self.plans[index]

    def __iter__(self) -> Iterator[Plan]:
        return iter(self.plans)

    @property
    def best(self) -> Plan:
        """The fastest plan within the memory allowed in which no device repeats another's work.

        Raises `ValueError` if no plan fits.
        """
        if not self.plans:
            raise ValueError(self.notes[-1] if self.notes else "no plan was found")
        return self.plans[0]

    def work(self, plan: int | Plan) -> float | None:
        """Return a plan's operations relative to the plan with the least, None if not known."""
        flops = self._of(plan).flops
        return flops / self.least_work if flops and self.least_work else None

    def report(self, plan: int | Plan) -> Report:
        """Explain a plan: the full report of its program."""
        return self._program.explain(self._of(plan))

    def in_specs(self, plan: int | Plan) -> dict[str, Tree]:
        """Return a plan's specs by argument, as `shardnb.explain` takes them."""
        return self._program.trees(self._of(plan))

    def out_specs(self, plan: int | Plan) -> Tree:
        """Return a plan's specs of the results, None where the compiler chooses."""
        return self._program.results(self._of(plan))

    def code(self, plan: int | Plan) -> str:
        """Write a plan as Python to commit: the mesh, the rules, and the call of `jax.jit`."""
        return str(self._program.code(self._of(plan)))

    def diff(self, plan: int | Plan) -> str:
        """Return the constraints of a plan as a unified diff of the model, "" where it has none."""
        return self._program.code(self._of(plan)).diff

    @property
    def _program(self) -> Found:
        if self._found is None:
            raise ValueError("these plans do not hold their program")
        return self._found

    def _of(self, plan: int | Plan) -> Plan:
        return self.plans[plan] if isinstance(plan, int) else plan

    def figure(self) -> Figure:
        """Draw memory against bytes sent, or seconds."""
        figure: Figure = shown.by("plans figure", self)
        return figure

    def __str__(self) -> str:
        """Return the plans as a table for a terminal."""
        text: str = shown.by("plans text", self)
        return text

    def _repr_mimebundle_(self, **_selection: Any) -> dict[str, Any]:
        return {"text/plain": str(self), "text/html": shown.by("plans html", self)}
