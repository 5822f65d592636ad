"""A call of a torch module, or of a function of tensors, read into a `Request`."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding

from shardnb.compiler.call import texts_of
from shardnb.compiler.request import Request
from shardnb.compiler.torch_program import (
    TorchFunction,
    TorchInputs,
    TorchProgram,
    scopes_of,
    tensors_in,
    torch_inputs,
)
from shardnb.mesh import Grid, devices_for, make_grid, target_name
from shardnb.torch.extra import torchax
from shardnb.torch.spmd import SpmdMesh, from_named_sharding
from shardnb.torch.traced import is_torch_module, is_torch_tensor

Tree = Any


def is_torch_call(fn: Any, args: Iterable[Any]) -> bool:
    """Whether a function is a module of torch's, or is called with tensors or modules."""
    if "torch" not in sys.modules:
        return False
    leaves = jax.tree_util.tree_leaves(list(args))
    return is_torch_module(fn) or any(map(_of_torch, leaves))


def _of_torch(value: Any) -> bool:
    return is_torch_tensor(value) or is_torch_module(value)


def torch_call(
    fn: Any, args: Sequence[Any], named: Mapping[str, Any]
) -> tuple[str, Callable[[], Any], TorchInputs, dict[int, str]]:
    """Read a call: its title, the call itself, its tensors, and the names of its modules.

    Shapes among the arguments become meta tensors. The tensors of a module that is called are under
    `model`, and those that a function closes over under their variables.
    """
    torchax()
    given = jax.tree_util.tree_map(_meta, tuple(args), is_leaf=_of_torch)
    keywords = jax.tree_util.tree_map(_meta, dict(named), is_leaf=_of_torch)
    function = fn.forward if is_torch_module(fn) else fn
    names = _parameter_names(function, len(given))
    values = [*zip(names, given, strict=True), *keywords.items()]
    owners = [("model", fn)] if is_torch_module(fn) else _closed_over(fn)
    held = [tensor for name, value in (*owners, *values) for tensor in tensors_in(name, value)]
    title = type(fn).__name__ if is_torch_module(fn) else getattr(fn, "__name__", "program")
    return title, lambda: fn(*given, **keywords), torch_inputs(held), scopes_of([*owners, *values])


def _meta(leaf: Any) -> Any:
    if not isinstance(leaf, jax.ShapeDtypeStruct):
        return leaf
    from shardnb.torch.annotations import place
    from shardnb.torch.arrays import tensor_of

    tensor = tensor_of(leaf)
    if isinstance(leaf.sharding, NamedSharding):
        place(tensor, from_named_sharding(leaf.sharding, tensor.ndim))
    return tensor


def _parameter_names(function: Callable[..., Any], count: int) -> list[str]:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(function).parameters.values()
    names = [parameter.name for parameter in parameters if parameter.kind in kinds][:count]
    return [*names, *(f"arg{i}" for i in range(len(names), count))]


def _closed_over(fn: Any) -> list[tuple[str, Any]]:
    try:
        found = inspect.getclosurevars(inspect.unwrap(fn))
    except TypeError:
        return []
    every = {**found.globals, **found.nonlocals}
    return [(name, value) for name, value in every.items() if _of_torch(value)]


def mesh_in(values: Iterable[Any], inputs: TorchInputs | None = None) -> SpmdMesh | None:
    """Return the first `SpmdMesh` among values, else the one on which an input is sharded."""
    from shardnb.torch.annotations import get_global_mesh, placement_of

    stated = next((value for value in values if isinstance(value, SpmdMesh)), None)
    placed = [placement_of(one.tensor) for _, one in inputs.every] if inputs else []
    meshes = (sharding.mesh for sharding in placed if sharding is not None)
    return stated or next(meshes, None) or get_global_mesh()


def grid_of(mesh: SpmdMesh, on: str | None = None) -> Grid:
    """Return the grid of a mesh: the target's devices by their ids, each at the place of its id.

    As PyTorch/XLA has it: a mesh as JAX makes it may order those of a TPU otherwise.
    """
    target = target_name(on or "cpu")
    ordered = sorted(
        np.asarray(devices_for(target, list(mesh.mesh_shape)), dtype=object).ravel(),
        key=lambda device: device.id,
    )
    devices = np.array(ordered, dtype=object)
    names = mesh.axis_names or tuple(map(str, range(len(mesh.mesh_shape))))
    return Grid(jax.sharding.Mesh(devices[mesh.logical_mesh], names), target=target)


def torch_request(
    fn: Any,
    args: Sequence[Any],
    named: Mapping[str, Any],
    mesh: str | jax.sharding.Mesh | Grid | None,
    on: str | None,
    in_specs: Tree = None,
) -> Request:
    """Return the request to compile a call of a module, or of a function of tensors."""
    title, call, inputs, scopes = torch_call(fn, args, named)
    owners = () if is_torch_module(fn) else (value for _, value in _closed_over(fn))
    used = mesh_in([*owners, *args, *named.values()], inputs) if mesh is None else None
    grid = make_grid(mesh, None, on) if used is None else grid_of(used, on)
    program = TorchProgram(inputs, scopes, grid.mesh)
    function = TorchFunction(call, program, title)
    stated = _by_name(in_specs, [name for name in inputs.tensors if name != "model"])
    return Request(
        function=function,
        arguments=inputs.arguments(),
        grid=grid,
        in_specs={**program.in_specs(), **stated},
        texts=replace(texts_of(fn.forward if is_torch_module(fn) else fn), title=title),
        placed_in_trace=program.in_specs,
        deep_stacks=True,
    )


def _by_name(specs: Tree, names: Sequence[str]) -> dict[str, Tree]:
    """Return each argument's specs: one for all, one for each, or by name."""
    if specs is None or isinstance(specs, Mapping):
        return dict(specs or {})
    if not isinstance(specs, tuple | list):
        return dict.fromkeys(names, specs)
    if len(specs) != len(names):
        raise ValueError(
            f"in_specs has {len(specs)} entries for {len(names)} arguments: {', '.join(names)}"
        )
    return dict(zip(names, specs, strict=True))
