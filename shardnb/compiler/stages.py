"""Programs that the user has traced, lowered or compiled: JAX's stages."""

from __future__ import annotations

import math
import time
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, Sharding

from shardnb.compiler.dumps import Dumps
from shardnb.compiler.program import Program, compiled_with_dumps
from shardnb.compiler.request import Request, SourceTexts
from shardnb.mesh import Grid, make_grid, parse_mesh
from shardnb.texts import hlo

Tree = Any
Stage = jax.stages.Traced | jax.stages.Lowered | jax.stages.Compiled


def stage_of(given: object) -> Stage | None:
    """Return the JAX stage that an object is, or that a library's object contains."""
    for value in (
        given,
        *(getattr(given, name, None) for name in ("traced", "lowered", "compiled")),
    ):
        if isinstance(value, jax.stages.Traced | jax.stages.Lowered | jax.stages.Compiled):
            return value
    return None


def program_of_stage(
    stage: Stage, mesh: str | Mesh | Grid | None = None, *, apart: bool = False
) -> Program:
    """Compile what the user has traced or lowered; a compiled program has no dumps.

    With `apart`, another process compiles it. `mesh` is needed if no sharding of an argument or
    result has one. Raises `ValueError` if it has another number of devices.
    """
    start = time.perf_counter()
    traced = stage if isinstance(stage, jax.stages.Traced) else None
    lowered: Any = stage.lower() if isinstance(stage, jax.stages.Traced) else stage
    lowered_at = time.perf_counter()
    compiled, dumps, failure = lowered, Dumps(), None
    if not isinstance(lowered, jax.stages.Compiled):
        result, dumps, failure = compiled_with_dumps(lowered, apart=apart)
        compiled = result.stage
    if compiled is None:
        raise failure or ValueError("the program was not compiled")
    grid = _grid(compiled, mesh)
    module = hlo.parse(compiled.as_text())
    title = module.name.removeprefix("jit_")
    return Program(
        request=Request(_none, _arguments(compiled, module), grid, texts=SourceTexts(title)),
        traced=traced,
        lowered=lowered,
        compiled=compiled,
        dumps=dumps,
        trace_seconds=lowered_at - start,
        compile_seconds=time.perf_counter() - lowered_at,
    )


def _none(*_: Tree) -> Tree:
    raise ValueError("a lowered program has no Python any more: pass the function itself")


def _grid(compiled: Any, mesh: str | Mesh | Grid | None) -> Grid:
    leaves = jax.tree_util.tree_leaves((compiled.input_shardings, compiled.output_shardings))
    shardings = [leaf for leaf in leaves if isinstance(leaf, Sharding)]
    named: list[Any] = [
        s.mesh for s in shardings if isinstance(s, NamedSharding) and not s.mesh.empty
    ]
    devices: set[Any] = max((s.device_set for s in shardings), key=len, default=set())
    if mesh is None and named:
        return make_grid(named[0])
    if isinstance(mesh, str):
        axes = parse_mesh(mesh).axes
        sizes = [axis.size for axis in axes]
        if math.prod(sizes) == len(devices):
            ordered = sorted(devices, key=lambda device: device.id)
            mesh = Mesh(np.array(ordered).reshape(sizes), [axis.name for axis in axes])
    elif mesh is None and len(devices) == 1:
        mesh = Mesh(np.array(list(devices)), ["device"])
    grid = make_grid(mesh)
    if grid.mesh.size != len(devices):
        raise ValueError(
            f"the program is compiled for {len(devices)} devices, but the mesh has {grid.mesh.size}"
        )
    return grid


def _arguments(compiled: Any, module: hlo.Module) -> dict[str, Tree]:
    """Return the shapes of the arguments with their compiled shardings, by name."""
    infos = jax.tree_util.tree_leaves(compiled.args_info)
    shardings = compiled.in_tree.flatten_up_to(compiled.input_shardings)
    entry = module.computations[module.entry]
    used = iter([entry.node(value).op_name for _, value in sorted(entry.parameters.items())])
    found: dict[str, Tree] = {}
    for number, (info, sharding) in enumerate(zip(infos, shardings, strict=True)):
        name = f"argument {number}" if sharding is None else next(used, "") or f"argument {number}"
        found[name] = jax.ShapeDtypeStruct(info.shape, info.dtype, sharding=sharding)
    return found
