"""PyTorch/XLA's annotations of tensors: in a program that is traced, and outside of one.

They have the meaning and the refusals of `torch_xla.distributed.spmd` 2.9. On data an annotation
says how the tensor is uploaded; on a value that a program computes it is one node of its graph.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import jax
import torch
from jax.sharding import NamedSharding, PartitionSpec
from torch.utils.weak import WeakIdKeyDictionary
from torchax.tensor import Tensor

from shardnb.torch import trace as traces
from shardnb.torch.marks import Frame, callers
from shardnb.torch.operations import relabelled
from shardnb.torch.sharded_tensor import XLAShardedTensor
from shardnb.torch.spmd import Entry, SpmdMesh, SpmdSharding
from shardnb.torch.trace import Trace
from shardnb.torch.traced import Traced


@dataclass(frozen=True)
class Placement:
    """How a tensor with data is sharded; `frames` are the call that marked it, innermost first.

    None for a tensor that a program returned.
    """

    sharding: SpmdSharding
    frames: tuple[Frame, ...] | None = None


_PLACED: Any = WeakIdKeyDictionary()
_GLOBAL: list[SpmdMesh] = []


def set_global_mesh(mesh: SpmdMesh) -> None:
    """Set the mesh that `enable_manual_sharding` uses where it is given none."""
    _GLOBAL[:] = [mesh]


def get_global_mesh() -> SpmdMesh | None:
    """Return the mesh of `set_global_mesh`, or None."""
    return _GLOBAL[0] if _GLOBAL else None


def placement_of(tensor: torch.Tensor) -> SpmdSharding | None:
    """Return how a tensor with data is sharded: as it was marked, or as a program left it."""
    placement: Placement | None = _PLACED.get(_plain(tensor))
    return None if placement is None else placement.sharding


def call_that_marked(tensor: torch.Tensor) -> tuple[Frame, ...] | None:
    """Return the stack of the call that marked a tensor; None where none did."""
    placement: Placement | None = _PLACED.get(_plain(tensor))
    return None if placement is None else placement.frames


def place(
    tensor: torch.Tensor, sharding: SpmdSharding | None, frames: tuple[Frame, ...] | None = None
) -> None:
    """Remember how a tensor with data is sharded, or that it is not any more."""
    if sharding is not None:
        _PLACED[_plain(tensor)] = Placement(sharding, frames)
    else:
        _PLACED.pop(_plain(tensor), None)


def mark_sharding(t: Any, mesh: SpmdMesh, partition_spec: Iterable[Entry]) -> XLAShardedTensor:
    """Shard a tensor over a mesh, in place; returns it as an `XLAShardedTensor`.

    `partition_spec` has an entry for each dimension. On a value that a program computes it adds a
    constraint to the program, but none to the gradient. Raises ValueError for a spec that does not
    fit, and RuntimeError for data that is sharded otherwise already.

    >>> import torch
    >>> mesh = SpmdMesh(range(8), (4, 2), ("data", "model"))
    >>> mark_sharding(torch.zeros(8, 4), mesh, ("data", None)).sharding_spec
    '{devices=[4,1,2]0,1,2,3,4,5,6,7 last_tile_dim_replicate}'
    """
    sharding, plain, trace = _sharding(t, mesh, partition_spec), _plain(t), traces.current()
    if trace is None:
        _refuse_other(placement_of(plain), sharding)
        place(plain, sharding, callers())
    else:
        _mark(trace, plain, sharding)
    return XLAShardedTensor(plain, mesh.mesh_shape, tuple(partition_spec), sharding)


def mark_sharding_with_gradients(
    t: Any, mesh: SpmdMesh, partition_spec: Iterable[Entry]
) -> torch.Tensor:
    """Return a copy of a tensor that is sharded over a mesh, and whose gradient is, too.

    >>> import torch
    >>> mark_sharding_with_gradients(torch.zeros(8), SpmdMesh(range(8), (8,)), (0,)).shape
    torch.Size([8])
    """
    sharding, plain, trace = _sharding(t, mesh, partition_spec), _plain(t), traces.current()
    if trace is None:
        copied: torch.Tensor = plain.clone()
        place(copied, sharding, callers())
        return copied
    traced, marks = trace.wrapped(plain), trace.marks
    made = marks.add(
        "mark_sharding_with_gradients", sharding, traced, _subject(trace, plain), gradients=True
    )
    if marks.variant.without == made.number:
        return _computed(trace, lambda value: value, traced)
    both = marks.variant.toggled != made.number
    result = _computed(trace, _constraint(marks.named_sharding(sharding), both=both), traced)
    if marks.variant.gradients:
        trace.note_gradient(result, made.number)
    return result


def clear_sharding(t: Any) -> torch.Tensor:
    """Forget how a tensor with data is sharded; returns the plain tensor.

    >>> import torch
    >>> x = torch.zeros(8)
    >>> clear_sharding(mark_sharding(x, SpmdMesh(range(8), (8,)), (0,))) is x
    True
    """
    plain: torch.Tensor = _plain(t)
    trace = traces.current()
    if trace is None:
        place(plain, None)
    elif not isinstance(plain, Traced):
        trace.marks.placed.pop(id(plain), None)
        trace.marks.cleared.add(id(plain))
    return plain


def enable_manual_sharding(
    t: Any, partition_spec: Iterable[Entry], mesh: SpmdMesh | None = None
) -> XLAShardedTensor:
    """Shard a tensor, and go on with what each device holds of it, as a tensor of a shard's shape.

    Operations on it are each device's own. `mesh` is the one of `set_global_mesh` by default. A
    dimension that does not divide is padded with zeros. Raises RuntimeError outside of a program.
    """
    mesh = _some_mesh(mesh)
    sharding, plain, trace = _sharding(t, mesh, partition_spec), _plain(t), traces.current()
    if trace is None:
        raise RuntimeError("a tensor is manual only in a program: use it in %%shard --from torch")
    _mark(trace, plain, sharding, "enable_manual_sharding")
    traced = trace.wrapped(plain)
    named = trace.marks.named_sharding(sharding)
    manual = _computed(trace, lambda value: _blocks(value, sharding, named), traced)
    result = relabelled(manual, manual=True)
    return XLAShardedTensor(result, mesh.mesh_shape, tuple(partition_spec), sharding, manual=True)


def disable_manual_sharding(
    t: Any,
    partition_spec: Iterable[Entry],
    full_shape: Iterable[int],
    mesh: SpmdMesh | None = None,
) -> XLAShardedTensor:
    """Go back from what each device holds to the tensor of `full_shape`, sharded by the spec.

    Raises RuntimeError for a tensor that is not manual.
    """
    mesh, plain, trace = _some_mesh(mesh), _plain(t), traces.current()
    if trace is None or not getattr(plain, "manual", False):
        raise RuntimeError("expected a manual tensor, which enable_manual_sharding returns")
    spec, shape = tuple(partition_spec), tuple(full_shape)
    sharding = mesh.sharding(spec)
    held = tuple(-(-size // count) for size, count in zip(shape, sharding.tiles, strict=True))
    if held != tuple(plain.shape):
        raise ValueError(
            f"a tensor of {list(shape)} sharded by {spec} has {list(held)} per device, got "
            f"{list(plain.shape)}"
        )
    named = trace.marks.named_sharding(sharding)
    whole = _computed(
        trace, lambda value: _joined(value, shape, named), relabelled(plain, manual=False)
    )
    return XLAShardedTensor(whole, mesh.mesh_shape, spec, sharding)


def _some_mesh(mesh: SpmdMesh | None) -> SpmdMesh:
    mesh = mesh or get_global_mesh()
    if mesh is None:
        raise ValueError("expected a mesh: pass one, or set it with set_global_mesh")
    return mesh


def _plain(t: Any) -> Any:
    if isinstance(t, XLAShardedTensor):
        return t.global_tensor
    if not isinstance(t, torch.Tensor):
        raise TypeError(f"expected a tensor, got the {type(t).__name__} {t!r}")
    return t


def _sharding(t: Any, mesh: SpmdMesh, spec: Iterable[Entry]) -> SpmdSharding:
    if not isinstance(mesh, SpmdMesh):
        raise TypeError(f"expected a mesh such as SpmdMesh(range(8), (8,)), got {mesh!r}")
    sharding = mesh.sharding(spec)
    sharding.check_rank(tuple(_plain(t).shape))
    return sharding


def _refuse_other(before: SpmdSharding | None, sharding: SpmdSharding) -> None:
    """Refuse to shard data otherwise; what is replicated may be sharded."""
    if before is None or before.kind == "REPLICATED" or before.hlo == sharding.hlo:
        return
    raise RuntimeError(
        f"the tensor is sharded as {before.hlo} already, and {sharding.hlo} is another sharding: "
        "call clear_sharding first"
    )


def _subject(trace: Trace, plain: Any) -> str:
    """Return the name of the input that a tensor is, "" for one that the program computed."""
    standin = trace.standins.get(id(plain))
    return standin.name if standin is not None and not standin.is_changed else ""


def _mark(
    trace: Trace, plain: Any, sharding: SpmdSharding, function: str = "mark_sharding"
) -> None:
    """Annotate a tensor of a program: an input where it is placed, another by a constraint."""
    marks, traced = trace.marks, trace.wrapped(plain)
    if getattr(traced, "manual", False):
        raise RuntimeError("a manual tensor cannot be sharded: call disable_manual_sharding first")
    subject = _subject(trace, plain)
    if subject:
        before = marks.placed.get(id(plain))
        if before is None and id(plain) not in marks.cleared:
            before = placement_of(plain)
        _refuse_other(before, sharding)
        if before is not None and before.hlo == sharding.hlo:
            return
    made = marks.add(function, sharding, traced, subject, gradients=False)
    named = marks.named_sharding(sharding)
    if marks.variant.gradients:
        trace.note_gradient(plain, made.number)
    if marks.variant.without == made.number:
        return
    both = marks.variant.toggled == made.number
    if subject and not uneven(sharding, made.shape):
        marks.placed[id(plain)] = sharding
        if both:
            trace.standins[id(plain)].used = _computed(trace, _constraint(named, both=True), traced)
    else:
        _constrain_in_place(trace, traced, named, both=both)


def uneven(sharding: SpmdSharding, shape: tuple[int, ...]) -> bool:
    """Whether a dimension does not divide, so that PyTorch/XLA pads it."""
    return any(size % count for size, count in zip(shape, sharding.tiles, strict=True))


def _constrain_in_place(trace: Trace, traced: Any, named: NamedSharding, *, both: bool) -> None:
    if not both:
        value = jax.lax.with_sharding_constraint(traced.jax(), named)
        if hasattr(traced, "replace_source_jax"):
            traced.update(value)
        else:
            traced._elem = value
        return

    def constrain_(tensor: Any) -> Any:
        tensor._elem = jax.lax.with_sharding_constraint(tensor._elem, named)
        return tensor

    trace.computed(constrain_, (traced,), {})


def _computed(trace: Trace, function: Any, traced: Any) -> Any:
    """Compute a new tensor with JAX, its gradient too."""

    def compute(tensor: Any) -> Any:
        return Tensor(function(tensor.jax()), trace.env)

    return trace.computed(compute, (traced,), {})


def _constraint(named: NamedSharding, *, both: bool) -> Any:
    def constrain(value: Any) -> Any:
        return jax.lax.with_sharding_constraint(value, named)

    if both:
        return constrain  # JAX constrains its cotangent, too
    forward = jax.custom_vjp(constrain)
    forward.defvjp(lambda value: (constrain(value), None), lambda _, cotangent: (cotangent,))
    return forward


def _blocks(value: Any, sharding: SpmdSharding, named: NamedSharding) -> Any:
    """Return the block of each device, along a leading dimension of the devices in mesh order."""
    padded = [(0, -size % count) for size, count in zip(value.shape, sharding.tiles, strict=True)]
    value = jax.lax.with_sharding_constraint(jax.numpy.pad(value, padded), named)
    return _for_each(lambda block: block[None], named, named.spec, _devices(named))(value)


def _joined(blocks: Any, shape: tuple[int, ...], named: NamedSharding) -> Any:
    """Return the tensor whose blocks the devices hold; those that share one hold the same."""
    whole = _for_each(lambda block: block[0], named, _devices(named), named.spec)(blocks)
    return whole[tuple(slice(0, size) for size in shape)]


def _for_each(
    function: Any, named: NamedSharding, before: PartitionSpec, after: PartitionSpec
) -> Any:
    # Nothing is sent: without the check, devices that hold the same are taken at their word, as
    # SPMDShardToFullShape takes them.
    return jax.shard_map(
        function, mesh=named.mesh, in_specs=before, out_specs=after, check_vma=False
    )


def _devices(named: NamedSharding) -> PartitionSpec:
    return PartitionSpec(tuple(named.mesh.axis_names))
