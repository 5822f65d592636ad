"""A plan as Python to paste: the mesh, and the shardings of each argument."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import jax
from jax.sharding import PartitionSpec

from shardnb.compiler.placement import text as spec_text
from shardnb.report.model import Mesh
from shardnb.search.plans.patterns import STAR, path_pattern

Tree = Any
_FIND = '''def find(specs):
    """Return the spec whose pattern matches an array's path."""
    def of(path, _):
        name = jax.tree_util.keystr(path)
        return next(spec for pattern, spec in specs.items() if re.fullmatch(pattern, name))
    return of
'''


def written(args: Mapping[str, Tree], specs: Mapping[str, Tree], mesh: Mesh) -> str:
    """Write a mesh and specs: `shardings` in the text is what `jax.jit` calls `in_shardings`.

    A tree of dicts, lists and tuples is written as such. Another is mapped by the paths of its
    arrays: the text then uses the argument by its name.
    """
    sizes = _tuple([str(axis.size) for axis in mesh.axes])
    names = _tuple([repr(axis.name) for axis in mesh.axes])
    literals = {name: _literal(tree) for name, tree in specs.items()}
    by_path = any(text is None for text in literals.values())
    parts = [
        _mapped(name, specs[name]) if text is None else text for name, text in literals.items()
    ]
    lines = [
        *(["import re", ""] if by_path else []),
        "import jax",
        "from jax.sharding import AxisType, NamedSharding, PartitionSpec as P",
        "",
        f"mesh = jax.make_mesh({sizes}, {names}, axis_types=(AxisType.Auto,) * {len(mesh.axes)})",
        *(["", _FIND] if by_path else []),
        "specs = (",
        *(f"    {part},  # {name}" for name, part in zip(args, parts, strict=True)),
        ")",
        "shardings = jax.tree.map(",
        "    lambda spec: NamedSharding(mesh, spec), specs, is_leaf=lambda x: isinstance(x, P)",
        ")",
    ]
    return "\n".join(lines) + "\n"


def _mapped(name: str, specs: Tree) -> str:
    """Write specs by the paths of the arrays, layers together if their specs are equal."""
    paths = jax.tree_util.tree_flatten_with_path(
        specs, is_leaf=lambda leaf: isinstance(leaf, PartitionSpec)
    )[0]
    placed: dict[str, set[str]] = {}
    for path, spec in paths:
        placed.setdefault(path_pattern(path), set()).add(spec_text(spec))
    rows = {
        (
            _regex(path_pattern(path))
            if len(placed[path_pattern(path)]) == 1
            else _regex(jax.tree_util.keystr(path))
        ): spec_text(spec)
        for path, spec in paths
    }
    body = ", ".join(f"{pattern!r}: {spec}" for pattern, spec in rows.items())
    return f"jax.tree_util.tree_map_with_path(find({{{body}}}), {name})"


def _regex(pattern: str) -> str:
    return re.escape(pattern).replace(re.escape(STAR), r"\d+")


def _literal(tree: Tree) -> str | None:
    """Write a tree of dicts, lists and tuples; None where it has other nodes."""
    if isinstance(tree, PartitionSpec):
        return spec_text(tree)
    if type(tree) is dict:
        parts = {key: _literal(value) for key, value in tree.items()}
        if any(text is None for text in parts.values()):
            return None
        return "{" + ", ".join(f"{key!r}: {text}" for key, text in parts.items()) + "}"
    if type(tree) in (list, tuple):
        return _sequence(tree)
    return "None" if tree is None else None


def _sequence(tree: Sequence[Tree]) -> str | None:
    parts = [text for item in tree if (text := _literal(item)) is not None]
    if len(parts) < len(tree):
        return None
    alike = len(parts) > 1 and len(set(parts)) == 1
    shown = parts[:1] if alike else parts
    text = f"[{', '.join(shown)}]" if isinstance(tree, list) else _tuple(shown)
    return f"{text} * {len(parts)}" if alike else text


def _tuple(parts: Sequence[str]) -> str:
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
