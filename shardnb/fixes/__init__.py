"""Edits that were compiled, for the collectives that nobody asked for."""

from shardnb.fixes.progress import shown
from shardnb.fixes.search import find_fixes

__all__ = ["find_fixes", "shown"]
