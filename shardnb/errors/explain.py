"""From an exception to its report."""

from __future__ import annotations

from shardnb.bugs import contained
from shardnb.compiler import SourceTexts
from shardnb.errors import limits, manual, placing, sharding, uneven
from shardnb.errors.error_draft import Draft
from shardnb.errors.evidence import ErrorEvidence
from shardnb.jax_compat import error_wordings as wordings
from shardnb.jax_compat.parts import lost
from shardnb.mesh import Grid
from shardnb.report.types import ErrorReport


def explain_error(
    error: BaseException,
    *,
    texts: SourceTexts | None = None,
    grid: Grid | None = None,
) -> ErrorReport | None:
    """Explain an exception of JAX's about placement; None for any other.

    `texts` are those that the user wrote, `grid` is the mesh that the program was to run on.
    Candidates for a fix are compiled, and nothing is run. The exception is left as it is, and where
    explaining it fails there is no report.
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
    if wordings.SHARDING_TYPE_ERROR in classes:
        return sharding.explain(evidence)
    explainers = (*uneven.EXPLAINERS, *placing.EXPLAINERS, *manual.EXPLAINERS, *limits.EXPLAINERS)
    drafts = (each.explain(evidence) for each in explainers if each.error in classes)
    return next((draft for draft in drafts if draft is not None), None)
