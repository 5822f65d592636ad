"""Evidence becomes a report: plain data, with no object of JAX in it."""

from shardnb.findings.assemble import assemble_report
from shardnb.findings.assemble_text import assemble_hlo_report

__all__ = ["assemble_hlo_report", "assemble_report"]
