"""Plans: layouts that were compiled, with what each holds, sends and takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, overload

from shardnb.report import shown
from shardnb.report.cost import Cost
from shardnb.report.model import Mesh, Report, Spec

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Tree = Any


@dataclass(frozen=True)
class Plan:
    """A layout that was compiled: a spec for each pattern of arrays.

    `memory` and `wire_bytes` are per device: held at once, and sent per call. `collectives` counts
    by kind and axes, and `untold` those in loops whose trips are unknown. `flops` and `cost` are
    None if they are unknown.
    """

    mesh: Mesh
    specs: Mapping[str, Spec]
    memory: int
    wire_bytes: int
    collectives: Mapping[str, int] = field(default_factory=dict)
    untold: int = 0
    flops: float | None = None
    cost: Cost | None = None

    @property
    def seconds(self) -> float | None:
        """Seconds to compute and then to communicate, by formulas, or None without hardware."""
        if self.cost is None:
            return None
        return self.cost.communication_seconds + (self.cost.compute_seconds or 0.0)

    @property
    def value(self) -> float:
        """What plans are compared by besides memory: seconds, else bytes sent."""
        return float(self.wire_bytes) if self.seconds is None else self.seconds


class Found(Protocol):
    """What a search keeps so that a plan can be explained and written later."""

    def explain(self, plan: Plan) -> Report:
        """Return a plan's report."""

    def trees(self, plan: Plan) -> dict[str, Tree]:
        """Return a plan's specs by argument."""

    def written(self, plan: Plan) -> str:
        """Return a plan's code."""


@dataclass(frozen=True)
class Plans(Sequence[Plan]):
    """The plans that no other plan beats in both memory and traffic (or time), by memory.

    `limit` is the memory allowed; `least` is the plan that holds least, allowed or not. `looked`
    and `compiled` count the layouts that were estimated and compiled.
    """

    title: str
    plans: tuple[Plan, ...]
    least: Plan | None = None
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
        """The plan that sends least (with hardware: takes least) within the memory allowed.

        Raises `ValueError` if no plan fits.
        """
        if not self.plans:
            raise ValueError(self.notes[-1] if self.notes else "no plan was found")
        return min(self.plans, key=lambda plan: (plan.value, plan.memory))

    def report(self, plan: int | Plan) -> Report:
        """Explain a plan: the full report of its program."""
        return self._program.explain(self._of(plan))

    def in_specs(self, plan: int | Plan) -> dict[str, Tree]:
        """Return a plan's specs by argument, as `shardnb.explain` takes them."""
        return self._program.trees(self._of(plan))

    def code(self, plan: int | Plan) -> str:
        """Write the mesh and the shardings of a plan as Python to paste."""
        return self._program.written(self._of(plan))

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
