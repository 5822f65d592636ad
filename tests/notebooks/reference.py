"""The reference, from the docstrings: `python -m tests.notebooks.reference` writes it anew."""

import dataclasses
import inspect
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import nbformat

import shardnb
import shardnb.testing
import shardnb.watching
from shardnb import report
from shardnb.magics.magics import ShardMagics
from shardnb.report import measured, plans, programs, types

PATH = Path(__file__).parents[2] / "notebooks" / "reference.ipynb"

INTRODUCTION = """\
# Reference

Every magic and every function, from their docstrings. In a notebook `%%shard?`, `%mesh?` and
`sn.explain?` show the same. Bytes are bytes of one device where nothing else is said, seconds are
seconds, and shapes are in elements. How the numbers are made, and what *unknown* means, is on
[a page of its own](how_a_report_is_made.ipynb)."""

RESULTS = (
    plans.Plans,
    plans.Plan,
    types.ShardMapCheck,
    types.MissingCollective,
    types.ExplicitPlan,
    types.Annotation,
    types.Comparison,
    types.ErrorReport,
    programs.Programs,
    programs.Dumped,
    measured.Profile,
    measured.Measured,
    measured.DeviceTimeline,
    shardnb.watching.Watched,
)
_SIGNATURE_WIDTH = 80


def built():
    """Give the reference as a notebook."""
    cells = [nbformat.v4.new_markdown_cell(text, id=name) for name, text in _cells()]
    notebook = nbformat.v4.new_notebook(cells=cells)
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return notebook


def _cells() -> Iterator[tuple[str, str]]:
    yield "reference", INTRODUCTION
    yield "magics", "## Magics\n\nAfter `%load_ext shardnb`."
    yield "magic-mesh", _magic("%mesh", ShardMagics.mesh)
    yield "magic-shard", _magic("%%shard and %shard", ShardMagics.shard)
    yield "functions", "## Functions\n\nAfter `import shardnb as sn`."
    for name in sorted(set(shardnb.__all__) - {"Report"}):
        yield f"function-{_id(name)}", _entry(f"sn.{name}", getattr(shardnb, name))
    for name in ("assert_collectives", "assert_no_inferred", "assert_fits", "assert_golden"):
        function = getattr(shardnb.testing, name)
        yield f"function-{_id(name)}", _entry(f"shardnb.testing.{name}", function)
    yield "report", "## The report\n\nPlain data: each of these is a frozen dataclass."
    for part in _parts():
        yield f"class-{_id(part.__name__)}", _class(part)
    yield "results", "## What other functions give"
    for part in RESULTS:
        yield f"class-{_id(part.__name__)}", _class(part)


def _parts() -> list[type]:
    first = [report.Report, report.Collective, report.Value, report.Mesh, report.Axis]
    rest = [getattr(report, name) for name in report.__all__]
    return [
        *first,
        *(part for part in rest if part not in first and dataclasses.is_dataclass(part)),
    ]


def _id(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])|_", "-", name).lower()


def _magic(title: str, magic) -> str:
    return f"### `{title}`\n\n{_text(inspect.getdoc(magic))}"


def _entry(title: str, fn) -> str:
    signature = f"{title.rpartition('.')[2]}{_signature(fn)}"
    home = inspect.getmodule(fn).__name__.replace(".", "/")
    doc = _text(inspect.getdoc(fn))
    return f"### `{title}`\n\n```python\n{signature}\n```\n\n{doc}\n\nSource: `{home}.py`"


def _signature(fn) -> str:
    """Write the parameters without their types, in lines that are not too long."""
    if isinstance(fn, type) and issubclass(fn, Exception):
        return "(message)"
    parameters = inspect.signature(fn).parameters.values()
    bare = [one.replace(annotation=inspect.Parameter.empty) for one in parameters]
    text = str(inspect.Signature(bare))
    if len(text) <= _SIGNATURE_WIDTH:
        return text
    return "(\n    " + ",\n    ".join(_split(text[1:-1])) + ",\n)"


def _split(parameters: str) -> list[str]:
    return re.split(r", (?![^(\[]*[)\]])", parameters)


def _text(doc: str | None) -> str:
    """Write a docstring as Markdown: examples and indented parts are code."""
    blocks = (doc or "").split("\n\n")
    return "\n\n".join(_block(block) for block in blocks)


def _block(block: str) -> str:
    lines = block.splitlines()
    if block.startswith(">>>"):
        return f"```pycon\n{block}\n```"
    if lines and lines[0] in ("Args:", "Returns:", "Raises:"):
        return _section(lines)
    if all(line.startswith("    ") for line in lines):
        return "```\n" + "\n".join(line[4:] for line in lines) + "\n```"
    return block


def _section(lines: list[str]) -> str:
    """Write a section of named parts as a list."""
    head, *body = lines
    joined = re.sub(r"\n {8}", " ", "\n".join(body))
    named = head != "Returns:"
    items = [
        re.sub(r"^(\w+):", r"`\1`:", one.strip()) if named else one.strip()
        for one in joined.splitlines()
    ]
    return "\n".join([f"{head}\n", *(f"- {item}" for item in items)])


def _class(part: type) -> str:
    own = [_field(field) for field in dataclasses.fields(part) if field.name[0] != "_"]
    parts = [f"### `{part.__name__}`", _text(inspect.getdoc(part)), "\n".join(own)]
    methods = [_method(name, value) for name, value in vars(part).items() if _shown(name, value)]
    return "\n\n".join([*parts, *methods])


def _field(field: dataclasses.Field) -> str:
    kind = field.type if isinstance(field.type, str) else field.type.__name__
    return f"- `{field.name}`: `{kind}`"


def _shown(name: str, value) -> bool:
    kinds = (property, cached_property, classmethod)
    return not name.startswith("_") and (inspect.isfunction(value) or isinstance(value, kinds))


def _method(name: str, value) -> str:
    if isinstance(value, property | cached_property):
        return f"**`.{name}`** {_text(inspect.getdoc(value))}"
    fn = value.__func__ if isinstance(value, classmethod) else value
    return f"**`.{name}{_without_self(fn)}`** {_text(inspect.getdoc(fn))}"


def _without_self(fn) -> str:
    _self, *rest = inspect.signature(fn).parameters.values()
    bare = [one.replace(annotation=inspect.Parameter.empty) for one in rest]
    return str(inspect.Signature(bare))


def written() -> str:
    """Give the text of the file."""
    return nbformat.writes(built()) + "\n"


if __name__ == "__main__":
    PATH.write_text(written(), encoding="utf-8")
