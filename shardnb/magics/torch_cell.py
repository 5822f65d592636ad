"""A cell of torch code: a function of the tensors that it reads, run through torchax.

The body runs on the user's own tensors and modules, and calls of torch's compute with traced values
in their place. What the cell leaves is what it leaves without `%%shard`: CPU tensors, changed
parameters, gradients.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding
from jax.tree_util import DictKey, GetAttrKey, SequenceKey, keystr

from shardnb.compiler import Request, SourceTexts
from shardnb.compiler.torch_call import grid_of, mesh_in
from shardnb.compiler.torch_program import (
    GRADIENTS,
    TorchInputs,
    TorchProgram,
    scopes_of,
    torch_inputs,
)
from shardnb.engine import with_annotations
from shardnb.magics import options
from shardnb.magics.captured_names import names_through
from shardnb.magics.cell import CellError
from shardnb.magics.cell_function import HELD, HISTORY, CellCode, CellFunction
from shardnb.magics.meshes import NotebookMesh
from shardnb.magics.options import MagicLine
from shardnb.magics.parts import with_parts
from shardnb.magics.prepared import Prepared
from shardnb.magics.reachable import Path, Reachable
from shardnb.magics.recording import LAST, After, Namespace
from shardnb.magics.scope import Names
from shardnb.magics.specs import evaluated, not_an_input
from shardnb.mesh import Grid
from shardnb.report import Report
from shardnb.rewrite.retrace import silenced
from shardnb.torch.extra import MissingExtraError, torchax
from shardnb.torch.marks import Variant
from shardnb.torch.traced import is_torch_module, is_torch_tensor, tracer_of

Tree = Any

MANUAL = (
    "torch code is not written for manual mesh axes: use enable_manual_sharding in the cell, and a "
    "mesh whose axes are auto"
)
_NO_OUT = "--out places the results of JAX code: mark a result with shardnb.torch.mark_sharding"
_OF_MODULES = ("_modules", "_parameters", "_buffers")


@dataclass(frozen=True)
class ReadCell:
    """A cell of torch code and what it reads: names, all that they lead to, the tensors in it."""

    names: Names
    code: CellCode
    namespace: Namespace
    line: MagicLine
    reachable: Reachable
    inputs: TorchInputs
    scopes: Mapping[int, str]

    @property
    def is_abstract(self) -> bool:
        """Whether a tensor has no data, so that nothing can run."""
        return any(one.tensor.device.type == "meta" for _, one in self.inputs.every)

    def grid(self, line: MagicLine, notebook: NotebookMesh) -> Grid | None:
        """Return the grid of the `SpmdMesh` that the cell uses, unless its line states a mesh."""
        if line.has(options.MESH):
            return None
        mesh = mesh_in(self.reachable.seen.values(), self.inputs)
        return None if mesh is None else grid_of(mesh, line.text(options.ON) or notebook.on)

    def prepared(self, grid: Grid, texts: SourceTexts, *, run: bool) -> TorchPrepared:
        """Return the cell as a function on a mesh, ready to be compiled."""
        if grid.manual:
            raise CellError(MANUAL)
        arguments = self.inputs.arguments()
        function = TorchCell(
            code=self.code,
            namespace=self.namespace,
            inputs=arguments,
            reachable=self.reachable,
            names=self.names.read,
            possible=tuple(dict.fromkeys((*self.names.assigned, *arguments, LAST, HELD))),
            runs=run and not grid.compile_only and not self.is_abstract,
            # Once more for each annotation, to see what it does.
            rereads="the program is compiled without each annotation, which traces the cell again",
            quiet=silenced,
            program=TorchProgram(self.inputs, self.scopes, grid.mesh),
        )
        request = Request(
            function=function,
            arguments=arguments,
            grid=grid,
            in_specs=self._specs(function),
            in_jit=False,
            apart=self.line.has(options.ISOLATE),
            texts=texts,
            placed_in_trace=function.program.in_specs,
            deep_stacks=True,
        )
        return TorchPrepared(function, request)

    def _specs(self, function: TorchCell) -> dict[str, Tree]:
        """Return the shardings of the tensors: as they are marked, and as the line says."""
        for name in self.line.placed:
            if name not in function.inputs:
                raise not_an_input(name, self.names, function.inputs, self.namespace)
        specs = evaluated(self.line.specs, self.namespace)
        parts = evaluated(self.line.parts, self.namespace)
        marked = function.program.in_specs()
        both = [name for name in specs if name in marked]
        if both:
            raise CellError(
                f"{both[0]} is marked already: clear_sharding forgets how it is sharded"
            )
        return with_parts({**marked, **specs}, parts, function.inputs)


def read(names: Names, code: CellCode, namespace: Namespace, line: MagicLine) -> ReadCell:
    """Find the tensors that a cell reads, in the names and in all that these lead to."""
    try:
        torchax()
    except MissingExtraError as error:
        raise CellError(str(error)) from error
    if line.out:
        raise CellError(_NO_OUT)
    through, reachable = names_through(names, namespace, of_torch=True)
    drawing: tuple[Any, ...] = (random.random, np.random.get_state)
    reachable.add_all(("random", function.__self__) for function in drawing)
    known = [name for name in through.read if name in namespace and name not in HISTORY]
    # A parameter has its name in the module, also where an optimizer is read before it.
    known.sort(key=lambda name: not (is_torch_module(v := namespace[name]) or is_torch_tensor(v)))
    found = torch_inputs(_tensors(known, namespace))
    scopes = scopes_of((name, namespace[name]) for name in known)
    return ReadCell(through, code, namespace, line, reachable, found, scopes)


def _tensors(names: list[str], namespace: Namespace) -> Iterator[tuple[str, tuple[Any, ...], Any]]:
    reached, paths = Reachable(of_torch=True), dict[int, str]()
    for name in names:
        start = len(reached.arrays)
        reached.add_all([(name, namespace[name])])
        for path, tensor in reached.arrays[start:]:
            if is_torch_tensor(tensor):
                keys = _keys(path, paths)
                paths[id(tensor)] = f"{name}{keystr(keys)}"
                yield name, keys, tensor


class _ByTensor:
    """The key of a dictionary that has tensors as keys, as an optimizer's state has."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


