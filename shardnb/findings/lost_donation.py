"""Donated inputs whose memory no result reuses."""

from __future__ import annotations

import re
from collections.abc import Iterator

from shardnb.findings.evidence import Evidence
from shardnb.report.model import Finding

_ALIASED = re.compile(r"\((\d+), \{[\d, ]*\}")


def find(evidence: Evidence) -> Iterator[Finding]:
    """Find the donated inputs that no result reuses, as the header of the final program says."""
    header = evidence.module.header.partition("entry_computation")[0]
    aliases = header.partition("input_output_alias={")[2].partition("buffer_donor=")[0]
    used = {int(number) for number in _ALIASED.findall(aliases)}
    for number, value in evidence.donated.items():
        if number not in used:
            yield Finding(
                "donation",
                f"{value.name} was donated and no result reuses its memory: "
                "none has its shape, type and placement",
                wasted_bytes=value.shard_bytes,
                subject=value.name,
            )
