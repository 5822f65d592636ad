"""The report as plain data, and its JSON; needs no JAX."""

from shardnb.report.cost import Cost, Work
from shardnb.report.edits import Fix, NewSpec, ProposedEdit
from shardnb.report.invalid_input import InvalidInput
from shardnb.report.memory import Held, Memory, Peak
from shardnb.report.model import (
    Axis,
    Blocked,
    Collective,
    Finding,
    Location,
    Mesh,
    Origin,
    Overlap,
    Report,
    Run,
    Source,
    Step,
    Value,
)

__all__ = [
    "Axis",
    "Blocked",
    "Collective",
    "Cost",
    "Finding",
    "Fix",
    "Held",
    "InvalidInput",
    "Location",
    "Memory",
    "Mesh",
    "NewSpec",
    "Origin",
    "Overlap",
    "Peak",
    "ProposedEdit",
    "Report",
    "Run",
    "Source",
    "Step",
    "Value",
    "Work",
]
