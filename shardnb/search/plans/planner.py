"""From a function to its plans."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax

from shardnb.compiler import Request, build, placement
from shardnb.compiler.call import read_call
from shardnb.cost.sizes import read_size
from shardnb.findings import report_of_program
from shardnb.mesh import Grid, make_grid
from shardnb.progress import Progress, bar_on
from shardnb.report.model import Report
from shardnb.report.plans import Plan, Plans
from shardnb.search.plans.code import written
from shardnb.search.plans.front import front
from shardnb.search.plans.patterns import Pattern, patterns_of
from shardnb.search.plans.search import Field, PlanSearch
from shardnb.search.plans.space import Space, State, factorisations
from shardnb.tracebacks import with_users_frames
from shardnb.views.formatting import count, size

Tree = Any
# A preview of a program of `_QUICK` lines takes some milliseconds, all of these some seconds.
# A larger program gets fewer, in proportion, but not so few that none leaves the start.
PREVIEWS = 600
PREVIEWS_OF_MANY = 250
_QUICK = 1000
_FEWEST = 80
# Each takes as long as the user's own compile, and estimates come true often enough for these.
COMPILES = 24
_NAMES = ("x", "y", "z")


@with_users_frames
def plan(
    fn: Callable[..., Tree],
    *args: Tree,
    mesh: str | int | jax.sharding.Mesh | Grid | None = None,
    memory: int | str | None = None,
    on: str | None = None,
    hardware: str | None = None,
    in_specs: Tree = None,
    out_specs: Tree = None,
    seed: int = 0,
    previews: int | None = None,
    compiles: int = COMPILES,
    progress: Progress | None = None,
    **options: Any,
) -> Plans:
    """Search specs of the arguments for the plans with the least memory and the least traffic.

    `args` are arrays, or `jax.ShapeDtypeStruct`, in pytrees; arrays whose paths differ in a layer
    number only are one choice. An argument that `in_specs` places stays there. `mesh` is a mesh
    with auto axes, or a number of devices: then every mesh of up to three axes takes part.
    `memory` is what a device may hold, in bytes or as `16GiB`. With a TPU mesh or a `hardware`
    such as `v5e`, plans are compared by seconds, else by the bytes that a device sends.

    Shardy estimates up to `previews` placements on each mesh (None: 600, or 250 where there are
    several, and fewer of a large program); the most promising, up to `compiles` in all, are
    compiled, and only these are given. Nothing is allocated or run. The same `seed` gives the
    same plans. An interrupt keeps what was found.

    Raises `ValueError` where the mesh has explicit or manual axes, and what JAX raises.

    >>> import jax, jax.numpy as jnp
    >>> x = jax.ShapeDtypeStruct((256, 512), jnp.float32)
    >>> w = jax.ShapeDtypeStruct((512, 1024), jnp.float32)
    >>> plans = plan(jnp.dot, x, w, mesh="model=4", previews=20, compiles=6)
    >>> plans.best.wire_bytes
    0
    """
    call = read_call(fn, args, options)
    grids, notes = _grids(mesh, on, call.placed)
    request = call.request(grids[0], in_specs, out_specs)
    limit = None if memory is None else read_size(memory)
    with bar_on("plan") as bar:
        budget = Budget(limit, previews, compiles, seed)
        said = (*notes, *request.notes)
        return search_plans(request, grids, budget, progress or bar, hardware, said)


@dataclass(frozen=True)
class Budget:
    """What a plan may hold in bytes, and how much the search may do (see `plan`)."""

    limit: int | None = None
    previews: int | None = None
    compiles: int = COMPILES
    seed: int = 0


def search_plans(
    request: Request,
    grids: Sequence[Grid],
    budget: Budget,
    progress: Progress,
    hardware: str | None = None,
    notes: Sequence[str] = (),
) -> Plans:
    """Search specs of a request's arguments on some grids; an interrupt keeps what was found.

    Raises what JAX raises, and `KeyboardInterrupt` before the first program is compiled.
    """
    fields: list[Field] = []
    stopped = False
    try:
        for grid in grids:
            progress("meshes compiled", len(fields), len(grids))
            fields.append(_field(replace(request, grid=grid), hardware))
    except KeyboardInterrupt:
        if not fields:
            raise
        stopped = True
    # Shardy takes longer for a larger program: the time of the search stays about the same.
    most = PREVIEWS if len(fields) == 1 else PREVIEWS_OF_MANY
    lines = max(field.estimator.lines for field in fields)
    each = budget.previews or max(_FEWEST, min(most, most * _QUICK // lines))
    search = PlanSearch(
        fields, budget.limit, each, budget.compiles, budget.seed, progress, notes=list(notes)
    )
    search.run(stopped=stopped)
    return _PlannedRequest(request, fields).plans(search)


def _grids(mesh: Any, on: str | None, args: Any) -> tuple[list[Grid], list[str]]:
    """Return the meshes to plan for, and what is to be said of those that cannot be laid."""
    number = str(mesh).strip() if isinstance(mesh, int | str) else ""
    if number.isdigit():
        return _shapes(int(number), on)
    grid = make_grid(mesh, None, on, args)
    for axis in grid.describe().axes:
        if axis.type != "auto":
            raise ValueError(
                f"the mesh axis {axis.name} is {axis.type}, where the program itself states "
                "placements: a plan is searched on auto axes"
            )
    return [grid], []


def _shapes(devices: int, on: str | None) -> tuple[list[Grid], list[str]]:
    grids, notes, failed = [], [], None
    for shape in factorisations(devices):
        text = ",".join(f"{name}={size}" for name, size in zip(_NAMES, shape, strict=False))
        try:
            grids.append(make_grid(text, None, on))
        except ValueError as error:
            failed = error
            notes.append(f"the mesh {text} took no part: {error}")
    if not grids and failed is not None:
        raise failed
    return grids, notes


def _field(request: Request, hardware: str | None) -> Field:
    """Compile the program for a mesh, with nothing split but what the user says."""
    mesh, arguments = request.grid.describe(), request.arguments
    patterns = patterns_of(arguments, request.in_specs)
    space = Space(patterns, tuple(mesh.shape.items()))
    program = build(replace(request, in_specs=trees(arguments, patterns, space.start), apart=True))
    names = tuple(name for name, _ in placement.named_leaves(arguments))
    field = Field(program, mesh, space, names, hardware)
    # Like axes may change names, unless the program or the hardware tells them apart.
    distinct = field.estimator.names_axes or mesh.coords is not None or hardware is not None
    field.space = replace(space, symmetric=not distinct)
    return field


def trees(args: Mapping[str, Tree], patterns: Sequence[Pattern], state: State) -> dict[str, Tree]:
    """Return a state as specs in the arguments' own structure."""
    by_number = {
        member: spec
        for pattern, spec in zip(patterns, state, strict=True)
        for member in pattern.members
    }
    return placement.specs_like(dict(args), (by_number[at] for at in range(len(by_number))))


