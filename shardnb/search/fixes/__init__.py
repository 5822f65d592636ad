"""Edits, each of them compiled, that avoid collectives which the compiler inserted."""

from shardnb.search.fixes.search import SECONDS, find_fixes, find_spec_fixes

__all__ = ["SECONDS", "find_fixes", "find_spec_fixes"]
