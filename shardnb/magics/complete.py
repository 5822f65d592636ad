"""Tab completion in the lines of the magics."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from IPython.core.completer import SimpleCompletion, context_matcher

from shardnb.cost.overrides import is_file
from shardnb.magics import options
from shardnb.magics.meshes import NotebookMesh
from shardnb.mesh import offered as offered_targets

_MAGIC = re.compile(r"\s*(%%shard|%shard|%mesh)\s(.*)", re.DOTALL)
_LAST_WORD = re.compile(r"(?:^|\s)(\S*)$")
_IN_SPEC = re.compile(r"""\bP(?:artitionSpec)?\([^()]*(?:\([^()]*)?['"](\w*)$""")
_IN_LIKE = re.compile(r"""\blike\(['"]?(\w*)$""")
_SPEC = re.compile(r"[\w\]/]=(\w*)$")
_VALUE = re.compile(r"--([\w-]+)[ =](\S*)$")
_AXIS_TYPE = re.compile(r"[\w]+=\d+:(\w*)$")
_OPTIONS = {
    "%mesh": options.MESH_OPTIONS,
    "%shard": options.CALL_OPTIONS,
    "%%shard": options.CELL_OPTIONS,
}

Namespace = Mapping[str, Any]


def matcher(mesh: NotebookMesh, namespace: Namespace) -> Callable[[Any], dict[str, Any]]:
    """Return a matcher for IPython's completer."""

    @context_matcher(identifier="shardnb")  # type: ignore[untyped-decorator]
    def shardnb_matcher(context: Any) -> dict[str, Any]:
        line = _MAGIC.fullmatch(context.line_with_cursor[: context.cursor_position])
        if line is None or context.cursor_line > 0:
            return {"completions": []}
        fragment, offers = offered(line[1], line[2], mesh, namespace)
        words = sorted({offer for offer in offers if offer.startswith(fragment)})
        return {
            "completions": [SimpleCompletion(word, type="shardnb") for word in words],
            "matched_fragment": fragment,
            "suppress": bool(words),
        }

    typed: Callable[[Any], dict[str, Any]] = shardnb_matcher
    return typed


def offered(
    magic: str, text: str, mesh: NotebookMesh, namespace: Namespace
) -> tuple[str, Iterable[str]]:
    """Return the last word of a line, and its possible completions."""
    in_spec = _IN_SPEC.search(text)
    if in_spec:
        return in_spec[1], _axis_names(text, mesh)
    axis_type = _AXIS_TYPE.search(text)
    if axis_type:
        return axis_type[1], options.AXES.choices
    value = _VALUE.search(text)
    if value:
        fragment = value[2].rpartition(",")[2]
        return fragment, _of_an_option(value[1], fragment)
    in_shard = magic != "%mesh"
    return (in_shard and _of_a_spec(text, namespace)) or _of_a_word(magic, text, namespace)


def _of_an_option(name: str, fragment: str) -> list[str]:
    """Return the values of an option; of targets, as `offered_targets`, also other names."""
    known = (option.choices for option in options.CELL_OPTIONS if option.name == name)
    offers = list(next(known, ()))
    sized = re.search("[:*]", fragment) is not None
    if name in (options.ON.name, options.COMPARE.name) or (name == options.HARDWARE.name and sized):
        offers += offered_targets(fragment)
    if name == options.HARDWARE.name:
        folder = fragment.rpartition("/")[0]
        offers += (f"{folder}/{one.name}" if folder else one.name for one in _tables(folder))
    return offers


def _tables(folder: str) -> list[Path]:
    """Return the files of a folder that may have figures of hardware."""
    try:
        return [one for one in Path(folder or ".").expanduser().iterdir() if is_file(one.name)]
    except OSError:
        return []


def _of_a_word(magic: str, text: str, namespace: Namespace) -> tuple[str, Iterable[str]]:
    word = _LAST_WORD.search(text)
    fragment = word[1] if word else ""
    if fragment.startswith("-"):
        out = () if magic == "%mesh" else ("--out",)
        return fragment, [*(f"--{option.name}" for option in _OPTIONS[magic]), *out]
    if magic == "%%shard" and (fragment == "" or fragment.isidentifier()):
        return fragment, _targets(namespace)
    return fragment, ()


def _of_a_spec(text: str, namespace: Namespace) -> tuple[str, Iterable[str]] | None:
    """Return what is written of a spec, and its possible completions; None elsewhere."""
    if in_like := _IN_LIKE.search(text):
        return in_like[1], [target.removesuffix("=") for target in _targets(namespace)]
    spec = _SPEC.search(text)
    return (spec[1], ("P(", "like(", "logical(")) if spec else None


def _axis_names(text: str, mesh: NotebookMesh) -> list[str]:
    """Return the axes of the mesh that the line names, else of the notebook's mesh."""
    stated = re.search(r"--mesh[ =](\S+)", text)
    if stated and "=" in stated[1]:
        return re.findall(r"(\w+)=\d", stated[1])
    grid = mesh.grid()
    return [] if grid is None else list(grid.mesh.axis_names)


def _targets(namespace: Namespace) -> list[str]:
    """Return the notebook names that hold arrays, each followed by `=`."""
    from shardnb.magics.trees import is_array, leaves_of

    return [
        f"{name}="
        for name, value in namespace.items()
        if not name.startswith("_") and any(is_array(leaf) for leaf in leaves_of(value))
    ]
