"""Evidence becomes a report: plain data, with no object of JAX in it."""

from shardnb.findings.assemble import report_of_program, report_of_text
from shardnb.findings.program_evidence import read_ahead

__all__ = ["read_ahead", "report_of_program", "report_of_text"]
