"""JAX's exceptions, explained at the line that the user wrote."""

from shardnb.errors.evidence import NAMES
from shardnb.errors.explain import explain_error

__all__ = ["NAMES", "explain_error"]
