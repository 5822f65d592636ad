"""Pytrees of the user's, and the arrays in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from shardnb.magics.contents import SIMPLE
from shardnb.torch.traced import Traced

Tree = Any
Leaf = Any

_NUMBERS = frozenset("biufc")


def is_jax_array(value: Any) -> bool:
    """Whether a value is an array of JAX's, or the shape of one."""
    return isinstance(value, jax.Array | jax.ShapeDtypeStruct)


def is_array(value: Any) -> bool:
    """Whether a value can be an input of a program: an array of numbers, or the shape of one."""
    if is_jax_array(value):
        return True
    if not isinstance(value, np.ndarray) or isinstance(value, np.ma.MaskedArray | np.matrix):
        return False
    return value.dtype.kind in _NUMBERS or jax.dtypes.issubdtype(value.dtype, np.number)


def is_tracer(value: Any) -> bool:
    """Whether a value stands for an array of a program that is being traced."""
    return isinstance(value, jax.core.Tracer | Traced)


def leaves_of(tree: Tree) -> list[Leaf]:
    """Return the leaves of a pytree; what JAX cannot flatten, such as a loop, is a leaf itself."""
    if isinstance(tree, list | dict):
        values = list(tree.values()) if isinstance(tree, dict) else tree
        if SIMPLE.issuperset(map(type, values)):
            return values
    return _flatten(tree)[0]


def holds(tree: Tree, what: Callable[[Leaf], bool]) -> bool:
    """Whether a leaf of a pytree is what it asks for, which no plain number or text is."""
    leaves = leaves_of(tree)
    return not SIMPLE.issuperset(map(type, leaves)) and any(map(what, leaves))


def _flatten(tree: Tree, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Leaf], Any]:
    try:
        return jax.tree_util.tree_flatten(tree, is_leaf=is_leaf)
    except Exception:  # noqa: BLE001 - a class of the user's may raise anything
        return [tree], jax.tree_util.tree_structure(0)


def only(tree: Tree, keep: Callable[[Leaf], bool]) -> Tree:
    """Return a pytree with the leaves that `keep` holds for, and nothing in place of the others."""
    leaves, structure = _flatten(tree, lambda leaf: leaf is None)
    return structure.unflatten([leaf if keep(leaf) else () for leaf in leaves])
