"""What is kept of a compiled cell, so that Shardy can preview another `%%shard` line of it.

No array, function or compiled program of the user's is kept: Shardy's module, shapes and texts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
from jax.sharding import AbstractMesh, NamedSharding

from shardnb.compiler import Program, placement
from shardnb.magics import options
from shardnb.magics.meshes import NotebookMesh, mesh_value
from shardnb.magics.options import MagicLine
from shardnb.magics.parts import with_parts, with_rules
from shardnb.magics.prepared import Prepared
from shardnb.magics.scope import Names
from shardnb.magics.specs import NeedsRun, evaluated, not_an_input, plain_value
from shardnb.magics.trees import holds, is_array, leaves_of
from shardnb.mesh import Grid, parse_mesh, refuse_too_many, retyped
from shardnb.propagation.values import SIZE_LIMIT
from shardnb.report import Axis, Report
from shardnb.report.model import Spec
from shardnb.widgets.plan import MeshPlan, plan_of
from shardnb.widgets.preview import IN_THE_TYPES, Base, NoPreview, base_of

Tree = Any
Namespace = Mapping[str, Any]
Results = dict[int, Spec | None]
"""The spec of each result of a program by its number, None where the compiler chooses it."""

_RUNS_CODE = "what the line says is only known when the cell runs"


@dataclass(frozen=True)
class Stated:
    """What a line states of a program: the plan of its inputs, and the specs of its results."""

    plan: MeshPlan
    results: Results


@dataclass(frozen=True)
class CompiledCell:
    """A compiled cell, without its arrays.

    `body` is its text after the line. `inputs` and `outputs` are the shapes of its arrays by name,
    `constants` the inputs that would be constants without a spec; `aliased` says that several
    names lead to one array. Without a `base` there are no previews, and `why` says the reason.
    """

    body: str
    line: MagicLine
    grid: Grid
    names: Names
    inputs: dict[str, Tree]
    outputs: dict[str, Tree]
    constants: frozenset[str]
    aliased: bool
    stated: Stated | None = None
    base: Base | None = None
    why: str = ""

    def read(self, line: MagicLine, namespace: Namespace, notebook: NotebookMesh) -> Stated:
        """Return what another line of this cell states; the user's code does not run.

        Raises `CellError`, `ValueError` or `TypeError` for a line that is wrong, and `NoPreview`
        for one whose program is another than the compiled one.
        """
        self._refuse_another_program(line)
        try:
            given = (line.specs, line.parts, line.rule_texts, line.out)
            specs, parts, by_rule, out = (
                evaluated(texts, namespace, plainly=True) for texts in given
            )
            self._refuse_other_inputs(line.placed, namespace)
            inputs = self._inputs_now(namespace)
            specs, _ = with_rules(specs, line.by_rule(by_rule), inputs)
            specs = with_parts(specs, parts, inputs)
            axes = self._axes(line, (inputs, specs), namespace, notebook)
        except NeedsRun as error:
            raise NoPreview(_RUNS_CODE) from error
        mesh = self._mesh(axes)
        if isinstance(mesh, AbstractMesh):
            inputs = _each(_without_devices, inputs)
        plan = plan_of(axes, inputs, placement.shardings(inputs, specs, mesh))
        return Stated(plan, self.results(out, mesh))

    def preview(self, stated: Stated) -> Report:
        """Return the shardings that lines lead to, as a report without collectives.

        Raises `NoPreview`.
        """
        if self.base is None or self.stated is None:
            raise NoPreview(self.why)
        before, now = self.stated.results, stated.results
        changed = {n: spec for n, spec in now.items() if spec != before[n]}
        return self.base.preview(
            stated.plan, changed if stated.plan.axes == self.base.plan.axes else now
        )

    def _refuse_another_program(self, line: MagicLine) -> None:
        for option in (options.WATCH, options.COMPARE):
            if line.has(option):
                raise NoPreview(f"--{option.name} compiles other programs")
        if line.text(options.ON) != self.line.text(options.ON):
            raise NoPreview("for other devices the cell is compiled again")

    def _refuse_other_inputs(self, placed: Sequence[str], namespace: Namespace) -> None:
        if self.aliased and set(placed) != set(self.line.placed):
            raise NoPreview("several names lead to one array")
        for name in placed:
            if name in self.inputs and leaves_of(self.inputs[name]):
                continue
            if name in self.names.read and holds(namespace.get(name), is_array):
                raise NoPreview(f"{name} was not an input of the compiled program")
            raise not_an_input(name, self.names, self.inputs, namespace)
        for name in sorted(self.constants.difference(placed)):
            raise NoPreview(f"without a spec, {name} is a constant of the program")

    def _inputs_now(self, namespace: Namespace) -> dict[str, Tree]:
        """Return the shapes of the inputs, with the shardings that the arrays have now."""
        inputs: dict[str, Tree] = {}
        for name, tree in self.inputs.items():
            here = {name: namespace.get(name)} if leaves_of(tree) else {}
            arrays = dict(placement.named_leaves(here))
            now = iter(
                [
                    _now(path, leaf, arrays.get(path))
                    for path, leaf in placement.named_leaves({name: tree})
                ]
            )
            inputs[name] = jax.tree_util.tree_map(lambda _, now=now: next(now), tree)
        return inputs

    def _axes(
        self, line: MagicLine, values: Tree, namespace: Namespace, notebook: NotebookMesh
    ) -> tuple[Axis, ...]:
        """Return the axes of the mesh of a line; no devices are made for it."""
        text, kind = line.text(options.MESH), line.text(options.AXES)
        if text is None:
            try:
                return notebook.choose(None, kind, line.text(options.ON), values).axes
            except ValueError:
                # The mesh of jax.set_mesh is one of the thread, and this may be a subshell's.
                if self.line.text(options.MESH) is not None:
                    raise
                return retyped(self.grid, kind).axes
        mesh = mesh_value(text, namespace, plain_value)
        if isinstance(mesh, str):
            return parse_mesh(mesh, kind).axes
        return retyped(Grid(mesh), kind).axes

    def _mesh(self, axes: tuple[Axis, ...]) -> Any:
        """Return the mesh to place arrays on: the compiled program's, or one without devices."""
        sizes, names = tuple(axis.size for axis in axes), tuple(axis.name for axis in axes)
        known = self.grid.mesh
        if (names, sizes) == (known.axis_names, known.axis_sizes):
            return known
        if math.prod(sizes) != known.size:
            if self.grid.target != "cpu":
                raise NoPreview(f"the devices of {self.grid.target} are {known.size:,}")
            refuse_too_many(math.prod(sizes))
        return AbstractMesh(sizes, names)

    def results(self, out: Mapping[str, Tree], mesh: Any) -> Results:
        """Return the specs of the results, of which `out` has some by name.

        Raises what `placement.shardings` raises, and `NoPreview`.
        """
        if unknown := [name for name in out if name not in self.outputs]:
            raise NoPreview(f"the compiled program has no output {unknown[0]}")
        results: Results = {}
        for name, tree in sorted(self.outputs.items()):  # in JAX's order
            try:
                specs = placement.spread(name, tree, out.get(name))
            except placement.SpecStructureError as error:
                # An output that is stated may hold more arrays than one that is not.
                if name in self.line.out:
                    raise
                raise NoPreview(str(error)) from error
            placed = placement.shardings({name: tree}, {name: out.get(name)}, mesh)[name]
            shardings = jax.tree_util.tree_leaves(placed)
            for spec, leaf, sharding in zip(specs, leaves_of(tree), shardings, strict=True):
                dims = placement.dims_of(sharding.spec, len(leaf.shape))
                results[len(results)] = None if spec is None else dims
        return results


