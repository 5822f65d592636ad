"""The subject of the explorer: a function and shapes, compiled with other meshes and specs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import jax

from shardnb.compiler import Program, Request, build, placement
from shardnb.compiler.arrays import dtype_name
from shardnb.errors import explain_error
from shardnb.findings import report_of_program
from shardnb.mesh import Grid, make_grid
from shardnb.report import Axis, Report
from shardnb.rewrite.retrace import quiet_retrace
from shardnb.widgets.plan import MeshPlan, in_specs, plan_of

Tree = Any


@dataclass
class Subject:
    """A function of named pytrees of shapes.

    If a function has to be traced again, `traced` does it in the calling thread; `compiled` runs
    none of the user's Python, so any thread may call it.
    """

    request: Request
    first: MeshPlan
    statics: bool = False
    _jaxprs: dict[tuple[Axis, ...], tuple[Any, Any]] = field(default_factory=dict)

    @property
    def shapes(self) -> dict[str, Tree]:
        """The shapes of the arguments by name."""
        return self.request.arguments

    def check(self, plan: MeshPlan) -> None:
        """Check that a plan's specs fit, without its devices; raises `ValueError` if not."""
        sizes = tuple(axis.size for axis in plan.axes)
        mesh: Any = jax.sharding.AbstractMesh(sizes, tuple(axis.name for axis in plan.axes))
        placement.shardings(self.shapes, in_specs(plan, self.shapes), mesh)

    def requested(self, plan: MeshPlan) -> Request:
        """Return the request for a plan's program; raises `ValueError` that names the problem."""
        self.check(plan)
        specs = in_specs(plan, self.shapes)
        apart = self.request.apart or plan != self.first
        return replace(self.request, grid=self.grid_of(plan), in_specs=specs, apart=apart)

    def arrays(self) -> Iterator[tuple[str, str, tuple[int, ...]]]:
        """Return the name, dtype and shape of each array of the arguments."""
        for name, leaf in placement.named_leaves(self.shapes):
            yield name, dtype_name(placement.dtype_of(leaf)), tuple(leaf.shape)

    def grid_of(self, plan: MeshPlan) -> Grid:
        """Return the grid of a plan: the first one if its axes are the same."""
        if plan.axes == self.first.axes:
            return self.request.grid
        return make_grid(plan.mesh, None, self.request.grid.target)

    def traced(self, plan: MeshPlan, *, quiet: bool = True) -> Callable[[], Any]:
        """Return a function that yields JAX's traced stage without running user code again.

        With Auto axes a function is traced once for each mesh; otherwise for each plan. `quiet`
        drops what it prints. Raises what JAX raises.
        """
        request = self.requested(plan)
        if plan.is_auto and plan.axes in self._jaxprs:
            return request.replayed(*self._jaxprs[plan.axes]).trace
        with quiet_retrace() if quiet else nullcontext():
            traced = request.trace()
        if plan.is_auto:
            result = jax.tree_util.tree_structure(traced.out_info)
            self._jaxprs[plan.axes] = (traced.jaxpr, result)
        return lambda: traced

    def replayed(self, plan: MeshPlan) -> Request:
        """Return the request for a plan's program without its specs and without user code.

        `traced` must have been called for the mesh, with Auto axes; raises `ValueError` if not.
        """
        if plan.axes not in self._jaxprs:
            raise ValueError("the function was not traced for this mesh with Auto axes")
        request = replace(self.requested(plan), in_specs={}, apart=True)
        return request.replayed(*self._jaxprs[plan.axes])

    def compiled(self, plan: MeshPlan, trace: Callable[[], Any]) -> tuple[Program, Report]:
        """Lower and compile the traced stage, and read its report."""
        program = build(self.requested(plan), trace)
        return program, report_of_program(program)

    def explained(self, error: Exception, plan: MeshPlan) -> str:
        """Describe an error: explained if possible, else in JAX's own words."""
        grid = None
        with suppress(ValueError):  # then the plan's mesh may be the problem
            grid = self.grid_of(plan)
        report = explain_error(error, texts=self.request.texts, grid=grid)
        return f"{type(error).__name__}: {error}" if report is None else str(report)


def subject_of(request: Request, *, statics: bool = False) -> Subject:
    """Take a request with the shapes of its arguments; the arrays themselves are released.

    `statics` says that the call had arguments that are not arrays. Raises `ValueError` if a spec
    does not fit.
    """
    arguments = request.arguments.items()
    # One by one: tree_map would sort the arguments by their names.
    shapes = {name: jax.tree_util.tree_map(_shape, tree) for name, tree in arguments}
    first = plan_of(request.grid.describe().axes, request.arguments, request.shardings)
    return Subject(replace(request, arguments=shapes), first, statics)


def _shape(leaf: Any) -> jax.ShapeDtypeStruct:
    weak = bool(getattr(leaf, "weak_type", False))
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, weak_type=weak)
