"""Write what the front end takes from Python: types of a report, defaults, vocabulary and words.

    python labextension/generate.py

writes `src/generated/report.d.ts` and `src/generated/vocabulary.ts`; both are committed, and
`tests/views/test_generated.py` says when they are old.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any, get_args

import msgspec

from shardnb.report import Report, changes, cost, edits, measured, memory, model, places, typed
from shardnb.report.model import SCHEMA_VERSION
from shardnb.terms.causes import AskedBy
from shardnb.terms.collectives import KINDS, Ring
from shardnb.terms.tables import TABLES
from shardnb.views import live, palette, phrases

TARGET = Path(__file__).parent / "src" / "generated"
_HEAD = "// Generated from shardnb by labextension/generate.py. Do not edit.\n"
_PLAIN = {kind: kind for kind in ("string", "number", "boolean", "null")} | {"integer": "number"}
# The reader puts the groups themselves in place of their number in the table.
_READ = {("Collective", "groups"): "readonly (readonly number[])[]"}


def generated() -> dict[str, str]:
    """Give the text of each file by its name."""
    _, parts = msgspec.json.schema_components((Report, live.Said), ref_template="{name}")
    return {"report.d.ts": _types(parts), "vocabulary.ts": _vocabulary(parts)}


# Types


def _types(parts: Mapping[str, Any]) -> str:
    named = (f"export type {name} = {_union(values)};" for name, values in unions().items())
    shapes = (_interface(name, part) for name, part in sorted(parts.items()))
    return _HEAD + "\n".join(["", *named, "", *shapes])


def unions() -> dict[str, tuple[str, ...]]:
    """Give the vocabularies that the front end reads by name."""
    texts = {"ArrayText": live.ARRAY_TEXTS, "CollectiveText": live.COLLECTIVE_TEXTS}
    named = {name: tuple(table) for name, table in TABLES.items() if name not in _OF_PYTHON}
    ours = {"AskedBy": get_args(AskedBy), "Ring": get_args(Ring), "Tone": tuple(palette.TONES)}
    return {**named, **texts, **ours}


def _union(values: tuple[str, ...]) -> str:
    return " | ".join(map(_text, values))


def _interface(name: str, part: Mapping[str, Any]) -> str:
    if "prefixItems" in part:
        return f"export type {name} = {_type(part)};\n"
    lines = [
        f"  {field}: {_READ.get((name, field)) or _type(kind)};"
        for field, kind in part["properties"].items()
    ]
    return "\n".join([f"export interface {name} {{", *lines, "}", ""])


def _type(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"])
    if "enum" in schema:
        return _named(schema["enum"])
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(map(_type, schema["anyOf"])))
    if schema.get("type") == "object":
        return f"Readonly<Record<string, {_type(schema['additionalProperties'])}>>"
    return _list(schema) if schema.get("type") == "array" else _PLAIN[schema["type"]]


def _named(values: Sequence[str | None]) -> str:
    """Give a vocabulary by its name, and members of no vocabulary one by one."""
    members = {one for one in values if one is not None}
    names = [name for name, union in unions().items() if set(union) == members]
    listed = names[:1] or [_text(one) for one in values if one is not None]
    return " | ".join([*listed, *(["null"] if None in values else [])])


def _list(schema: Mapping[str, Any]) -> str:
    if "prefixItems" in schema:
        return f"readonly [{', '.join(map(_type, schema['prefixItems']))}]"
    item = _type(schema["items"])
    return f"readonly ({item})[]" if " " in item else f"readonly {item}[]"


# Values


def _vocabulary(parts: Mapping[str, Any]) -> str:
    kinds = {name: {"ring": kind.ring, "inPairs": kind.in_pairs} for name, kind in KINDS.items()}
    return "\n".join(
        [
            _HEAD,
            "import type { Kind, Ring, Tone } from './report';\n",
            _constant("MIME_TYPE", live.MIME),
            _constant("VERSION", SCHEMA_VERSION),
            _constant("KINDS", kinds, "Record<Kind, { ring: Ring; inPairs: boolean }>"),
            "/** The ground and text of labels, by cost and cause, and what the colours mean. */",
            _constant("TONES", palette.TONES, "Record<Tone, readonly [string, string]>"),
            _constant("LEGEND", phrases.LEGEND, "Record<Tone, string>"),
            _constant("HUES", palette.HUES),
            _constant("INK", palette.TEXT),
            _constant("EMPTY", palette.EMPTY),
            "/** What fields hold that the data leaves out, and which parts fields are made of. */",
            _constant("SHAPES", _shapes(parts), _SHAPES),
            _constant("REPORT", phrases.REPORT),
            _constant("EDITOR", phrases.EDITOR),
            _constant("WIDGETS", phrases.WIDGETS),
        ]
    )


# Of what a report does not hold, the front end knows nothing.
_OF_PYTHON = {"Primitive", "Function", "Detail", "SpecProblemKind", "ErrorKind"}
_OF_PYTHON |= {"AnnotationKind", "Check"}
_SHAPES = "Record<string, { defaults: object; parts: Record<string, string> }>"


def _constant(name: str, value: Any, kind: str = "") -> str:
    text = json.dumps(value, indent=2, ensure_ascii=True)
    return (
        f"export const {name}{f': {kind}' if kind else ''} = {text}{'' if kind else ' as const'};\n"
    )


def _shapes(parts: Mapping[str, Any]) -> dict[str, Any]:
    kinds = {kind.__name__: kind for kind in _kinds()}
    return {
        name: {"defaults": dict(_defaults(kinds[name])), "parts": dict(_inner(part))}
        for name, part in sorted(parts.items())
        if "properties" in part
    }


def _kinds() -> Iterator[type]:
    """Give the classes that a report and its words are made of."""
    for module in (model, changes, cost, edits, measured, memory, places, typed, live):
        for kind in vars(module).values():
            if isinstance(kind, type) and kind.__module__ == module.__name__:
                yield kind


def _defaults(kind: type) -> Iterator[tuple[str, Any]]:
    if is_dataclass(kind):
        for one in fields(kind):
            if one.default is not MISSING:
                yield one.name, msgspec.to_builtins(one.default)
            elif one.default_factory is not MISSING:
                made = one.default_factory()
                yield one.name, {} if is_dataclass(made) else made
        return
    for one in msgspec.structs.fields(kind):
        if one.default is not msgspec.NODEFAULT:
            yield one.name, msgspec.to_builtins(one.default)
        elif one.default_factory is not msgspec.NODEFAULT:
            yield one.name, one.default_factory()


def _inner(part: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Give the fields that hold parts; those that hold them by name have a `*` before it."""
    for name, schema in part["properties"].items():
        if found := _part(schema):
            yield name, found


def _part(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"])
    if schema.get("type") == "object":
        inner = _part(schema["additionalProperties"])
        return f"*{inner}" if inner else ""
    inside = [*schema.get("anyOf", ()), schema.get("items")]
    found = (_part(one) for one in inside if isinstance(one, Mapping))
    return next(filter(None, found), "")


def _text(value: str) -> str:
    return json.dumps(value)


def main() -> None:
    """Write the files."""
    TARGET.mkdir(exist_ok=True)
    for name, text in generated().items():
        (TARGET / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
