"""What a report says of rules for specs: what each matched, and what none matched."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from shardnb.views.formatting import clean, count, listed, names

_LISTED = 4


def matched(argument: str, pattern: str, spec: str, arrays: Sequence[str]) -> str:
    """Say which arrays a rule matched first.

    >>> matched("params", "kernel", "P('model')", [])
    "params: no array has its spec from the rule /kernel/ = P('model')"
    """
    rule = f"the rule /{clean(pattern)}/ = {clean(spec)}"
    if not arrays:
        return f"{clean(argument)}: no array has its spec from {rule}"
    have = "has its spec" if len(arrays) == 1 else "have their spec"
    return f"{clean(argument)}: {_arrays(arrays)} {have} from {rule}"


def without_a_rule(argument: str, arrays: Sequence[str], *, replaced: bool) -> str:
    """Say which arrays no rule matches, and what becomes of them."""
    rest = "own sharding, or replicated" if replaced else f"as {clean(argument)}= says"
    return f"{clean(argument)}: no rule matches {_arrays(arrays)}: {rest}"


def none_matches(argument: str, patterns: Sequence[str], paths: Sequence[str]) -> str:
    """Say that rules match nothing, with the path that is most like one of them.

    >>> none_matches("params", ["kernal"], ["up/kernel", "up/bias"])
    "no rule of params matches any of its arrays: /kernal/; a path of it is 'up/kernel'"
    """
    rules = listed([f"/{clean(pattern)}/" for pattern in patterns[:_LISTED]])
    more = f" and {len(patterns) - _LISTED} more" if len(patterns) > _LISTED else ""
    steps = {step: path for path in reversed(paths) for step in (path, *path.split("/"))}
    near = (get_close_matches(pattern, steps, 1) for pattern in patterns)
    path = next((steps[found[0]] for found in near if found), paths[0])
    return (
        f"no rule of {clean(argument)} matches any of its arrays: {rules}{more}; "
        f"a path of it is {clean(path)!r}"
    )


def alike(argument: str, other: str, like: Sequence[str], unlike: Sequence[str]) -> str:
    """Say which arrays have the spec of one of another argument."""
    have = "has" if len(like) == 1 else "have"
    first = f"{_arrays(like)} {have} the specs of {clean(other)}" if like else ""
    rest = f"{_arrays(unlike)} unlike any of {clean(other)}: replicated" if unlike else ""
    return f"{clean(argument)}: {'; '.join(filter(None, (first, rest))) or 'no arrays'}"


def logical(argument: str, named: int, without: Sequence[str], unknown: Sequence[str]) -> str:
    """Say how many arrays name logical axes, which do not, and which axes have no rule."""
    said = [f"{count(named, 'array')} with logical axes"]
    if without:
        said.append(f"without them, so replicated: {_arrays(without)}")
    if unknown:
        axes = listed([clean(axis) for axis in unknown])
        said.append(f"no rule for the logical {'axis' if len(unknown) == 1 else 'axes'} {axes}")
    return f"{clean(argument)}: {'; '.join(said)}"


def _arrays(arrays: Sequence[str]) -> str:
    return f"{count(len(arrays), 'array')} ({names([clean(array) for array in arrays])})"