def compiled_cell(
    body: str, line: MagicLine, prepared: Prepared, program: Program, report: Report
) -> CompiledCell:
    """Keep what previews need of a cell that was compiled just now, before it runs."""
    function, request = prepared.function, prepared.request
    arrays = [leaf for name in function.inputs for leaf in leaves_of(function.inputs[name])]
    ids = [id(leaf) for leaf in arrays if is_array(leaf)]
    assigned = (name for name in function.possible if name not in function.names)
    cell = CompiledCell(
        body=body,
        line=line,
        grid=request.grid,
        names=Names(function.names, tuple(assigned)),
        inputs=_each(_shape, request.arguments),
        outputs=_each(_bare, program.lowered.out_info),
        constants=frozenset(
            name
            for name, tree in request.arguments.items()
            if any(isinstance(leaf, np.ndarray) for leaf in leaves_of(tree))
        ),
        aliased=len(ids) > len(set(ids)),
    )
    if any(axis.type != "auto" for axis in request.grid.axes):
        return replace(cell, why=IN_THE_TYPES)
    if len(program.dumps.stated) > SIZE_LIMIT:
        return replace(cell, why="the program is large")
    plan = plan_of(request.grid.axes, request.arguments, request.shardings)
    base = base_of(plan, program, replace(report, texts={}))
    count = len(jax.tree_util.tree_leaves(cell.outputs))
    if base is None or count != len(report.outputs):
        return replace(cell, why="the compiler left no Shardy module")
    out = {name: request.out_specs[name] for name in line.out}
    return replace(cell, base=base, stated=Stated(plan, cell.results(out, request.mesh)))


def _each(make: Callable[[Any], Any], trees: Mapping[str, Tree]) -> dict[str, Tree]:
    """Return trees with other leaves, in their order: `tree_map` would sort them by name."""
    return {name: jax.tree_util.tree_map(make, tree) for name, tree in trees.items()}


def _shape(leaf: Any) -> jax.ShapeDtypeStruct:
    sharding = getattr(leaf, "sharding", None)
    return jax.ShapeDtypeStruct(leaf.shape, placement.dtype_of(leaf), sharding=sharding)


def _bare(leaf: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype)


def _now(path: str, leaf: jax.ShapeDtypeStruct, array: Any) -> jax.ShapeDtypeStruct:
    """Return a leaf with the sharding of the array that the notebook has in its place."""
    if not is_array(array):
        raise NoPreview(f"{path} is not an array any more")
    if tuple(array.shape) != leaf.shape or placement.dtype_of(array) != leaf.dtype:
        raise NoPreview(f"{path} has another shape or type than when the cell was compiled")
    return _shape(array)


def _without_devices(leaf: jax.ShapeDtypeStruct) -> jax.ShapeDtypeStruct:
    """Return a leaf whose mesh has no devices, to be compared with one that has none."""
    placed = leaf.sharding
    if not isinstance(placed, NamedSharding):
        return leaf
    mesh = placed.mesh.abstract_mesh
    sharding = NamedSharding(mesh, placed.spec, memory_kind=placed.memory_kind)
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding)
