"""Edits that were compiled, for the collectives that nobody asked for."""

from shardnb.search.fixes.progress import shown
from shardnb.search.fixes.search import SECONDS, find_fixes

__all__ = ["SECONDS", "find_fixes", "shown"]
