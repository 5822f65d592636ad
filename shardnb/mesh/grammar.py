"""The text of a mesh: `data=4,model=2`, with optional axis types."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from shardnb.report.invalid_input import InvalidInput
from shardnb.report.model import Axis
from shardnb.terms.axis_types import AXIS_TYPES, AxisType

FORM = "a mesh is written as data=4,model=2 (a type may follow: data=4:explicit)"
_AXIS = re.compile(r"\s*(\w+)\s*=\s*(\d{1,18})\s*(?::\s*(\w+)\s*)?")
_LOOSE_AXIS = re.compile(r"\s*([^\W\d]\w*)\s*[:=]\s*(\d+)[\s,;]*")


@dataclass(frozen=True)
class MeshSpec:
    """The axes of a mesh, without devices."""

    axes: tuple[Axis, ...]

    @property
    def size(self) -> int:
        """Number of devices."""
        return math.prod(axis.size for axis in self.axes)

    @property
    def manual(self) -> frozenset[str]:
        """The axes over which the program is written for one device."""
        return frozenset(axis.name for axis in self.axes if axis.type == "manual")

    def __str__(self) -> str:
        """Write the mesh in its own grammar."""
        return ",".join(
            f"{a.name}={a.size}" + (f":{a.type}" if a.type != "auto" else "") for a in self.axes
        )


def parse_mesh(text: str, axes: str | None = None) -> MeshSpec:
    """Read the text of a mesh; `axes` is the type of axes without one (default: auto).

    Raises `InvalidInput` that shows the right form.

    >>> str(parse_mesh("data=4, model=2:explicit"))
    'data=4,model=2:explicit'
    """
    spec = MeshSpec(tuple(_axis(part, axes or "auto") for part in text.split(",")))
    names = [axis.name for axis in spec.axes]
    for name in names:
        if names.count(name) > 1:
            raise InvalidInput(f"the mesh {text!r} names the axis {name!r} twice; {FORM}")
    return spec


def _axis(text: str, default: str) -> Axis:
    match = _AXIS.fullmatch(text)
    if match is None or not match[1].isidentifier():
        raise InvalidInput(f"{text.strip()!r} is not a mesh axis; {FORM}")
    name, size, kind = match.groups()
    if int(size) == 0:
        raise InvalidInput(f"the mesh axis {name!r} has size 0; {FORM}")
    return Axis(name, int(size), axis_type(kind or default))


def no_mesh(value: object) -> str:
    """Return the message that a value is not a mesh, with the text that may be meant.

    >>> no_mesh(8)
    'expected a mesh such as data=4,model=2, got the int 8; did you mean data=8?'
    >>> no_mesh((4, 2))
    'expected a mesh such as data=4,model=2, got the tuple (4, 2); did you mean data=4,model=2?'
    >>> no_mesh({"x": 8})
    "expected a mesh such as data=4,model=2, got the dict {'x': 8}; did you mean x=8?"
    """
    axes = value if isinstance(value, dict) else _axes_of_sizes(value)
    valid = all(isinstance(size, int) and size > 0 for size in axes.values())
    meant = ",".join(f"{name}={size}" for name, size in axes.items())
    hint = f"; did you mean {meant}?" if valid and axes else ""
    shown = repr(value) if len(repr(value)) <= 80 else f"{repr(value)[:77]}..."
    return f"expected a mesh such as data=4,model=2, got the {type(value).__name__} {shown}{hint}"


def _axes_of_sizes(value: object) -> dict[str, object]:
    """Name the sizes that stand for a mesh; empty where there are more sizes than names."""
    sizes = value if isinstance(value, tuple | list) else (value,)
    names = ("data", "model", "x", "y")
    return dict(zip(names, sizes, strict=False)) if len(sizes) <= len(names) else {}


def nearest_text(text: str) -> str | None:
    """Return the mesh that a text with another separator stands for, or None.

    >>> nearest_text("data:4 model:2"), nearest_text("4x2")
    ('data=4,model=2', 'data=4,model=2')
    """
    sizes = [part.strip() for part in re.split("[x*]", text)]
    if all(size.isdecimal() for size in sizes):
        axes: dict[str, object] = _axes_of_sizes([int(size) for size in sizes])
    else:
        axes = dict(_LOOSE_AXIS.findall(text)) if not _LOOSE_AXIS.sub("", text) else {}
    return ",".join(f"{name}={size}" for name, size in axes.items()) or None


def axis_type(text: str) -> AxisType:
    """Check the name of an axis type; raises `ValueError` that lists the types."""
    for known in AXIS_TYPES:
        if text.lower() == known:
            return known
    raise InvalidInput(f"{text!r} is not an axis type; the types are {', '.join(AXIS_TYPES)}")
