"""Evidence becomes a report: plain data, with no object of JAX in it."""

from shardnb.analysis.analyse import analyse
from shardnb.analysis.text import analyse_hlo

__all__ = ["analyse", "analyse_hlo"]
