"""Placements that were searched: which specs and which mesh hold and send least."""

from shardnb.report.plans import Plan, Plans
from shardnb.search.plans.planner import Budget, plan, search_plans

__all__ = ["Budget", "Plan", "Plans", "plan", "search_plans"]
