"""Evidence becomes a report: plain data, with no object of JAX in it."""

from shardnb.findings.assemble import report_of_program, report_of_text

__all__ = ["report_of_program", "report_of_text"]
