"""From an exception to its report."""

from __future__ import annotations

import re
from collections.abc import Callable

from shardnb.bugs import contained
from shardnb.compiler import SourceTexts
from shardnb.errors import limits, manual, placing, sharding, uneven
from shardnb.errors.error_draft import Draft
from shardnb.errors.evidence import ErrorEvidence
from shardnb.jax_compat import error_wordings as wordings
from shardnb.jax_compat.parts import lost
from shardnb.mesh import Grid
from shardnb.report.types import ErrorReport
from shardnb.worker.process import CompilerAborted

_ANY = re.compile("").search
# For an error of which class, with which words of JAX's, what explains it: the first that does.
_EXPLAINERS: tuple[
    tuple[
        str,
        Callable[[str], re.Match[str] | None],
        Callable[[ErrorEvidence, re.Match[str]], Draft | None],
    ],
    ...,
] = (
    (wordings.SHARDING_TYPE_ERROR, _ANY, sharding.explain),
    (wordings.INDIVISIBLE_ERROR, _ANY, uneven.uneven),
    ("ValueError", wordings.SHARD_MAP_UNEVEN.search, uneven.mapped),
    ("ValueError", _ANY, uneven.uneven),
    ("AssertionError", wordings.CONSTRAINT_ASSERTS.search, placing.constraint),
    (wordings.DUPLICATE_SPEC_ERROR, wordings.AXIS_TWICE.search, placing.twice),
    ("ValueError", wordings.NOT_IN_SHARDINGS.search, placing.committed),
    ("ValueError", wordings.OTHER_MESH_IN_SHARD_MAP.search, placing.other_mesh),
    ("ValueError", wordings.OTHER_DEVICES.search, placing.devices),
    (CompilerAborted.__name__, _ANY, limits.aborted),
    ("ValueError", _ANY, placing.too_large),
    ("RuntimeError", _ANY, placing.too_large),
    ("ValueError", wordings.AXIS_NOT_IN_MESH.search, placing.unknown_axis),
    ("ValueError", wordings.AXIS_NOT_MANUAL.search, placing.unknown_axis),
    ("ValueError", wordings.SPEC_TOO_LONG.search, placing.too_long),
    ("ValueError", wordings.SHARD_MAP_SPEC_TOO_LONG.search, placing.too_long),
    ("ValueError", wordings.OTHER_TYPE_THAN_IN_SPECS.search, placing.arguments),
    ("ValueError", wordings.SHARDINGS_DO_NOT_MEET.search, sharding.explain),
    ("NotImplementedError", wordings.SHARDINGS_DO_NOT_MEET.search, sharding.explain),
    ("ValueError", _ANY, manual.unproven),
    ("TypeError", wordings.CARRY_CHANGES_TYPE.search, manual.carry),
    ("TypeError", wordings.BRANCHES_DIFFER.search, manual.branches),
    ("NameError", _ANY, manual.unbound),
    ("AssertionError", _ANY, manual.unbound),
    ("ValueError", wordings.NOT_VARYING.search, manual.not_varying),
    ("ValueError", wordings.OTHER_UNREDUCED.search, manual.unreduced_out),
    ("ValueError", wordings.OTHER_MEMORY.search, limits.memories),
    ("ValueError", wordings.LOOP_OVER_SHARDED.search, limits.loop),
    ("ValueError", wordings.BODY_UNDER_OUTER_MESH.search, limits.rewritten_body),
    ("RuntimeError", wordings.SHARDING_NOT_COMPILED.search, limits.annotation_left),
)


def explain_error(
    error: BaseException,
    *,
    texts: SourceTexts | None = None,
    grid: Grid | None = None,
) -> ErrorReport | None:
    """Explain a JAX exception about shardings; None for any other.

    `texts` are the user's source texts, `grid` is the mesh that the program was for. Candidates for
    a fix are compiled, and nothing is run. The exception is not changed; if explaining it fails
    there is no report.
    """
    with contained("the explanation of an error"):
        located = (texts or SourceTexts()).located()
        evidence = ErrorEvidence(error, located, grid)
        draft = _draft(evidence)
        if draft is None:
            return None
        expression = evidence.expression
        return ErrorReport(
            kind=draft.kind,
            error=type(error).__name__,
            message=str(error),
            sentence=draft.sentence,
            cause=" ".join((draft.cause, *(f"{part}." for part in lost("error")))).strip(),
            values=draft.values,
            mesh=draft.mesh or (grid.describe() if grid else None),
            other_mesh=draft.other_mesh,
            location=draft.location or evidence.location,
            expression=draft.expression or (expression.text if expression else ""),
            fixes=draft.fixes,
            candidates=draft.candidates,
            checked=draft.checked,
            sources=located.texts(),
            problems=draft.problems,
        )
    return None


def _draft(evidence: ErrorEvidence) -> Draft | None:
    classes = {kind.__name__ for kind in type(evidence.error).__mro__}
    for error, search, explain in _EXPLAINERS:
        found = search(evidence.message) if error in classes else None
        if found is not None and (draft := explain(evidence, found)) is not None:
            return draft
    return None
