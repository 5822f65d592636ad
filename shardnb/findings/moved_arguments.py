"""Arguments that are resharded at each call."""

from __future__ import annotations

from collections.abc import Iterator

from shardnb.findings.evidence import Evidence
from shardnb.report.model import Finding


def find(evidence: Evidence) -> Iterator[Finding]:
    """Find arguments committed to another sharding than the program takes, with the cost.

    An array of the kernel's own devices goes to emulated ones in any case: that is not a finding.
    """
    for problem in evidence.moved:
        if problem.kind == "committed" or not evidence.mesh.emulated:
            fix = f"; or move it once: {problem.fix}" if problem.fix else ""
            # An even share: which devices receive more than others is nowhere said.
            moved = problem.moved_bytes
            share = None if moved is None else -(-moved // evidence.mesh.size)
            yield Finding("moved", f"{problem.message}{fix}", wasted_bytes=share)
