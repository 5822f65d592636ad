"""Placements that were searched: which specs and which mesh hold and send least."""

from shardnb.report.plans import Plan, Plans
from shardnb.search.plans.planner import plan

__all__ = ["Plan", "Plans", "plan"]
