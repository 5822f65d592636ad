"""Arrays by the pattern of their path: sharded ones before replicated ones, equal ones together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shardnb.report import Mesh, Value
from shardnb.report.model import UNUSED
from shardnb.report.spec import spec_text, type_text
from shardnb.views.formatting import clean, count, dims, size
from shardnb.views.layout import copies, layout_of
from shardnb.views.sent import pattern

NOT_KNOWN = "not known"


@dataclass(frozen=True)
class ArrayRow:
    """Equal arrays: their places among all, the pattern of their names, the type, the shard."""

    members: tuple[Value, ...]
    numbers: tuple[int, ...]
    name: str
    type: str
    shard: str
    size: str
    remarks: tuple[str, ...]

    @property
    def held(self) -> int:
        """Bytes that one device holds of them."""
        return sum(value.shard_bytes for value in self.members)


def array_rows(values: Sequence[Value], mesh: Mesh) -> tuple[ArrayRow, ...]:
    """Put equal arrays together, in the program's order; those without a sharding come last."""
    alike: dict[tuple[object, ...], list[int]] = {}
    for number, value in enumerate(values):
        like = type_text(value), value.shard_shape, copies(value, mesh), *remarks(value, mesh)
        alike.setdefault((pattern(value.name), like), []).append(number)
    rows = (_row(tuple(group), values, mesh) for group in alike.values())
    return tuple(sorted(rows, key=lambda row: not any(row.members[0].spec or ((),))))


def total(values: Sequence[Value], noun: str) -> str:
    """Say how many there are, and what one device holds of them: `4 inputs, 4.2 MiB per device`."""
    return f"{count(len(values), noun)}, {size(sum(v.shard_bytes for v in values))} per device"


def smaller(rows: Sequence[ArrayRow], noun: str) -> str:
    """Say what is not shown: `and 3 more inputs, 12 KiB per device`."""
    return f"and {total([v for row in rows for v in row.members], f'more {noun}')}" if rows else ""


def _row(numbers: tuple[int, ...], values: Sequence[Value], mesh: Mesh) -> ArrayRow:
    alike = tuple(values[number] for number in numbers)
    value = alike[0]
    number = f"{len(alike)} x " if len(alike) > 1 else ""
    return ArrayRow(
        members=alike,
        numbers=numbers,
        name=clean(pattern(value.name) if len(alike) > 1 else value.name),
        type=clean(type_text(value)),
        shard=f"{dims(value.shard_shape)} per device",
        size=f"{number}{size(value.shard_bytes)}",
        remarks=tuple(filter(None, (clean(copies(value, mesh)), *remarks(value, mesh)))),
    )


def remarks(value: Value, mesh: Mesh) -> list[str]:
    """Say what else holds of an array: partial sums, another sharding that was written."""
    said = []
    if value.manual:
        said.append(f"per-device value in a shard_map over {', '.join(value.manual)}")
    if value.unreduced:
        said.append(f"partial sums over {', '.join(value.unreduced)}")
    if value.spec is None:
        known = layout_of(value, mesh) is not None
        said.append("sharded, but not along mesh axes" if known else "sharding not known")
    if value.requested is not None and value.requested != value.spec:
        said.append(f"you wrote {spec_text(value.requested)}")
    if value.memory:
        said.append(f"in {value.memory} memory")
    if value.closed_over:
        said.append("closed over")
    if value.details == UNUSED:
        said.append(UNUSED)
    return list(map(clean, said))
