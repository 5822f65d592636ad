"""Who asked for each collective, and why it is there."""

from shardnb.causes.counts import Counts
from shardnb.causes.explain import Causes, explain_causes
from shardnb.causes.stated_shardings import UserShardings
from shardnb.causes.user_shardings import read_user_shardings

__all__ = ["Causes", "Counts", "UserShardings", "explain_causes", "read_user_shardings"]
