"""Exceptions of JAX's, explained where the user wrote them."""

from shardnb.errors.evidence import NAMES
from shardnb.errors.explain import explain_error

__all__ = ["NAMES", "explain_error"]
