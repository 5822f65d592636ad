"""The report as plain data, its JSON, and what can be said of it without JAX."""

from shardnb.report.model import (
    Axis,
    Collective,
    Finding,
    Fix,
    Location,
    Memory,
    Mesh,
    Report,
    Run,
    Source,
    Value,
)

__all__ = [
    "Axis",
    "Collective",
    "Finding",
    "Fix",
    "Location",
    "Memory",
    "Mesh",
    "Report",
    "Run",
    "Source",
    "Value",
]
