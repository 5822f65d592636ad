"""Checks of the arrays that a line places, before a cell is traced."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from shardnb.compiler import placement
from shardnb.magics.cell import CellError
from shardnb.magics.trees import is_array, leaves_of, only

Tree = Any


def refuse_what_does_not_fit(inputs: Mapping[str, Tree]) -> None:
    """Raise `CellError` for a NumPy array whose values are lost in JAX's type for them.

    With `jax_enable_x64` off JAX takes arrays of 64 bits as those of 32.
    """
    for name, value in inputs.items():
        for array in leaves_of(value):
            if not isinstance(array, np.ndarray) or not is_array(array):
                continue
            dtype = jax.dtypes.canonicalize_dtype(array.dtype)
            lost = None if dtype == array.dtype else _lost(array, dtype)
            if lost is not None:
                raise CellError(
                    f"{name} holds {lost}, which does not fit into {dtype}, the type that JAX "
                    f"gives it; without a spec {name} stays a NumPy array, and with "
                    "jax.config.update('jax_enable_x64', True) it keeps its type"
                )


def _lost(array: np.ndarray[Any, Any], dtype: Any) -> Any:
    """Return a value that another dtype cannot hold, or None; rounding does not count."""
    if array.dtype.kind in "iu":
        limits = np.iinfo(dtype)
        extremes = (array.min(initial=0), array.max(initial=0))
        return next((v for v in extremes if not limits.min <= int(v) <= limits.max), None)
    with np.errstate(over="ignore", under="ignore"):
        narrow = array.astype(dtype)
    lost = (np.isinf(narrow) & ~np.isinf(array)) | ((narrow == 0) & (array != 0))
    return array[lost].flat[0] if lost.any() else None


def refuse_two_specs(inputs: Mapping[str, Tree], specs: Mapping[str, Tree]) -> None:
    """Raise `CellError` for one array in two pytrees that are placed differently."""
    known: dict[int, tuple[str, Any]] = {}
    for name, spec in specs.items():
        if is_array(inputs[name]):
            continue  # a name by itself has an input of its own
        arrays = only(inputs[name], is_array)
        leaves = jax.tree_util.tree_leaves(arrays)
        for leaf, stated in zip(leaves, placement.spread(name, arrays, spec), strict=True):
            other, before = known.setdefault(id(leaf), (name, stated))
            if before != stated:
                raise CellError(
                    f"{name} and {other} are the same array, which cannot be sharded as {stated} "
                    f"and as {before}: give both one spec, or {name} a copy"
                )
