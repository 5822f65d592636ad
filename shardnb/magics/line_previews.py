"""Shardings that an edited `%%shard` line leads to, before the cell is compiled."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from shardnb.bugs import contained
from shardnb.compiler import Program
from shardnb.compiler.collector import collector_paused
from shardnb.jax_compat.process_lock import no_names_traced
from shardnb.magics import options
from shardnb.magics.compiled_cell import CompiledCell, compiled_cell
from shardnb.magics.meshes import NotebookMesh
from shardnb.magics.options import MagicLine
from shardnb.magics.prepared import Prepared
from shardnb.magics.preview_channel import UNKNOWN, Answer
from shardnb.report import Report
from shardnb.report.spec import type_text
from shardnb.views.formatting import clean
from shardnb.widgets.preview import NoPreview

# Somebody edits a few cells at a time; a module of Shardy's takes up to some MB
# (test_only_the_last_cells_are_kept).
_KEPT = 16


class LinePreviews:
    """The cells that were compiled last, and previews of other lines of theirs."""

    def __init__(self, namespace: dict[str, Any], notebook: NotebookMesh) -> None:
        """Know no cell."""
        self._namespace, self._notebook = namespace, notebook
        self._cells: OrderedDict[str, CompiledCell] = OrderedDict()

    def forget(self, cell: str | None) -> None:
        """Drop a cell, since it runs again."""
        if cell is not None:
            self._cells.pop(cell, None)

    def keep(
        self,
        cell: str | None,
        lines: Sequence[str],
        line: MagicLine,
        prepared: Prepared,
        program: Program,
        report: Report,
    ) -> None:
        """Keep what previews need of a cell that was compiled; `lines` are its text.

        Without an id of the cell, no editor can ask for it.
        """
        parts = options.parted("\n".join(lines))
        if cell is None or parts is None:
            return
        with contained("a preview of the cell's first line"):
            kept = compiled_cell(parts[1].rstrip(), line, prepared, program, report)
            self._cells[cell] = kept
            while len(self._cells) > _KEPT:
                self._cells.popitem(last=False)

    def answer(self, cell: str, code: str) -> Answer:
        """Say what the text of a cell leads to, where only its line differs from the compiled one.

        Nothing of the user's runs.
        """
        parts, kept = options.parted(code), self._cells.get(cell)
        if parts is None or kept is None or parts[1].rstrip() != kept.body:
            return UNKNOWN
        try:
            return self._answer(kept, parts[0])
        except NoPreview as error:
            return {"kind": "none", "said": clean(f"No preview: {error}.")}
        except (ValueError, TypeError) as error:  # what is wrong with a line, also in JAX's words
            return {"kind": "refused", "said": clean(str(error))}

    def _answer(self, kept: CompiledCell, text: str) -> Answer:
        line = options.parse_cell(text)
        with no_names_traced() as free:
            if not free:
                return {"kind": "busy"}
            stated = kept.read(line, self._namespace, self._notebook)
        if stated == kept.stated:
            return {"kind": "compiled"}
        with collector_paused():
            report = kept.preview(stated)
        return {"kind": "preview", "types": _types(report)}


def _types(report: Report) -> list[tuple[int, int, str, str]]:
    """Return the source, the line, the name and the type of each value that a line assigns."""
    types: dict[tuple[int, int, str], str] = {}
    for value in (*report.values, *report.outputs):
        if (at := value.location) is not None and value.name.isidentifier():
            types.setdefault((at.source, at.line, value.name), clean(type_text(value)))
    return [(*place, text) for place, text in types.items()]
