"""The user's pytrees with other leaves, in a structure that accepts any.

A user's class may check its leaves, or store something computed from them: rebuilt with shardings
as leaves, it may fail or change. `jax.jit` only rebuilds it with tracers, so shardnb must not do
more.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import jax

Tree = Any
# Containers of exactly these classes take any leaves; a subclass is a class of the user's.
_CONTAINERS = (dict, list, tuple, OrderedDict, defaultdict, type(None))


@jax.tree_util.register_pytree_with_keys_class
@dataclass(frozen=True)
class Node:
    """A stand-in for a user's class: its children, each with its key."""

    keys: tuple[Any, ...]
    children: tuple[Tree, ...]

    def tree_flatten_with_keys(self) -> tuple[Iterable[tuple[Any, Tree]], tuple[Any, ...]]:
        """Return the children with their keys, for JAX."""
        return zip(self.keys, self.children, strict=True), self.keys

    @classmethod
    def tree_unflatten(cls, keys: tuple[Any, ...], children: Iterable[Tree]) -> Node:
        """Make a node, for JAX."""
        return cls(keys, tuple(children))


def with_leaves(tree: Tree, leaves: Sequence[Any]) -> Tree:
    """Return a tree with other leaves, one for each of its own; None leaves a leaf out."""
    paths: list[Any]
    structure: Any
    paths, structure = jax.tree_util.tree_flatten_with_path(tree)
    if _is_plain(structure):
        return structure.unflatten(leaves)
    given = ((path, leaf) for (path, _), leaf in zip(paths, leaves, strict=True))
    return _nested([(path, leaf) for path, leaf in given if leaf is not None])


def _is_plain(structure: Any) -> bool:
    data = structure.node_data()
    if data is None:
        return True
    kind = data[0]
    named = issubclass(kind, tuple) and hasattr(kind, "_fields")
    return (kind in _CONTAINERS or named) and all(map(_is_plain, structure.children()))


def _nested(leaves: list[tuple[tuple[Any, ...], Any]]) -> Tree:
    if len(leaves) == 1 and not leaves[0][0]:
        return leaves[0][1]
    groups = [
        (key, _nested([(path[1:], leaf) for path, leaf in group]))
        for key, group in itertools.groupby(leaves, lambda entry: entry[0][0])
    ]
    return Node(tuple(key for key, _ in groups), tuple(child for _, child in groups))


def prefixed(tree: Tree, prefix: Tree, is_leaf: Callable[[Any], bool]) -> list[Any]:
    """Return for each leaf of a tree its entry in a pytree prefix; raises `ValueError`."""
    values: list[Any]
    structure: Any
    values, structure = jax.tree_util.tree_flatten(prefix, is_leaf=is_leaf)
    parts = structure.flatten_up_to(tree)
    counts = (len(jax.tree_util.tree_leaves(part)) for part in parts)
    return [value for value, count in zip(values, counts, strict=True) for _ in range(count)]
