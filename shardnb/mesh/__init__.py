"""Meshes: their grammar and their devices."""

from shardnb.mesh.grammar import MeshSpec, axis_type, nearest_text, no_mesh, parse_mesh
from shardnb.mesh.grid import Grid, follow, make_grid, mesh_of, retyped, unfollow
from shardnb.mesh.targets import (
    TARGETS,
    devices_for,
    is_target,
    offered,
    refuse_too_many,
    target_name,
)

__all__ = [
    "TARGETS",
    "Grid",
    "MeshSpec",
    "axis_type",
    "devices_for",
    "follow",
    "is_target",
    "make_grid",
    "mesh_of",
    "nearest_text",
    "no_mesh",
    "offered",
    "parse_mesh",
    "refuse_too_many",
    "retyped",
    "target_name",
    "unfollow",
]
