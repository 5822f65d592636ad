"""What a notebook keeps of a report, to be shown without a kernel: data, words, HTML and text."""

from __future__ import annotations

from typing import Any

from shardnb.report import Report
from shardnb.views import html, live, text

MIME = "application/vnd.shardnb.report.v1+json"


def mimebundle(report: Report) -> dict[str, Any]:
    """Give the report as text, as HTML, and as data with the live view's words."""
    return {
        "text/plain": text.render(report),
        "text/html": html.render(report),
        MIME: live.to_data(report),
    }
