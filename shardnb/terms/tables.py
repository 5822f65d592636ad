"""All vocabularies together, for what is made from each of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shardnb.terms.axis_types import AXIS_TYPES
from shardnb.terms.causes import ASKERS, DETAILS, PHASES, REASONS
from shardnb.terms.checks import CHECKS
from shardnb.terms.collectives import KINDS
from shardnb.terms.errors import ANNOTATIONS, ERRORS, SPEC_PROBLEMS
from shardnb.terms.findings import FINDINGS
from shardnb.terms.origins import DIRECTIONS, ORIGINS, STOPS
from shardnb.terms.primitives import FUNCTIONS, PRIMITIVES
from shardnb.terms.roles import ROLES

TABLES: Mapping[str, Mapping[Any, Any]] = {
    "Kind": KINDS,
    "Asker": ASKERS,
    "Reason": REASONS,
    "Detail": DETAILS,
    "Phase": PHASES,
    "Role": ROLES,
    "FindingKind": FINDINGS,
    "SpecProblemKind": SPEC_PROBLEMS,
    "ErrorKind": ERRORS,
    "Check": CHECKS,
    "AnnotationKind": ANNOTATIONS,
    "OriginKind": ORIGINS,
    "Direction": DIRECTIONS,
    "Stop": STOPS,
    "AxisType": AXIS_TYPES,
    "Primitive": PRIMITIVES,
    "Function": FUNCTIONS,
}
"""The tables by the name of their `Literal`."""
