"""Placements that were searched: which specs and which mesh hold and send least."""

from shardnb.planning.planner import plan
from shardnb.report.plans import Plan, Plans

__all__ = ["Plan", "Plans", "plan"]
