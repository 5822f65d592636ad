"""The user's pytrees: the arrays in them, copies of them for a trace, and writing back.

A program gets only arrays. Everything else in a pytree stays the Python object that it is. A
container that the cell changes in place is changed in place, so that every name for it sees the
change.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

Tree = Any
Leaf = Any

_NUMBERS = frozenset("biufc")
_SCALARS = (bool, int, float, complex, str, bytes)


def is_array(value: Any) -> bool:
    """Whether a value can be an input of a program: an array of numbers, or the shape of one."""
    if isinstance(value, jax.Array | jax.ShapeDtypeStruct):
        return True
    if not isinstance(value, np.ndarray) or isinstance(value, np.ma.MaskedArray | np.matrix):
        return False
    return value.dtype.kind in _NUMBERS or jax.dtypes.issubdtype(value.dtype, np.number)


def is_tracer(value: Any) -> bool:
    """Whether a value stands for an array of a program that is being traced."""
    return isinstance(value, jax.core.Tracer)


def leaves_of(tree: Tree) -> list[Leaf]:
    """Return the leaves of a pytree; what JAX cannot flatten is itself a leaf."""
    return _flatten(tree)[0]


def _flatten(tree: Tree, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Leaf], Any]:
    try:
        return jax.tree_util.tree_flatten(tree, is_leaf=is_leaf)
    except Exception:  # noqa: BLE001 - the user's class may raise anything
        return [tree], jax.tree_util.tree_structure(0)


def children(tree: Tree) -> tuple[list[Tree], Any] | None:
    """Return the children of a container and its structure, or None if it is not a container."""
    if tree is None or isinstance(tree, _SCALARS):
        return None
    parts, structure = _flatten(tree, lambda part: part is not tree)
    alone = len(parts) == 1 and parts[0] is tree
    return None if alone else (parts, structure)


def only(tree: Tree, keep: Callable[[Leaf], bool]) -> Tree:
    """Return a pytree with the leaves for which `keep` is true, and None for the others."""
    leaves, structure = _flatten(tree, lambda leaf: leaf is None)
    return structure.unflatten([leaf if keep(leaf) else () for leaf in leaves])


def is_input(value: Any) -> bool:
    """Whether a notebook value is an input: it has arrays, or a cell may put some in."""
    if isinstance(value, list | dict):
        return children(value) is not None
    return any(is_array(leaf) for leaf in leaves_of(value))


@dataclass
class Copied:
    """The user's container, and the copy that a cell works on."""

    name: str
    original: Tree
    parts: list[Tree]
    structure: Any
    copy: Tree


class Copies:
    """Copies of containers in which arrays are replaced; shared containers stay shared."""

    def __init__(self) -> None:
        """Start without copies."""
        self._by_original: dict[int, Copied] = {}
        self.by_copy: dict[int, Copied] = {}

    def copy(self, tree: Tree, replaced: Iterator[Leaf], name: str = "") -> Tree:
        """Copy a pytree; `replaced` yields the replacements of its arrays in order.

        `name` identifies the copies.
        """
        if is_array(tree):
            return next(replaced)
        known = self._by_original.get(id(tree))
        if known is not None:
            for _ in filter(is_array, leaves_of(tree)):
                next(replaced)
            return known.copy
        inside = children(tree)
        if inside is None:
            return tree
        parts, structure = inside
        copied = [self.copy(part, replaced, name) for part in parts]
        copy = _ordered(structure.unflatten(copied), tree)
        entry = Copied(name, tree, parts, structure, copy)
        self._by_original[id(tree)] = self.by_copy[id(copy)] = entry
        return copy


class Settling:
    """Turns the values that a cell leaves into those that the notebook gets.

    `leaf` returns the array for a tracer. Copies become the user's own containers again, changed in
    place if the cell changed them.
    """

    def __init__(self, copies: Copies, leaf: Callable[[Leaf], Leaf]) -> None:
        """Settle with these copies."""
        self._copies = copies
        self._leaf = leaf
        self._done: dict[int, tuple[Tree, Tree]] = {}

    def copied(self) -> list[Copied]:
        """Return every container that was copied."""
        return list(self._copies.by_copy.values())

    def settle(self, tree: Tree) -> Tree:
        """Return the notebook's value for a value of the cell."""
        if is_tracer(tree):
            return self._leaf(tree)
        if id(tree) in self._done:
            return self._done[id(tree)][1]
        inside = children(tree)
        if inside is None:
            return tree
        result = self._container(tree, *inside)
        self._done[id(tree)] = (tree, result)
        return result

    def _container(self, tree: Tree, parts: list[Tree], structure: Any) -> Tree:
        settled = [self.settle(part) for part in parts]
        entry = self._copies.by_copy.get(id(tree))
        if entry is not None:
            if structure == entry.structure and _same(settled, entry.parts):
                return entry.original
        elif _same(settled, parts):
            return tree
        new = _ordered(structure.unflatten(settled), tree)
        return become(entry.original if entry else tree, new)


def become(old: Tree, new: Tree) -> Tree:
    """Put the contents of `new` into `old` if possible and return `old`; else return `new`."""
    if type(old) is not type(new) or isinstance(old, tuple):
        return new
    if isinstance(old, list):
        old[:] = new
    elif isinstance(old, dict):
        old.clear()
        old.update(new)
    _take_attributes(old, new)
    now, wanted = children(old), children(new)
    if now is None or wanted is None:
        return new
    return old if now[1] == wanted[1] and _same(now[0], wanted[0]) else new


def _take_attributes(old: Any, new: Any) -> None:
    """Copy the attributes of another object of the same class."""
    # Read from where they are stored: a class may answer for attributes that it does not have.
    for name in ("__dict__", *_slots(type(old))):
        try:
            value = object.__getattribute__(new, name)
        except AttributeError:
            continue
        if name == "__dict__":
            attributes = object.__getattribute__(old, name)
            attributes.clear()
            attributes.update(value)
        else:
            object.__setattr__(old, name, value)


def _slots(cls: type) -> Iterator[str]:
    for base in cls.__mro__:
        slots = base.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else tuple(slots):
            private = name.startswith("__") and not name.endswith("__")
            if name not in ("__dict__", "__weakref__"):
                yield f"_{base.__name__.lstrip('_')}{name}" if private else name


def _same(some: Sequence[Any], others: Sequence[Any]) -> bool:
    return len(some) == len(others) and all(a is b for a, b in zip(some, others, strict=True))


def _ordered(new: Tree, like: Tree) -> Tree:
    """Restore the order of a dictionary's keys, which JAX sorts."""
    if type(new) is dict:
        return {key: new[key] for key in like}
    if type(new) is defaultdict:
        return defaultdict(new.default_factory, {key: new[key] for key in like})
    return new
