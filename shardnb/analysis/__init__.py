"""Evidence becomes a report: plain data, with no object of JAX in it."""

from shardnb.analysis.analyse import analyse

__all__ = ["analyse"]
