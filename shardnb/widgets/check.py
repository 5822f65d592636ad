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
from shardnb.widgets import in_kernel
from shardnb.widgets.base import Live, listening
from shardnb.widgets.plan import partition_spec


def _with_specs(call: ShardMapCall, ins: Sequence[Spec], outs: Sequence[Spec]) -> ShardMapCall:
    """Give a call with other specs of single arrays, in the structures that were given."""
    structure = jax.tree_util.tree_structure(call.arguments)
    in_specs = jax.tree_util.tree_unflatten(structure, list(map(partition_spec, ins)))
    if not outs:
        return replace(call, in_specs=in_specs)
    structure = jax.tree_util.tree_structure(call.out_specs, is_leaf=placement.is_spec)
    out_specs = jax.tree_util.tree_unflatten(structure, list(map(partition_spec, outs)))
    return replace(call, in_specs=in_specs, out_specs=out_specs)


class CheckView(Live):
    """A widget on a check; where it can be made again, specs are chosen in it.

    `check` is the last one.
    """

    data = traitlets.Dict().tag(sync=True)
    pick = traitlets.Dict().tag(sync=True)

    def __init__(self, check: ShardMapCheck) -> None:
        """Show a check."""
        self._call = call = check.again
        self.check = check = replace(check, again=None)
        pick = {} if call is None else _pickers(check, call)
        chosen = [[one["spec"] for one in pick.get(part, ())] for part in ("inputs", "outputs")]
        data = {"number": 0, **_plain(check), "said": _said(check, *chosen)}
        super().__init__(view="check", data=data, pick=pick)
        listening(self, self._hear)

    def text(self) -> str:
        """Give the check as text."""
        return str(self.check)

    def html(self) -> str:
        """Give the check as HTML."""
        written: str = self.check._repr_mimebundle_()["text/html"]
        return written

    def _hear(self, content: Mapping[str, Any]) -> None:
        call, kind = self._call, content.get("kind")
        if call is None or kind not in ("check", "compile"):
            return
        number = content.get("number", 0)
        try:
            ins, outs = (
                [_spec(one) for one in content.get(part, ())] for part in ("inputs", "outputs")
            )
            # The body is traced again, and heard of nowhere.
            with quiet_retrace():
                check = checked(_with_specs(call, ins, outs), compiled=kind == "compile")
        # The user's body, JAX and XLA may raise anything. It is shown, a bug of ours included: the
        # front end waits for an answer, and what a comm's handler raises is in no cell.
        except Exception as error:  # noqa: BLE001
            self.data = {
                **self.data,
                "number": number,
                "failed": f"{type(error).__name__}: {error}",
            }
            return
        self.check = check
        said = _said(check, ins, outs)
        self.data = {"number": number, **_plain(check), "said": said}


def mimebundle(check: ShardMapCheck, **selection: Any) -> Any:
    """Give a check as the widget where a kernel can answer it, else as text and HTML."""
    if in_kernel.is_alive():
        return CheckView(check)._repr_mimebundle_(**selection)
    return explanations.mimebundle(check)


def _plain(check: ShardMapCheck) -> dict[str, Any]:
    """Give a check as plain data, its report as JSON."""
    report = check.report
    data: dict[str, Any] = msgspec.to_builtins(replace(check, report=None))
    return {**data, "report": live.to_json(report) if report else None}


def _said(check: ShardMapCheck, ins: Sequence[Any], outs: Sequence[Any]) -> dict[str, Any]:
    """Give the verdict in words, and how the specs that are chosen are written."""
    refused = f"JAX refuses this shard_map: {check.error}"
    return {
        "mesh": mesh_text(check.mesh),
        "verdict": "accepted" if check.accepted else "refused",
        "sentence": "JAX accepts this shard_map" if check.accepted else refused,
        "inputs": [clean(spec_text(_spec(one))) for one in ins],
        "outputs": [clean(spec_text(_spec(one))) for one in outs],
    }


def _pickers(check: ShardMapCheck, call: ShardMapCall) -> dict[str, Any]:
    """Give the arrays whose specs can be chosen, with the specs that they have."""
    sizes = call.grid.mesh.shape
    outs = jax.tree_util.tree_leaves(call.out_specs, is_leaf=placement.is_spec)
    fits = len(outs) == len(check.outputs)
    return {
        "axes": [
            {"name": name, "size": sizes[name], "type": "manual"}
            for name in sizes
            if name in call.manual
        ],
        "inputs": [
            _picker(s.name, s.shape, spec)
            for s, spec in zip(check.inputs, _ins(check, call), strict=False)
        ],
        "outputs": [
            _picker(s.name, s.local_shape, spec)
            for s, spec in zip(check.outputs, outs, strict=True)
        ]
        if fits
        else [],
    }


def _ins(check: ShardMapCheck, call: ShardMapCall) -> list[Any]:
    count = len(jax.tree_util.tree_leaves(call.arguments))
    specs = call.in_specs
    if isinstance(specs, PartitionSpec):
        return [specs] * count
    names = [str(i) for i in range(len(call.arguments))]
    args, given = (
        dict(zip(names, call.arguments, strict=True)),
        dict(zip(names, specs, strict=False)),
    )
    found = [spec for _, _, spec in placement.stated(args, given)] if check.inputs else []
    return found if len(found) == count == len(check.inputs) else []


def _picker(name: str, shape: Sequence[int] | None, spec: Any) -> dict[str, Any]:
    rank = len(shape or ())
    entries = [list(axes) for axes in placement.entries(spec)] if spec is not None else []
    return {
        "name": name,
        "shape": list(shape or ()),
        "spec": [*entries, *[[]] * (rank - len(entries))],
    }


def _spec(data: Any) -> Spec:
    return tuple(tuple(map(str, axes)) for axes in data)
