"""PyTorch/XLA's shardings in JAX's terms: what `mark_sharding(tensor, mesh, spec)` means.

Nothing here imports torch.
"""

from shardnb.torch.spmd import (
    SpmdMesh,
    SpmdSharding,
    TensorShard,
    from_named_sharding,
)

__all__ = ["SpmdMesh", "SpmdSharding", "TensorShard", "from_named_sharding"]
