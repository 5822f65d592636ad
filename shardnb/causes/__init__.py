"""Who asked for each collective, and why it is there."""

from shardnb.causes.explain import Causes, Counts, explain_causes
from shardnb.causes.stated_shardings import Stated
from shardnb.causes.user_shardings import read_stated

__all__ = ["Causes", "Counts", "Stated", "explain_causes", "read_stated"]
