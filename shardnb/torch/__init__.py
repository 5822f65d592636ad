"""PyTorch/XLA's shardings, and its annotations of tensors, in JAX's terms.

`SpmdMesh` and its shardings need no torch. The annotations, such as `mark_sharding`, need the extra
`shardnb[torch]`, and are imported where they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from shardnb.torch.spmd import (
    SpmdMesh,
    SpmdSharding,
    TensorShard,
    from_named_sharding,
)

if TYPE_CHECKING:
    from shardnb.torch.annotations import (
        clear_sharding,
        disable_manual_sharding,
        enable_manual_sharding,
        get_global_mesh,
        mark_sharding,
        mark_sharding_with_gradients,
        set_global_mesh,
    )
    from shardnb.torch.sharded_tensor import XLAShardedTensor
    from shardnb.torch.torch_xla import from_text, sharding_of

__all__ = [
    "SpmdMesh",
    "SpmdSharding",
    "TensorShard",
    "XLAShardedTensor",
    "clear_sharding",
    "disable_manual_sharding",
    "enable_manual_sharding",
    "from_named_sharding",
    "from_text",
    "get_global_mesh",
    "mark_sharding",
    "mark_sharding_with_gradients",
    "set_global_mesh",
    "sharding_of",
]

_HOMES = {
    "XLAShardedTensor": "sharded_tensor",
    "from_text": "torch_xla",
    "sharding_of": "torch_xla",
}
_LATER = {name for name in __all__ if name not in globals()}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = _HOMES.get(name, "annotations")
    if home != "torch_xla":
        from shardnb.torch.extra import torchax

        torchax()
    return getattr(importlib.import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return __all__