@dataclass(frozen=True)
class _PlannedRequest:
    """What a search was asked, so that a plan can be explained later."""

    request: Request
    fields: list[Field]

    def plans(self, search: PlanSearch) -> Plans:
        """Return the front of what was compiled, within the memory that is allowed."""
        compiled = list(search.plans.values())
        fitting = [p for p in compiled if search.limit is None or p.memory <= search.limit]
        least = min(compiled, key=lambda p: (p.memory, p.value), default=None)
        notes = [*search.notes]
        if number := len(self.fields[0].program.closed_over):
            arrays = f"{count(number, 'array')} that the function closes over took no part"
            notes.append(f"{arrays}: what is an argument can be placed")
        if least is not None and not fitting and search.limit is not None:
            notes.append(
                f"no plan that was compiled holds {size(search.limit)} or less a device: "
                f"the least holds {size(least.memory)}"
            )
        return Plans(
            title=self.request.texts.title,
            plans=tuple(front(fitting, lambda p: (float(p.memory), p.value))),
            least=least,
            limit=search.limit,
            looked=search.looked,
            compiled=len(compiled),
            notes=tuple(notes),
            _found=self,
        )

    def trees(self, plan: Plan) -> dict[str, Tree]:
        """Return a plan's specs by argument."""
        patterns = self._field(plan).space.patterns
        return trees(self.request.arguments, patterns, tuple(plan.specs.values()))

    def explain(self, plan: Plan) -> Report:
        """Return a plan's report."""
        field = self._field(plan)
        request = replace(field.program.request, in_specs=self.trees(plan), apart=True)
        report = report_of_program(build(request))
        return report.on_hardware(field.hardware) if field.hardware else report

    def written(self, plan: Plan) -> str:
        """Return a plan's code."""
        return written(self.request.arguments, self.trees(plan), plan.mesh)

    def _field(self, plan: Plan) -> Field:
        return next(field for field in self.fields if field.mesh == plan.mesh)
