"""From a function to its plans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax

from shardnb.compiler import Request, build, placement
from shardnb.compiler.call import read_call
from shardnb.cost import find_hardware, on_hardware
from shardnb.cost.sizes import read_size
from shardnb.mesh import Grid, make_grid
from shardnb.progress import Progress, bar_on
from shardnb.report.model import Report
from shardnb.report.plans import Plans
from shardnb.search.patterns import patterns_of
from shardnb.search.plans.field import Field
from shardnb.search.plans.planned import PlannedRequest, trees
from shardnb.search.plans.search import PlanSearch
from shardnb.search.plans.space import Space, factorisations
from shardnb.tracebacks import with_users_frames

Tree = Any
# A preview of a program of `_QUICK` lines takes some milliseconds, all of these some seconds.
# A larger program gets fewer, in proportion, but not so few that none leaves the recipes.
PREVIEWS = 200
PREVIEWS_OF_MANY = 100
_QUICK = 1000
_FEWEST = 50
# Without hardware of the user's: it takes a mesh of any axes, and all its figures are published.
DEFAULT_HARDWARE = "h100"
# Each takes as long as the user's own compile, and estimates of recipes come true often enough.
COMPILES = 16
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
    """Search specs of the arguments for the plans that take least time and least memory.

    `args` are arrays, or `jax.ShapeDtypeStruct`, in pytrees; arrays whose paths differ in a layer
    number only are one choice. An argument that `in_specs` places stays there. `mesh` is a mesh
    with auto axes, or a number of devices: then every mesh of up to three axes takes part.
    `memory` is what a device may hold, in bytes or as `16GiB`. `hardware` such as `v5e:4x4` or
    `h100:2x8` is what the seconds are estimated for (None: the devices of the mesh, or H100 GPUs
    where there are no figures of these); with `on` the plans are compiled for it, too.

    The search begins at the products of recipes, such as FSDP over one axis beside tensor
    parallelism over another. Shardy estimates these and up to `previews` steps from them on each
    mesh (None: 200, or 100 where there are several, and fewer of a large program). The most
    promising, up to `compiles` in all, are compiled, some with constraints on activations, which
    traces the function once more; only these are given. State that the function returns is donated,
    and returned as it came. Nothing is allocated or run. The same `seed` gives the same plans. An
    interrupt keeps what was found.

    Raises `ValueError` where the mesh has explicit or manual axes, and what JAX raises.

    >>> import jax, jax.numpy as jnp
    >>> x = jax.ShapeDtypeStruct((256, 512), jnp.float32)
    >>> w = jax.ShapeDtypeStruct((512, 1024), jnp.float32)
    >>> plans = plan(jnp.dot, x, w, mesh="model=4", previews=20, compiles=6)
    >>> plans.best.layout
    {'model': 'tensor-parallel'}
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
    """What a plan may hold in bytes, and how much the search may do (see `plan`).

    Only where `in_text` it traces the user's text with constraints.
    """

    limit: int | None = None
    previews: int | None = None
    compiles: int = COMPILES
    seed: int = 0
    in_text: bool = True


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
    notes, stopped = list(notes), False
    chosen = hardware or _hardware_for(grids[0], notes)
    try:
        for grid in grids:
            progress("meshes compiled", len(fields), len(grids))
            fields.append(field_of(replace(request, grid=grid), chosen))
    except KeyboardInterrupt:
        if not fields:
            raise
        stopped = True
    # Shardy takes longer for a larger program: the time of the search stays about the same.
    most = PREVIEWS if len(fields) == 1 else PREVIEWS_OF_MANY
    lines = max(field.estimator.lines for field in fields)
    each = budget.previews
    if each is None:
        each = max(_FEWEST, min(most, most * _QUICK // lines))
    search = PlanSearch(
        fields=fields,
        limit=budget.limit,
        previews=each,
        compiles=budget.compiles,
        seed=budget.seed,
        progress=progress,
        in_text=budget.in_text,
        notes=notes,
    )
    search.run(stopped=stopped)
    return PlannedRequest(request, fields, hardware).plans(search)


def _hardware_for(grid: Grid, notes: list[str]) -> str | None:
    """Return the hardware to estimate for where none is named: None if the mesh is on one."""
    mesh = grid.describe()
    if not mesh.emulated and find_hardware(mesh.kind) is not None:
        return None
    known = find_hardware(DEFAULT_HARDWARE)
    notes.append(
        f"no hardware was named, so times are estimated for {known.name if known else ''}: name "
        "yours, such as hardware='v5e:4x4'"
    )
    return DEFAULT_HARDWARE


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


def field_of(request: Request, hardware: str | None) -> Field:
    """Compile the program for a mesh, with nothing split but what the user says."""
    mesh, arguments = request.grid.describe(), request.arguments
    if hardware:
        on_hardware(Report("", mesh), hardware)  # refused before anything is compiled
    patterns = patterns_of(arguments, request.in_specs)
    space = Space(patterns, tuple(mesh.shape.items()))
    program = build(replace(request, in_specs=trees(arguments, patterns, space.start), apart=True))
    names = tuple(name for name, _ in placement.named_leaves(arguments))
    field = Field(program, mesh, space, names, hardware)
    # Like axes may change names, unless the program or the hardware tells them apart.
    distinct = field.estimator.names_axes or mesh.coords is not None or hardware is not None
    field.space = replace(space, symmetric=not distinct)
    return field
