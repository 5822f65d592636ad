"""`XLAShardedTensor`: a tensor together with how it is sharded."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree as pytree

from shardnb.torch.spmd import SpmdSharding, TensorShard


class XLAShardedTensor(torch.Tensor):
    """A tensor, the mesh shape and the spec that it was marked with.

    Operations run on `global_tensor`; their results are such tensors without a mesh and a spec.
    """

    global_tensor: torch.Tensor
    mesh_shape: tuple[int, ...] | None
    partition_spec: tuple[Any, ...] | None

    @staticmethod
    def __new__(cls: Any, tensor: torch.Tensor, *_: Any, **__: Any) -> XLAShardedTensor:
        """Make a tensor of the shape and type of another."""
        with torch._C.DisableTorchFunction():
            made: XLAShardedTensor = torch.Tensor._make_wrapper_subclass(
                cls, tuple(tensor.shape), dtype=tensor.dtype, requires_grad=tensor.requires_grad
            )
        return made

    def __init__(
        self,
        tensor: torch.Tensor,
        mesh_shape: tuple[int, ...] | None = None,
        partition_spec: tuple[Any, ...] | None = None,
        sharding: SpmdSharding | None = None,
        *,
        manual: bool = False,
    ) -> None:
        """Hold a tensor, and how it is sharded."""
        super().__init__()
        self.global_tensor = tensor
        self.mesh_shape = mesh_shape
        self.partition_spec = partition_spec
        self._sharding = sharding
        self._manual = manual

    @property
    def sharding_spec(self) -> str:
        """XLA's text of the sharding; "" where it is not known."""
        if self._manual:
            return "{manual}"
        return "" if self._sharding is None else self._sharding.hlo

    @property
    def sharding_type(self) -> str | None:
        """The kind of the sharding, such as `TILED`; None where it is not known."""
        if self._manual:
            return "MANUAL"
        return None if self._sharding is None else self._sharding.kind

    @property
    def local_shards(self) -> tuple[TensorShard, ...]:
        """What each device holds: slices of the tensor, and the number of the copy."""
        return () if self._sharding is None else self._sharding.shards(tuple(self.shape))

    @property
    def placements(self) -> tuple[Any, ...]:
        """DTensor's `Shard` or `Replicate` for each mesh axis.

        Named axes and tuples count here, which `torch_xla` takes for replicated. Raises ValueError
        where the sharding is not known.
        """
        from torch.distributed.tensor import Replicate, Shard

        if self._sharding is None:
            raise ValueError("the sharding of this tensor is not known: mark it first")
        dims = {axis: dim for dim, entry in enumerate(self._sharding.axes) for axis in entry or ()}
        axes = range(len(self._sharding.mesh.mesh_shape))
        return tuple(Shard(dims[axis]) if axis in dims else Replicate() for axis in axes)

    def __repr__(self) -> str:
        """Show the tensor, and how it is sharded."""
        return f"XLAShardedTensor({self.global_tensor!r}, {self.sharding_spec or 'not sharded'})"

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operation on the global tensors, and wrap its results."""
        given, named = pytree.tree_map_only(
            XLAShardedTensor, lambda tensor: tensor.global_tensor, (args, kwargs or {})
        )
        result = func(*given, **named)
        if getattr(func, "__name__", "") in ("__get__", "__set__", "backward", "__repr__"):
            return result
        return pytree.tree_map_only(torch.Tensor, _wrapped, result)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run what torch calls past the class on the global tensors."""
        given, named = pytree.tree_map_only(
            XLAShardedTensor, lambda tensor: tensor.global_tensor, (args, kwargs or {})
        )
        return func(*given, **named)


def _wrapped(tensor: torch.Tensor) -> torch.Tensor:
    return tensor if isinstance(tensor, XLAShardedTensor) else XLAShardedTensor(tensor)
