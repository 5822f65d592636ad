"""Specs by the ends of paths, as a person writes them: not one for each array."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

Leaf = tuple[str, str]
"""The path of an array, with `/` between its steps, and its spec as text."""


def rules_of(leaves: Sequence[Leaf]) -> dict[str, str] | None:
    r"""Return regular expressions with their specs, to be searched in paths in this order.

    Each is the shortest end of a path that all arrays with that end agree on; what is replicated
    has none. None where two arrays with the same path have other specs.

    >>> rules_of([("h/0/w", "P('data')"), ("h/1/w", "P('data')"), ("h/0/b", "P()")])
    {'\\bw$': "P('data')"}
    >>> rules_of([("up/w", "P('x')"), ("out/w", "P('x')"), ("down/w", "P('y')")])
    {'\\b(up|out)/w$': "P('x')", '\\bdown/w$': "P('y')"}
    """
    ends: dict[str, dict[str, None]] = {}
    for path, spec in leaves:
        if spec == "P()":
            continue
        end = next((end for end in _ends(path) if _agree(end, spec, leaves)), None)
        if end is None:
            return None
        ends.setdefault(spec, {})[end] = None
    return {_joined(list(of)): spec for spec, of in ends.items()}


def _ends(path: str) -> Iterator[str]:
    """Yield the ends of a path, the shortest first; at last with the numbers of its layers."""
    steps = [re.escape(step) for step in path.split("/")]
    layers = [r"\d+" if step.isdigit() else re.sub(r"_\d+$", r"_\\d+", step) for step in steps]
    for each in (layers, steps):
        yield from ("/".join(each[at:]) for at in range(len(each) - 1, -1, -1))


def _agree(end: str, spec: str, leaves: Sequence[Leaf]) -> bool:
    pattern = re.compile(rf"\b{end}$")
    return all(own == spec for path, own in leaves if pattern.search(path))


def _joined(ends: Sequence[str]) -> str:
    """Write ends as one expression, without what all of them end with."""
    if len(ends) == 1:
        return rf"\b{ends[0]}$"
    last = {end.rpartition("/")[2] for end in ends}
    first = [end.rpartition("/")[0] for end in ends]
    if len(last) == 1 and all(first):
        return rf"\b({'|'.join(first)})/{last.pop()}$"
    return rf"\b({'|'.join(ends)})$"
