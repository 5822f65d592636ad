"""A report with harm in every text that it takes: names, lines, messages, fields of the JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from shardnb.report import InvalidInput, Report
from tests.foreign import samples

HARM = (
    "</script><script>window.harmed=1</script>"
    '<img src=x onerror="window.harmed=1">'
    "\"><svg onload=window.harmed=1>'><iframe srcdoc='<script>parent.harmed=1</script>'>"
    '<a href="javascript:window.harmed=1">a link</a>'
    "[a link](javascript:window.harmed=1) ${window.harmed=1} {{window.harmed=1}} `window.harmed=1`"
    "$\\href{javascript:window.harmed=1}{x}$ &lt;b&gt; --> ]]>"
    "\x1b[31mred\x1b[0m \x1b]8;;http://harm.test\x07link\x1b]8;;\x07 \x9b31m \r\b\x00 \u202egnp.exe\u2066"
)
AXES = {"data": f"{HARM}data", "model": f"{HARM}model"}


def hostile_data() -> dict[str, Any]:
    """Give the data of a report: each text that a report may have is replaced by the harmful one."""
    _, fixed, priced, *_ = samples.reports()
    data = {**priced, "collectives": fixed["collectives"]}
    data["findings"] = [
        {"kind": "donation", "message": "m", "details": "d", "location": {"source": 0, "line": 2}}
    ]
    data["notes"] = ["a note", "long " * 5000]
    data["texts"] = {"optimized": "HloModule"}
    data["sources"] = [{**data["sources"][0], "text": "one\ntwo\n" * 9}, *data["sources"][1:]]
    data = json.loads(json.dumps(renamed(data)))
    for holder, key in list(texts_of(data)):
        before = holder[key]
        holder[key] = f"{before}\n{HARM}" if key == "text" else HARM
        try:
            Report.from_json(json.dumps(data))
        except InvalidInput:  # a word of the vocabulary, an axis, or a type
            holder[key] = before if key != "dtype" else f"{before}{HARM}"
    return data


def hostile_report() -> Report:
    """Return that report."""
    return Report.from_json(json.dumps(hostile_data()))


def renamed(data: Any) -> Any:
    """Return data with harmful names of axes, and of what is kept by name."""
    if isinstance(data, dict):
        keys = {"jax", "python", "optimized", "backward", "forward"}
        return {
            AXES.get(key, HARM + key if key in keys else key): renamed(data[key]) for key in data
        }
    if isinstance(data, list):
        return [renamed(item) for item in data]
    return AXES.get(data, data) if isinstance(data, str) else data


def texts_of(data: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each text of lists and dicts as its holder and its key."""
    for key, value in data.items() if isinstance(data, dict) else enumerate(data):
        if isinstance(value, dict | list):
            yield from texts_of(value)
        elif isinstance(value, str) and value not in AXES.values():
            yield data, key
