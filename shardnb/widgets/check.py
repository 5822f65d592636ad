"""The check of a `shard_map` as a widget: its specs, what varies line by line, the verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax
import msgspec
import traitlets
from jax.sharding import PartitionSpec

from shardnb.axis_types import checked
from shardnb.compiler import placement
from shardnb.manual.checker import ShardMapCall
from shardnb.report.model import Spec
from shardnb.report.spec import spec_text
from shardnb.report.types import ShardMapCheck
from shardnb.rewrite.retrace import quiet_retrace
from shardnb.views import explanations, live
from shardnb.views.content import mesh_text
from shardnb.views.formatting import clean
from shardnb.widgets.base import Live


def _with_specs(call: ShardMapCall, ins: Sequence[Spec], outs: Sequence[Spec]) -> ShardMapCall:
    """Return a call with other specs for single arrays, in the given structures."""
    structure = jax.tree_util.tree_structure(call.arguments)
    in_specs = jax.tree_util.tree_unflatten(structure, list(map(placement.partition_spec, ins)))
    if not outs:
        return replace(call, in_specs=in_specs)
    structure = jax.tree_util.tree_structure(call.out_specs, is_leaf=placement.is_spec)
    out_specs = jax.tree_util.tree_unflatten(structure, list(map(placement.partition_spec, outs)))
    return replace(call, in_specs=in_specs, out_specs=out_specs)


class CheckView(Live):
    """A widget for a check; if it can be checked again, specs can be chosen in it.

    `check` is the latest one.
    """

    data = traitlets.Dict().tag(sync=True)
    pick = traitlets.Dict().tag(sync=True)

    def __init__(self, check: ShardMapCheck) -> None:
        """Show a check."""
        self._call = call = check.again
        self.check = check = replace(check, again=None)
        pick = {} if call is None else _pickers(check, call)
        chosen = [[row["spec"] for row in pick.get(part, ())] for part in ("inputs", "outputs")]
        data = {"number": 0, **_plain(check), "said": _said(check, *chosen)}
        super().__init__(view="check", data=data, pick=pick)
        self.listen(self._hear)

    def text(self) -> str:
        """Return the check as text."""
        return str(self.check)

    def html(self) -> str:
        """Return the check as HTML."""
        return explanations.html_of(self.check)

    def _hear(self, content: Mapping[str, Any]) -> None:
        call, kind = self._call, content.get("kind")
        if call is None or kind not in ("check", "compile"):
            return
        number = content.get("number", 0)
        try:
            ins, outs = (
                [_spec(axes) for axes in content.get(part, ())] for part in ("inputs", "outputs")
            )
            # The body is traced again, without its output.
            with quiet_retrace():
                check = checked(_with_specs(call, ins, outs), compiled=kind == "compile")
        # The user's body, JAX and XLA may raise anything. All errors are shown, bugs too: the
        # front end waits for an answer, and an error in a comm's handler appears in no cell.
        except Exception as error:  # noqa: BLE001
            failed = f"{type(error).__name__}: {error}"
            self.data = {**self.data, "number": number, "failed": failed}
            return
        self.check = check
        self.data = {"number": number, **_plain(check), "said": _said(check, ins, outs)}
        self.keep()


def display(check: ShardMapCheck) -> None:
    """Display a check as the widget; raises `NotImplementedError` outside of a kernel."""
    CheckView(check)._ipython_display_()


def _plain(check: ShardMapCheck) -> dict[str, Any]:
    """Return a check as plain data, its report as JSON, its error's fix among the missing ones."""
    report, explained = check.report, check.explained
    data: dict[str, Any] = msgspec.to_builtins(replace(check, report=None, explained=None))
    if explained is not None:
        fix, other_fix = (*explained.fixes, "", "")[:2]
        why = f"{explained.sentence}. {explained.cause}"
        data["missing"] = [{"why": why, "fix": fix, "other_fix": other_fix}]
    return {**data, "report": live.to_json(report) if report else None}


def _said(check: ShardMapCheck, ins: Sequence[Any], outs: Sequence[Any]) -> dict[str, Any]:
    """Return the verdict in words, and the chosen specs as code."""
    refused = f"JAX rejects this shard_map: {check.error}"
    return {
        "mesh": mesh_text(check.mesh),
        "verdict": "accepted" if check.accepted else "refused",
        "sentence": "JAX accepts this shard_map" if check.accepted else refused,
        "inputs": [clean(spec_text(_spec(axes))) for axes in ins],
        "outputs": [clean(spec_text(_spec(axes))) for axes in outs],
    }


def _pickers(check: ShardMapCheck, call: ShardMapCall) -> dict[str, Any]:
    """Return the arrays whose specs can be chosen, with their present specs."""
    sizes = call.grid.mesh.shape
    axes = [{"name": n, "size": sizes[n], "type": "manual"} for n in sizes if n in call.manual]
    ins = zip(check.inputs, _ins(check, call), strict=False)
    outs = jax.tree_util.tree_leaves(call.out_specs, is_leaf=placement.is_spec)
    # A prefix of specs for several results cannot be edited.
    shown = check.outputs if len(outs) == len(check.outputs) else ()
    return {
        "axes": axes,
        "inputs": [_picker(array.name, array.shape, spec) for array, spec in ins],
        "outputs": [
            _picker(array.name, array.local_shape, spec)
            for array, spec in zip(shown, outs, strict=False)
        ],
    }


def _ins(check: ShardMapCheck, call: ShardMapCall) -> list[Any]:
    count = len(jax.tree_util.tree_leaves(call.arguments))
    specs = call.in_specs
    if isinstance(specs, PartitionSpec):
        return [specs] * count
    args = {str(i): argument for i, argument in enumerate(call.arguments)}
    given = {str(i): spec for i, spec in enumerate(specs)}
    stated = [spec for _, _, spec in placement.stated(args, given)] if check.inputs else []
    return stated if len(stated) == count == len(check.inputs) else []


def _picker(name: str, shape: Sequence[int] | None, spec: Any) -> dict[str, Any]:
    dims = placement.dims_of(PartitionSpec() if spec is None else spec, len(shape or ()))
    return {"name": name, "shape": list(shape or ()), "spec": [list(axes) for axes in dims]}


def _spec(data: Any) -> Spec:
    return tuple(tuple(map(str, axes)) for axes in data)
