"""Exceptions of JAX's, explained where the user wrote them."""

from shardnb.analysis.errors.evidence import NAMES
from shardnb.analysis.errors.explain import explain_error

__all__ = ["NAMES", "explain_error"]
