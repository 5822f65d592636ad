"""Who asked for each collective, and why it is there."""

from shardnb.analysis.causes.edges import Stated
from shardnb.analysis.causes.explain import Causes, Counts, explain_causes
from shardnb.analysis.causes.stated import read_stated

__all__ = ["Causes", "Counts", "Stated", "explain_causes", "read_stated"]
