"""The sharding of each value of the user's lines, and why it has it."""

from shardnb.propagation.values import Explained, values_of

__all__ = ["Explained", "values_of"]
