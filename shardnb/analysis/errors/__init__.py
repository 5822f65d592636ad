"""Exceptions of JAX's, explained where the user wrote them."""

from shardnb.analysis.errors.explain import attach, explain_error

__all__ = ["attach", "explain_error"]
