"""A report as JSON and back.

The groups of collectives are stored once, in a table, and fields with their default value are left
out, so that a report of 5,000 collectives on 2048 devices stays below 3 MB.
"""

from __future__ import annotations

import base64
import zlib
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any

import msgspec

from shardnb.report import valid
from shardnb.report.invalid_input import InvalidInput, place, shown_number
from shardnb.report.model import SCHEMA_VERSION, Report


def encode(report: Report, *, texts: bool = True) -> str:
    """Write a report as JSON."""
    return encoded(to_data(report, texts=texts))


def encoded(data: Any) -> str:
    """Write plain data as JSON."""
    try:
        return msgspec.json.encode(data).decode()
    except UnicodeEncodeError:
        # A cell may hold half of a surrogate pair, which UTF-8 cannot encode.
        return msgspec.json.encode(_printable(data)).decode()


def _printable(data: Any) -> Any:
    if isinstance(data, str):
        return data.encode("utf-8", "backslashreplace").decode()
    if isinstance(data, dict):
        return {_printable(key): _printable(value) for key, value in data.items()}
    return [_printable(item) for item in data] if isinstance(data, list | tuple) else data


def to_data(report: Report, *, texts: bool = True) -> dict[str, Any]:
    """Return a report as the plain data of its JSON."""
    data: dict[str, Any] = _compact(report)
    data["version"] = report.version
    if not texts:
        data.pop("texts", None)
    table: dict[tuple[tuple[int, ...], ...], int] = {}
    for collective in data.get("collectives", ()):
        collective["groups"] = table.setdefault(collective["groups"], len(table))
    data["group_table"] = list(table)
    return data


# A notebook gives each item of a list a line of its own: what is longer than this is deflated.
_PLAIN = 60_000
# Bytes of JSON that are inflated: a hundred times what 5,000 collectives take, and no more.
_MOST = 1 << 26


def packed(data: dict[str, Any]) -> dict[str, Any]:
    """Return a report's data as a notebook keeps it: as it is, or deflated where it is large."""
    written = encoded(data)
    if len(written) <= _PLAIN:
        return data
    deflated = base64.b64encode(zlib.compress(written.encode(), 9)).decode()
    return {"version": data["version"], "deflated": deflated}


def _inflated(deflated: Any) -> bytes:
    """Inflate the JSON of a large report, which no report's is larger than."""
    try:
        inflating = zlib.decompressobj()
        written = inflating.decompress(base64.b64decode(deflated, validate=True), _MOST)
    except (ValueError, TypeError, zlib.error) as error:
        raise InvalidInput(f"this report is damaged: {error}") from error
    if not inflating.eof:
        raise InvalidInput(f"this report is damaged: it is cut off, or larger than {_MOST:,} bytes")
    return written


def decode(text: str | bytes) -> Report:
    """Read a report from its JSON."""
    data = _versioned(text)
    if "deflated" in data:
        data = _versioned(_inflated(data["deflated"]))
    with place("this JSON is not a report"):
        return valid.check(_from_data(data))


def reports_from_json(text: str | bytes) -> list[Report]:
    """Read one report, or the reports of an array."""
    try:
        data = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InvalidInput(f"this is not the JSON of a report: {error}") from error
    if not isinstance(data, list):
        return [decode(text)]
    return [decode(msgspec.json.encode(each)) for each in data]


def _versioned(text: str | bytes) -> dict[str, Any]:
    """Read the data of a report of a version that is known."""
    try:
        data = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InvalidInput(f"this is not the JSON of a report: {error}") from error
    version = data.get("version") if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(version, int):
        raise InvalidInput("this JSON is not a report: it has no version number")
    if version > SCHEMA_VERSION:
        raise InvalidInput(
            f"the report has version {shown_number(version)}, and this shardnb reads up to "
            f"{SCHEMA_VERSION}: update shardnb to read it"
        )
    return data


def _from_data(data: dict[str, Any]) -> Report:
    table = data.pop("group_table", [])
    try:
        groups = msgspec.convert(table, tuple[tuple[tuple[int, ...], ...], ...])
        for collective in data.get("collectives", ()):
            collective["groups"] = groups[collective["groups"]]
        return msgspec.convert(data, Report)
    except (msgspec.ValidationError, LookupError, TypeError, AttributeError) as error:
        raise InvalidInput(str(error)) from error


def schema() -> dict[str, Any]:
    """Return the JSON Schema of what `to_json` writes."""
    result = msgspec.json.schema(Report)
    parts = result["$defs"]
    parts["Collective"]["properties"]["groups"] = {
        "type": "integer",
        "description": "index into group_table",
    }
    parts["Report"]["properties"]["group_table"] = msgspec.json.schema(
        tuple[tuple[tuple[int, ...], ...], ...]
    )
    return result


@cache
def _plan(kind: type) -> tuple[tuple[str, Any], ...]:
    return tuple((item.name, _default(item)) for item in fields(kind))


def _default(item: Any) -> Any:
    return item.default_factory() if item.default_factory is not MISSING else item.default


def _compact(value: Any) -> Any:
    kind: type = type(value)
    if is_dataclass(kind):
        pairs = ((name, getattr(value, name), default) for name, default in _plan(kind))
        return {name: _compact(item) for name, item, default in pairs if item != default}
    if isinstance(value, tuple) and value and is_dataclass(value[0]):
        return [_compact(item) for item in value]
    return dict(value) if hasattr(value, "items") else value
