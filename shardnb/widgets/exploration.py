"""What the explorer explores: a function and the shapes of its arguments, compiled in new ways."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import jax

from shardnb.compiler import Program, Recipe, build_traced, placement
from shardnb.compiler.arrays import dtype_name
from shardnb.compiler.call import Call, read_call
from shardnb.engine import _collector_paused
from shardnb.errors import explain_error
from shardnb.findings import assemble_report
from shardnb.jax_compat.private import core
from shardnb.mesh import Grid, make_grid
from shardnb.report import Axis, Report
from shardnb.rewrite.retrace import quiet_retrace
from shardnb.widgets.plan import Plan, in_specs, plan_of

Tree = Any


@dataclass
class Subject:
    """A function of named pytrees of shapes.

    Where a function has to be traced again, that is done by `traced`, in the thread that calls
    it; `compiled` runs none of the user's Python, so that any thread may call it.
    """

    call: Call
    grid: Grid
    first: Plan
    out_specs: Tree = None
    jit_options: dict[str, Any] = field(default_factory=dict)
    statics: bool = False
    _jaxprs: dict[tuple[Axis, ...], tuple[Any, Any]] = field(default_factory=dict)

    @property
    def args(self) -> dict[str, Tree]:
        """The shapes of the arguments by name."""
        return self.call.args

    def check(self, plan: Plan) -> None:
        """Check that a plan's specs fit, without its devices; raises `ValueError` that says why."""
        sizes = tuple(axis.size for axis in plan.axes)
        mesh: Any = jax.sharding.AbstractMesh(sizes, tuple(axis.name for axis in plan.axes))
        placement.shardings(self.args, in_specs(plan, self.args), mesh)

    def recipe(self, plan: Plan) -> Recipe:
        """Give what a plan's program is made of; raises `ValueError` that names what is wrong."""
        self.check(plan)
        grid, specs = self.grid_of(plan), in_specs(plan, self.args)
        return Recipe(
            self.call.fn, self.args, grid.mesh, grid.manual, specs, self.out_specs, self.jit_options
        )

    def arrays(self) -> Iterator[tuple[str, str, tuple[int, ...]]]:
        """Give the name, dtype and shape of each array of the arguments."""
        for name, leaf in placement.named_leaves(self.args):
            yield name, dtype_name(placement.dtype_of(leaf)), tuple(leaf.shape)

    def grid_of(self, plan: Plan) -> Grid:
        """Give the grid of a plan: the first one where its axes are the same."""
        if plan.axes == self.first.axes:
            return self.grid
        return make_grid(plan.mesh, None, self.grid.target)

    def traced(self, plan: Plan, *, quiet: bool = True) -> Callable[[], Any]:
        """Give a function that gives JAX's traced stage without running the user's Python again.

        With Auto axes a function is traced once for each mesh; otherwise for each plan. `quiet`
        drops what it prints. Raises what JAX raises.
        """
        recipe = self.recipe(plan)
        if plan.is_auto and plan.axes in self._jaxprs:
            return partial(self._replayed, recipe, *self._jaxprs[plan.axes])
        with quiet_retrace() if quiet else nullcontext():
            traced = recipe.trace()
        if plan.is_auto:
            result = jax.tree_util.tree_structure(traced.out_info)
            self._jaxprs[plan.axes] = (traced.jaxpr, result)
        return lambda: traced

    def _replayed(self, recipe: Recipe, jaxpr: Any, result: Any) -> Any:
        run = core.jaxpr_as_fun(jaxpr)

        def call(*args: Tree) -> Tree:
            return jax.tree_util.tree_unflatten(result, run(*jax.tree_util.tree_leaves(args)))

        call.__name__ = getattr(self.call.fn, "__name__", "program")
        return replace(recipe, fn=call).trace()

    def compiled(self, plan: Plan, trace: Callable[[], Any]) -> tuple[Program, Report]:
        """Lower and compile what `traced` gave, and read the report of it."""
        program = build_traced(self.recipe(plan), trace)
        with _collector_paused():
            return program, self._report(plan, program)

    def explained(self, error: Exception, plan: Plan) -> str:
        """Say what went wrong: explained where that is possible, else in JAX's own words."""
        grid = None
        with suppress(ValueError):  # then the plan's mesh may be what went wrong
            grid = self.grid_of(plan)
        report = explain_error(error, sources=self.call.sources, files=self.call.files, grid=grid)
        return f"{type(error).__name__}: {error}" if report is None else str(report)

    def _report(self, plan: Plan, program: Program) -> Report:
        return assemble_report(
            program,
            self.grid_of(plan).describe(),
            **self.call.texts,
            names=self.call.names,
        )


def subject_of(
    fn: Callable[..., Tree],
    args: tuple[Tree, ...],
    *,
    grid: Grid,
    specs: Tree,
    out_specs: Tree,
    jit_options: Mapping[str, Any],
) -> Subject:
    """Take a function with the shapes of its arguments; the arrays themselves are let go.

    Raises `ValueError` where a spec does not fit.
    """
    call = read_call(fn, args, specs)
    placed = placement.shardings(call.args, call.in_specs, grid.mesh)
    count = len(jax.tree_util.tree_leaves(call.args))
    return Subject(
        call=replace(
            call,
            args={name: jax.tree_util.tree_map(_shape, tree) for name, tree in call.args.items()},
        ),
        grid=grid,
        first=plan_of(grid.describe().axes, call.args, placed),
        out_specs=out_specs,
        jit_options=dict(jit_options),
        statics=len(jax.tree_util.tree_leaves(args)) > count,
    )


def _shape(leaf: Any) -> jax.ShapeDtypeStruct:
    weak = bool(getattr(leaf, "weak_type", False))
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, weak_type=weak)
