"""What a notebook keeps of a report: its data, HTML and text, to be shown without a kernel."""

from __future__ import annotations

from typing import Any

from shardnb.report import Report, json
from shardnb.views import html, text

MIME = "application/vnd.shardnb.report.v1+json"


def mimebundle(report: Report) -> dict[str, Any]:
    """Give the report as text, as HTML, and as data without the programs' texts."""
    return {
        "text/plain": text.render(report),
        "text/html": html.render(report),
        MIME: json.to_data(report, texts=False),
    }
