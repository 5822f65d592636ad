"""The kinds of sharding that PyTorch/XLA's `ShardingType` names and a spec can lead to."""

from typing import Literal

SpmdKind = Literal["REPLICATED", "MAXIMAL", "TILED", "PARTIAL"]
