"""Arrays of a pytree as a few patterns of their paths: `opt[0].mu[*]['w']`."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import takewhile

from shardnb.report.model import Value
from shardnb.views.formatting import count, size

# Patterns that are listed in the details.
_LISTED = 20

_STEP = re.compile(r"\[[^\]]*\]|[^.\[\]]+")


def steps(name: str) -> list[str]:
    """Return the steps of a path: `opt`, `[0]`, `mu` and `['w']` of `opt[0].mu['w']`."""
    return _STEP.findall(name) or [name]


def prefix(name: str, depth: int) -> str:
    """Return the first steps of a path: `opt[0]`, the first 2 of `opt[0].mu['w']`."""
    ends = [match.end() for match in _STEP.finditer(name)]
    return name[: ends[min(depth, len(ends)) - 1]] if ends else name


def subject(values: Sequence[Value]) -> str:
    """Name arrays by what their paths have in common: `24 arrays of opt[0]`."""
    largest = max(values, key=lambda value: value.shard_bytes)
    if len(values) == 1:
        return largest.name
    depths = zip(*(steps(value.name) for value in values), strict=False)
    shared = len(list(takewhile(lambda at_depth: len(set(at_depth)) == 1, depths)))
    if not shared:
        roots = dict.fromkeys(steps(value.name)[0] for value in values)
        return f"{count(len(values), 'array')} of {' and '.join(roots)}"
    return f"{count(len(values), 'array')} of {prefix(largest.name, shared)}"


def by_pattern(values: Sequence[Value]) -> Iterator[str]:
    """List the patterns of arrays' paths, the heaviest first, with their bytes on a device."""
    patterns: dict[str, list[int]] = defaultdict(list)
    for value in values:
        patterns[re.sub(r"\[\d+\]", "[*]", value.name)].append(value.shard_bytes)
    heavy = sorted(patterns.items(), key=lambda item: -sum(item[1]))
    for pattern, held in heavy[:_LISTED]:
        yield f"{pattern}: {count(len(held), 'array')}, {size(sum(held))} per device"
    if len(heavy) > _LISTED:
        yield f"and {count(len(heavy) - _LISTED, 'more pattern')}"
