"""Why a value has its sharding, in words, from the report alone."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from shardnb.report.model import Location, Origin, Report, Step, Value
from shardnb.report.printable import clean
from shardnb.report.spec import spec_text, type_text
from shardnb.terms.origins import ORIGINS


def explain(report: Report, name: str | None = None, line: int | None = None) -> str:
    """Say why the values of a name or of a line, or all of them, have their shardings.

    Raises `KeyError` if the report has no such value.
    """
    indices = [
        index
        for index, value in enumerate(report.values)
        if name in (None, value.name) and line in (None, _line(value.location))
    ]
    edges = [value for value in (*report.inputs, *report.outputs) if value.name == name]
    sentences = [_value(report, index) for index in indices]
    if line is None and not indices:
        sentences += [_edge(report, value) for value in edges]
    if not sentences:
        raise KeyError(_unknown(report, name, line))
    return "\n".join(map(clean, dict.fromkeys(sentences)))


def explain_each(report: Report) -> Iterator[str]:
    """Say for each of `report.values` why it has its sharding."""
    return (_value(report, index) for index in range(len(report.values)))


def arrivals(report: Report, index: int) -> dict[str, int | None]:
    """Return for each axis of a value the number of the step that brought it.

    0 for an axis that was there before the first step, None if that is unknown.
    """
    value = report.values[index]
    return {axis: _arrival(report, index, axis) for axes in value.spec or () for axis in axes}


def _arrival(report: Report, index: int, axis: str) -> int | None:
    at: int | None = index
    seen: set[int] = set()
    while at is not None and at not in seen:
        seen.add(at)
        origin = _origin(report.values[at], axis)
        if origin is None or origin.steps is None:
            return None
        if origin.steps:
            return origin.steps[-1].number
        at, axis = origin.after, origin.axis
    return 0


def chain(report: Report, value: int, axis: str) -> tuple[Step, ...] | None:
    """Return all the steps from the origin of an axis to a value of `report.values`.

    None if some of them are unknown.
    """
    steps: tuple[Step, ...] = ()
    at: int | None = value
    seen: set[int] = set()
    while at is not None and at not in seen:
        seen.add(at)
        origin = _origin(report.values[at], axis)
        if origin is None or origin.steps is None:
            return None
        steps, at, axis = origin.steps + steps, origin.after, origin.axis
    return steps


def _origin(value: Value, axis: str) -> Origin | None:
    exact = [origin for origin in value.origins if origin.axis == axis]
    base = axis.partition(":(")[0]
    near = [origin for origin in value.origins if origin.axis.partition(":(")[0] == base]
    return next(iter(exact or near), None)


def _line(location: Location | None) -> int | None:
    return location.line if location and location.source == 0 else None


def _unknown(report: Report, name: str | None, line: int | None) -> str:
    everything = (*report.values, *report.inputs, *report.outputs)
    names = list(dict.fromkeys(value.name for value in everything))
    if name is not None and name not in names:
        near = get_close_matches(name, names, 3) or names[:20]
        return f"the report has no value {name!r}; it has {', '.join(near) or 'none at all'}"
    places = (value for value in report.values if name in (None, value.name))
    lines = sorted({at for value in places if (at := _line(value.location))})
    which = f" of {name!r}" if name is not None else ""
    there = ", ".join(map(str, lines[:30])) or "none"
    return f"the report has no value{which} at line {line}; lines with values: {there}"


def _value(report: Report, index: int) -> str:
    value = report.values[index]
    sentence = f"{value.name} is {type_text(value)}{_where(report, value)}"
    if value.spec is None:
        return f"{sentence}: no mesh axes describe its sharding"
    parts = [
        *_origins(report, index),
        *(f"{b.axis} of {b.value} was not kept: {b.why}" for b in value.blocked),
    ]
    if value.manual:
        parts.append(_varying(value))
    elif not parts:
        parts = [] if any(value.spec) else ["it is replicated on all devices"]
    if value.propagated is not None:
        parts.append(
            f"Shardy chose {spec_text(value.propagated)}, but the compiled program has "
            f"{spec_text(value.spec)}, which counts"
        )
    return sentence + (": " + "; ".join(parts) if parts else "")


def _varying(value: Value) -> str:
    if value.varying is None:
        return f"whether it varies over {' and '.join(value.manual)} is unknown"
    alike = [axis for axis in value.manual if axis not in value.varying]
    parts = [f"it varies over {' and '.join(value.varying)}"] if value.varying else []
    parts += [f"it is the same along {' and '.join(alike)}"] if alike else []
    return ", ".join(parts)


def _at(report: Report, location: Location | None) -> str:
    """Name a line, and its source if that is not the explained one."""
    if location is None:
        return ""
    other = 0 < location.source < len(report.sources)
    return f" at line {location.line}" + (
        f" of {report.sources[location.source].name}" if other else ""
    )


def _where(report: Report, value: Value) -> str:
    at = _at(report, value.location)
    if value.location:
        at = at.removeprefix(f" at line {value.location.line}") if " at line " in value.name else at
    inside = ", ".join(value.manual)
    return f"{at}, one device's part inside a shard_map over {inside}" if inside else at


def _origins(report: Report, index: int) -> Iterator[str]:
    value = report.values[index]
    if value.origins and all(origin.kind == "type" for origin in value.origins):
        yield "it is in its type (the mesh axes are explicit there)"
        return
    axes_by_cause: dict[str, list[str]] = {}
    for origin in value.origins:
        axes_by_cause.setdefault(_cause(report, index, origin), []).append(origin.axis)
    for cause, axes in axes_by_cause.items():
        yield f"{' and '.join(axes)} {cause}"


def _cause(report: Report, index: int, origin: Origin) -> str:
    at, way = _at(report, origin.location), _way(report, index, origin)
    return ORIGINS[origin.kind].clause.format(name=origin.name, at=at, way=way)


def _way(report: Report, index: int, origin: Origin) -> str:
    steps = chain(report, index, origin.axis)
    if steps is None:
        return " (through which ops is unknown)"
    if not steps:
        return ""
    texts = [_step(report, step) for step in steps]
    if len(texts) > 6:
        texts = [*texts[:2], f"{len(texts) - 4} more ops", *texts[-2:]]
    return "".join(f", {step}" for step in texts)


def _step(report: Report, step: Step) -> str:
    at = _at(report, step.location)
    beside = " (to its other operand)" if step.direction == "sideways" else ""
    return f"{step.direction} through {step.op}{at}{beside}"


def _edge(report: Report, value: Value) -> str:
    role = "an input with this sharding"
    role = role if value in report.inputs else "a result of the program"
    return f"{value.name} is {type_text(value)}: {role}"
