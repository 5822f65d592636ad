"""Arrays of a program by the pattern of their path, so that 48 layers are one choice."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax
from jax.tree_util import SequenceKey

from shardnb.compiler import placement
from shardnb.compiler.arrays import dtype_name
from shardnb.report import dtypes
from shardnb.report.model import Spec

Tree = Any
# How flax names the modules of one class within another, `Dense_1`
# (test_matrices_that_flax_numbers_within_a_layer_are_choices_of_their_own).
_MODULE = re.compile(r"[A-Z][A-Za-z]*_\d+")
_NUMBER = re.compile(r"\d+")
# Of all bytes: replicated, vectors of less weigh next to nothing, and each would double the number
# of placements (test_small_vectors_stay_whole).
SMALL = 0.002
STAR = "*"


@dataclass(frozen=True)
class Pattern:
    """Arrays with the same spec: the pattern of their paths, and their numbers among all arrays.

    `fixed` is a spec that the user gave; `tail` the path without the argument's name, which
    parameters and their optimizer's moments share. A `free` pattern is searched; what is neither
    is small, and has what a recipe gives it.
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
    paths = [
        (name, path)
        for name, tree in args.items()
        for path, _ in jax.tree_util.tree_flatten_with_path(tree)[0]
    ]
    members: dict[tuple[Any, ...], list[int]] = {}
    stated = placement.stated(dict(args), dict(specs))
    for number, ((name, path), (_, leaf, spec)) in enumerate(zip(paths, stated, strict=True)):
        is_key = jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.extended)
        # A random key is two numbers: small, and there is nothing to shard.
        dtype = "u64" if is_key else dtype_name(placement.dtype_of(leaf))
        shape = tuple(leaf.shape)
        replicated: Spec = ((),) * len(shape)
        given: Spec | None = None
        if spec is not None:
            given = placement.dims_of(getattr(spec, "spec", spec), len(shape))
        elif is_key:
            given = replicated
        key = name, path_pattern(path), dtype, shape, given
        members.setdefault(key, []).append(number)
    patterns = [
        Pattern(name + path, dtype, shape, tuple(numbers), _tail(path), given, free=given is None)
        for (name, path, dtype, shape, given), numbers in members.items()
    ]
    total = sum(pattern.bytes for pattern in patterns)
    return tuple(
        replace(pattern, free=False) if pattern.free and _is_small(pattern, total) else pattern
        for pattern in patterns
    )


def _is_small(pattern: Pattern, total: int) -> bool:
    """Whether an array is not worth a choice: biases and norms would multiply the space."""
    if not pattern.shape or not pattern.bytes:
        return True
    return len(pattern.shape) < 2 and pattern.bytes < SMALL * total


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
    *outer, _ = path
    kept = 2 if outer and _MODULE.fullmatch(str(getattr(outer[-1], "key", ""))) else 1
    layers, rest = path[: len(path) - kept], path[len(path) - kept :]
    starred = (
        f"[{STAR}]"
        if isinstance(key, SequenceKey)
        else _NUMBER.sub(STAR, jax.tree_util.keystr((key,)))
        for key in layers
    )
    return "".join(starred) + jax.tree_util.keystr(rest)


def _tail(path: str) -> str:
    """Return the end of a path that a parameter shares with an optimizer's moments of it."""
    return path[path.find("['") :] if "['" in path else path
