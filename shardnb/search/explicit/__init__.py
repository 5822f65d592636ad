"""From Auto axes to Explicit ones: every placement that a program has to state, in one pass."""

from shardnb.search.explicit.annotate import to_explicit

__all__ = ["to_explicit"]