def _keys(path: Path, paths: Mapping[int, str]) -> tuple[Any, ...]:
    """Return a path as the user writes it: a parameter is an attribute of its module."""
    steps: list[tuple[str, Any]] = []
    while not isinstance(path, str):
        path, how, key = path
        if how != "attributes" and key != "global_tensor":
            steps.append((how, key))
    keys: list[Any] = []
    after = ""
    for how, key in reversed(steps):
        if how == "attribute" and key in _OF_MODULES:
            after = key
            continue
        if after and isinstance(key, str):
            keys.append(SequenceKey(int(key)) if key.isdigit() else GetAttrKey(key))
        elif how == "item" and isinstance(key, int):
            keys.append(SequenceKey(key))
        elif how == "item":
            keys.append(DictKey(_ByTensor(paths[id(key)]) if id(key) in paths else key))
        else:
            keys.append(GetAttrKey(str(key)))
        after = ""
    return tuple(keys)


@dataclass
class TorchCell(CellFunction):
    """The function of its tensors' arrays that a cell of torch code is."""

    program: TorchProgram = field(kw_only=True)
    random_state: Any = None

    def arguments(self) -> dict[str, Tree]:
        """Return the arrays of the tensors by name, in the structure of their paths."""
        return dict(self.inputs)

    def varied(self, variant: Variant) -> TorchCell:
        """Return the function whose annotations are traced in another way, to be compiled only."""
        return replace(self, program=self.program.varied(variant), called=True, recording=None)

    def _is_alone(self, name: str) -> bool:  # noqa: ARG002 - a name never holds an array here
        return False

    def __call__(self, *tracers: Tree) -> dict[str, Tree]:
        """Run the body on traced tensors; returns the outputs by name."""
        import torch

        self._trace, state = self.program.begin(tracers), torch.get_rng_state()
        try:
            outputs: dict[str, Tree] = jax.tree_util.tree_map(tracer_of, super().__call__(*tracers))
            self.random_state = torch.get_rng_state()
            return outputs
        finally:
            self._trace.clear()
            self.program.restore()
            torch.set_rng_state(state)

    def _body(self) -> Any:
        from shardnb.torch.trace import tracing

        with tracing(self._trace):
            return super()._body()

    def _outputs(self, after: After, given: set[int]) -> dict[str, Tree]:
        outputs = super()._outputs(after, given)
        changed, gradients = self.program.end(self._trace)
        held = {n.replace(".global_tensor", ""): v for n, v in outputs.get(HELD, {}).items()}
        if held or changed:
            outputs[HELD] = {**held, **changed}
        return outputs | ({GRADIENTS: gradients} if self.program.variant.gradients else {})

    def results(self, outputs: Mapping[str, Tree]) -> Mapping[str, Tree]:
        """Return the results as CPU tensors, and change the user's as the cell does."""
        import torch

        from shardnb.torch.annotations import place, placement_of

        made = {name: jax.tree_util.tree_map(_tensor, tree) for name, tree in outputs.items()}
        for one, sharding, frames in self.program.marked():
            place(one, sharding, frames)
        for name, tensor, of_gradient in self.program.changed:
            value = made.get(HELD, {}).get(name)
            if of_gradient:
                tensor.grad = value
            elif tensor.device.type != "meta":
                with torch.no_grad():
                    tensor.copy_(value)
                if placement_of(tensor) is None:
                    place(tensor, placement_of(value))
        for number, value in self.program.counted:
            number.copy_(value)
        if self.random_state is not None:
            torch.set_rng_state(self.random_state)
        return made


def _tensor(array: Any) -> Any:
    """Return a result as a CPU tensor, whose sharding is remembered."""
    from shardnb.torch.annotations import place
    from shardnb.torch.arrays import tensor_of
    from shardnb.torch.spmd import from_named_sharding

    tensor = tensor_of(array)
    if isinstance(array.sharding, NamedSharding):
        place(tensor, from_named_sharding(array.sharding, tensor.ndim))
    return tensor


@dataclass(frozen=True)
class TorchPrepared(Prepared):
    """A cell of torch code on a mesh; its report says what each annotation does."""

    function: TorchCell

    def completed(self, report: Report) -> Report:
        """Return the report with what each annotation does; it proposes nothing after `--out`."""
        findings = tuple(
            replace(f, edits=tuple(edit for edit in f.edits if "--out" not in edit.text))
            for f in report.findings
        )
        report = replace(report, findings=findings)
        return with_annotations(self.request, self.function, report)
