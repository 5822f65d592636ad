"""From Auto axes to Explicit ones: every placement that a program has to state, in one pass."""

from shardnb.explicit.annotate import to_explicit

__all__ = ["to_explicit"]
