"""For each value of the user's lines: its sharding, and why it has that one."""

from shardnb.propagation.values import Explained, values_of

__all__ = ["Explained", "values_of"]
