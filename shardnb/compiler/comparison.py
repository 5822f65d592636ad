"""Compiled programs side by side, compared without names and numbers."""

from __future__ import annotations

import difflib
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shardnb.report.model import Mesh, Report
from shardnb.report.types import Column, Comparison, ProgramDiff
from shardnb.texts import hlo
from shardnb.texts.hlo import Module
from shardnb.texts.instruction import Instruction, attribute
from shardnb.texts.replica_groups import AxisFinder

# What names and numbers things, and says who made them. No device does anything else for it; the
# groups are compared as devices, as the same ones have several spellings.
_DROPPED = ("metadata", "sharding", "origin", "frontend_attributes", "replica_groups")
_NAME = re.compile(r"%[\w.\-]+")
_CHANNEL = re.compile(r"channel_id=\d+")
_MARK = 'is_spmd_generated="true"'
_CHOICE = "allow_spmd_sharding_propagation_to_output"
# `key=value` in the first line, where a value in braces may hold braces in braces.
_HEADER = re.compile(r"(\w+)=((?:\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\})|[^,\s]+)")
# The parts of the header that have names in them.
_NAMED = {"entry_computation_layout", "frontend_attributes"}


@dataclass(frozen=True)
class Normal:
    """A program without names and numbers: its instructions in order, its header, its marks."""

    lines: tuple[str, ...]
    header: dict[str, str]
    marks: tuple[bool, ...]


def compare(columns: Sequence[Column]) -> Comparison:
    """Put programs side by side and compare each with the first that compiled."""
    compiled = [c for c in columns if c.report is not None and _text(c.report)]
    diffs = tuple(diff(compiled[0], other) for other in compiled[1:]) if compiled else ()
    return Comparison(tuple(columns), diffs)


def _text(report: Report | None) -> str:
    return report.texts.get("optimized", "") if report is not None else ""


def diff(left: Column, right: Column) -> ProgramDiff:
    """Compare two compiled programs."""
    if left.report is None or right.report is None:
        raise ValueError(f"{left.name if left.report is None else right.name} has no report")
    one, other = (normalised(_text(c.report), c.report.mesh) for c in (left, right) if c.report)
    changed = tuple(_changed(one.lines, other.lines))
    keys = sorted({*one.header, *other.header})
    header = tuple(key for key in keys if one.header.get(key) != other.header.get(key))
    same = same_collectives(left.report, right.report)
    return ProgramDiff(
        left=left.name,
        right=right.name,
        sentence=_sentence(changed, header, marks=one.marks != other.marks, same=same),
        instructions=changed,
        header=header,
        marks=one.marks != other.marks,
        same_collectives=same,
    )


def same_collectives(left: Report, right: Report) -> bool:
    """Whether two programs send the same: kinds, axes, element types, shapes and trips."""
    return _sent(left) == _sent(right)


def _sent(report: Report) -> Counter[object]:
    return Counter((c.kind, c.axes, c.dtype, c.shape, c.trips) for c in report.collectives)


def _changed(one: Sequence[str], other: Sequence[str]) -> Iterator[str]:
    for line in difflib.unified_diff(one, other, lineterm="", n=0):
        if not line.startswith(("---", "+++", "@@")):
            yield line


def _sentence(changed: Sequence[str], header: Sequence[str], *, marks: bool, same: bool) -> str:
    if changed:
        sent = "they send the same" if same else "they do not send the same"
        return f"{len(changed)} instructions differ, and {sent}"
    but = []
    if header == (_CHOICE,):
        but.append("the permission to choose the output")
    elif header:
        but.append(f"the header's {', '.join(header)}")
    if marks:
        but.append("the marks of who inserted the collectives")
    return f"identical except {' and '.join(but)}" if but else "identical"


def normalised(text: str, mesh: Mesh) -> Normal:
    """Return an optimized program without numbers and names."""
    module = hlo.parse(text)
    ordered = list(_in_order(module))
    names: dict[str, str] = {}
    finder = AxisFinder(mesh)
    return Normal(
        lines=tuple(_line(instruction, names, finder) for instruction in ordered),
        header=_header(text),
        marks=tuple(_MARK in i.attributes for i in ordered if i.channel is not None),
    )


def _in_order(module: Module) -> Iterator[Instruction]:
    """Yield the instructions of the entry, then those of computations as they are first called."""
    waiting, seen = [module.entry], {module.entry}
    while waiting:
        for instruction in module.body(waiting.pop(0)):
            yield instruction
            for _, called in instruction.called:
                if called not in seen:
                    seen.add(called)
                    waiting.append(called)


def _line(instruction: Instruction, names: dict[str, str], finder: AxisFinder) -> str:
    groups = instruction.attribute("replica_groups")
    text = f"%{instruction.name} = {instruction.shape} {instruction.opcode}"
    text += f"({instruction.operand_text}){_kept(instruction.attributes)}"
    text = _CHANNEL.sub("channel_id", _NAME.sub(lambda match: _renamed(match[0], names), text))
    return f"{text}, groups={finder.groups(groups)}" if groups else text


def _renamed(name: str, names: dict[str, str]) -> str:
    return names.setdefault(name, f"%{len(names)}")


def _kept(attributes: str) -> str:
    """Drop the attributes that do not change what a device does."""
    for name in _DROPPED:
        found = attribute(attributes, name)
        if found is not None:
            attributes = re.sub(rf",?\s*\b{name}={re.escape(found)}", "", attributes)
    config = attribute(attributes, "backend_config")
    return attributes.replace(config, _sorted(config)) if config else attributes


def _sorted(config: str) -> str:
    """Sort the keys of a backend's configuration: each process writes them in an order of its own.

    >>> _sorted('{"b":[1],"a":{}}')
    '{"a": {}, "b": [1]}'
    """
    try:
        return json.dumps(json.loads(config), sort_keys=True)
    except ValueError:  # some are not JSON
        return config


def _header(text: str) -> dict[str, str]:
    first = text.partition("\n")[0]
    found = dict(_HEADER.findall(first))
    return {key: value for key, value in found.items() if key not in _NAMED}
