"""The shardings of torch_xla's own tensors; torch_xla is imported by whoever made the tensor."""

from __future__ import annotations

import importlib
import re
from typing import Any

from shardnb.report.model import Axis, Mesh
from shardnb.texts.shardings import LayoutReader
from shardnb.torch.spmd import SpmdMesh, SpmdSharding

_DEVICES = re.compile(r"(devices=\[[\d,]+\])([\d,]+)")


def sharding_of(tensor: Any, mesh: SpmdMesh) -> SpmdSharding | None:
    """Return how a tensor of torch_xla is sharded over a mesh; None where it is not annotated.

    Raises ValueError for a tensor that is manual, or sharded as no axes of the mesh do.
    """
    plain = getattr(tensor, "global_tensor", tensor)
    bindings = importlib.import_module("torch_xla")._XLAC
    text: str = bindings._get_xla_sharding_spec(plain)
    return from_text(text, plain.dim(), mesh) if text else None


def from_text(text: str, rank: int, mesh: SpmdMesh) -> SpmdSharding:
    """Read the text of a sharding, by device ids, as PyTorch/XLA prints it.

    Raises ValueError for `{manual}`, and for a sharding that no axes of the mesh make.

    >>> from_text("{devices=[1,4,2]0,4,1,5,2,6,3,7 last_tile_dim_replicate}", 2,
    ...           SpmdMesh(range(8), (2, 4))).axes
    (None, (1,))
    """
    if text == "{manual}":
        raise ValueError("the tensor is manual: each device has its own, and no spec describes it")
    names = tuple(map(str, range(len(mesh.mesh_shape))))
    axes = [Axis(name, size) for name, size in zip(names, mesh.mesh_shape, strict=True)]
    reader = LayoutReader(Mesh(tuple(axes), tuple(range(mesh.size))))
    layout = reader.read(_DEVICES.sub(lambda match: _by_position(match, mesh), text), rank)
    if layout.spec is None:
        raise ValueError(f"no axes of {mesh} shard a tensor as {text}")
    return mesh.sharding(tuple(tuple(map(int, axes)) or None for axes in layout.spec))


def _by_position(match: re.Match[str], mesh: SpmdMesh) -> str:
    """Write the ids of devices as their positions in the mesh."""
    ids = [int(number) for number in match[2].split(",") if number]
    return match[1] + ",".join(str(mesh.device_ids.index(number)) for number in ids)
