"""Arrays of a program by the pattern of their path, so that 48 layers are one choice."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
from jax.tree_util import SequenceKey

from shardnb.compiler import placement
from shardnb.report import dtypes
from shardnb.report.model import Spec

Tree = Any
_OWN = re.compile(r"[A-Z][A-Za-z]*_\d+")
_NUMBER = re.compile(r"\d+")
_SMALL = 0.002
STAR = "*"


@dataclass(frozen=True)
class Pattern:
    """Arrays that lie alike: the pattern of their paths, and their numbers among all arrays.

    `fixed` is a spec that the user gave; `tail` the path without the argument's name, which
    parameters and their optimizer's moments share. A `free` pattern is searched.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    members: tuple[int, ...]
    tail: str = ""
    fixed: Spec | None = None
    free: bool = True

    @property
    def bytes(self) -> int:
        """Size of all its arrays, in bytes."""
        return dtypes.size_in_bytes(self.dtype, self.shape) * len(self.members)


def patterns_of(args: Mapping[str, Tree], specs: Mapping[str, Tree]) -> tuple[Pattern, ...]:
    """Gather the arrays of the arguments by pattern, shape and dtype, in their order.

    Those to which `specs` gives a placement keep it. Vectors that hold next to nothing of the
    bytes stay replicated.
    """
    stated = [spec for _, _, spec in placement.stated(dict(args), dict(specs))]
    found: dict[tuple[Any, ...], list[int]] = {}
    for number, (name, path, leaf) in enumerate(_leaves(args)):
        given = _given(stated[number], leaf)
        dtype = _dtype(leaf)
        key = name, path_pattern(path), dtype, tuple(leaf.shape), given
        found.setdefault(key, []).append(number)
    made = [
        Pattern(name + path, dtype, shape, tuple(members), _tail(path), given, free=given is None)
        for (name, path, dtype, shape, given), members in found.items()
    ]
    total = sum(pattern.bytes for pattern in made)
    return tuple(_settled(pattern, total) for pattern in made)


def _dtype(leaf: Any) -> str:
    """Name an array's dtype as HLO does: `f32`; a random key is made of numbers."""
    if _is_key(leaf):
        return "u64"
    name = str(placement.dtype_of(leaf))
    for long, short in (("bfloat", "bf"), ("float", "f"), ("uint", "u"), ("int", "s")):
        if name.startswith(long):
            return name.replace(long, short, 1)
    return {"bool": "pred", "complex64": "c64", "complex128": "c128"}.get(name, name)


def _settled(pattern: Pattern, total: int) -> Pattern:
    small = len(pattern.shape) < 2 and pattern.bytes < _SMALL * total
    if not pattern.free or (pattern.shape and not small and pattern.bytes):
        return pattern
    replicated: Spec = ((),) * len(pattern.shape)
    parts = pattern.name, pattern.dtype, pattern.shape, pattern.members, pattern.tail
    return Pattern(*parts, replicated, free=False)


def _leaves(args: Mapping[str, Tree]) -> list[tuple[str, tuple[Any, ...], Any]]:
    return [
        (name, path, leaf)
        for name, tree in args.items()
        for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]
    ]


def _is_key(leaf: Any) -> bool:
    return bool(jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.extended))


def _given(spec: Any, leaf: Any) -> Spec | None:
    if spec is None:
        return ((),) * len(leaf.shape) if _is_key(leaf) else None
    entries = tuple(placement.entries(getattr(spec, "spec", spec)))
    return (*entries, *((),) * (len(leaf.shape) - len(entries)))


def path_pattern(path: tuple[Any, ...]) -> str:
    """Write a path with a star for each number of a layer.

    The last step tells arrays apart and keeps its number. So does the step before where it is a
    name such as `Dense_1`, by which flax tells the matrices of one module apart.

    >>> from jax.tree_util import DictKey
    >>> path_pattern((SequenceKey(3), DictKey("layer_7"), DictKey("w1")))
    "[*]['layer_*']['w1']"
    """
    if not path:
        return ""
    *outer, last = path
    own = outer[-1:] if outer and _OWN.fullmatch(str(getattr(outer[-1], "key", ""))) else []
    layers = outer[: len(outer) - len(own)]
    return "".join([*map(_starred, layers), *map(_written, own), _written(last)])


def _tail(path: str) -> str:
    """Give the end of a path that a parameter shares with an optimizer's moments of it."""
    return path[path.find("['") :] if "['" in path else path


def _starred(key: Any) -> str:
    if isinstance(key, SequenceKey):
        return f"[{STAR}]"
    return _NUMBER.sub(STAR, _written(key))


def _written(key: Any) -> str:
    return str(jax.tree_util.keystr((key,)))
