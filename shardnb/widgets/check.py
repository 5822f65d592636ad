"""The check of a `shard_map` as a widget: its specs, what varies line by line, the verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import msgspec
import traitlets
from jax.sharding import PartitionSpec

from shardnb.compiler import placement
from shardnb.manual import checker
from shardnb.mesh import Grid
from shardnb.report import Source
from shardnb.report.model import Spec
from shardnb.report.spec import spec_text
from shardnb.report.types import ShardMapCheck
from shardnb.rewrite.retrace import quiet_retrace
from shardnb.sources.source_texts import Sources
from shardnb.views import explanations, live
from shardnb.views.content import mesh_text
from shardnb.views.formatting import clean
from shardnb.widgets import in_kernel
from shardnb.widgets.base import Live, listening
from shardnb.widgets.plan import partition_spec

Tree = Any


@dataclass(frozen=True)
class Body:
    """A `shard_map` that can be checked again with other specs; of arrays it has the shapes."""

    fn: Callable[..., Tree]
    args: tuple[Tree, ...]
    grid: Grid
    in_specs: Tree
    out_specs: Tree
    axis_names: frozenset[str] = frozenset()
    check_vma: bool = True
    sources: tuple[Source, ...] = ()
    files: Mapping[str, int] | None = None

    def check(self, in_specs: Tree, out_specs: Tree, *, compiled: bool) -> ShardMapCheck:
        """Check it with other specs; the body is traced again, and heard of nowhere."""
        with quiet_retrace():
            return checker.check_shard_map(
                self.fn,
                self.args,
                self.grid,
                in_specs=in_specs,
                out_specs=out_specs,
                axis_names=self.axis_names,
                check_vma=self.check_vma,
                compiled=compiled,
                sources=Sources(self.sources, self.files),
            )

    def ins(self, specs: Sequence[Spec]) -> Tree:
        """Give specs of single arrays in the structure of the arguments."""
        structure = jax.tree_util.tree_structure(self.args)
        return jax.tree_util.tree_unflatten(structure, list(map(partition_spec, specs)))

    def outs(self, specs: Sequence[Spec]) -> Tree:
        """Give specs in the structure that out_specs were given in."""
        structure = jax.tree_util.tree_structure(self.out_specs, is_leaf=placement.is_spec)
        return jax.tree_util.tree_unflatten(structure, list(map(partition_spec, specs)))


class CheckView(Live):
    """A widget on a check; with its body, specs are chosen in it, and `check` is the last one."""

    data = traitlets.Dict().tag(sync=True)
    pick = traitlets.Dict().tag(sync=True)

    def __init__(self, check: ShardMapCheck, body: Body | None = None) -> None:
        """Show a check; `body` is what it checked."""
        self.check = check = replace(check, again=None)
        self._body = body
        pick = {} if body is None else _pickers(check, body)
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
        body, kind = self._body, content.get("kind")
        if body is None or kind not in ("check", "compile"):
            return
        number = content.get("number", 0)
        try:
            ins, outs = (
                [_spec(one) for one in content.get(part, ())] for part in ("inputs", "outputs")
            )
            out_specs = body.outs(outs) if outs else body.out_specs
            check = body.check(body.ins(ins), out_specs, compiled=kind == "compile")
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


def widget_of(check: ShardMapCheck) -> CheckView:
    """Give a check as a widget; one that was read from somewhere is only shown."""
    return CheckView(check, Body(**check.again) if check.again is not None else None)


def mimebundle(check: ShardMapCheck, **selection: Any) -> Any:
    """Give a check as the widget where a kernel can answer it, else as text and HTML."""
    if in_kernel.is_alive():
        return widget_of(check)._repr_mimebundle_(**selection)
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


def _pickers(check: ShardMapCheck, body: Body) -> dict[str, Any]:
    """Give the arrays whose specs can be chosen, with the specs that they have."""
    manual = body.axis_names or frozenset(body.grid.mesh.axis_names)
    sizes = body.grid.mesh.shape
    outs = jax.tree_util.tree_leaves(body.out_specs, is_leaf=placement.is_spec)
    fits = len(outs) == len(check.outputs)
    return {
        "axes": [
            {"name": name, "size": sizes[name], "type": "manual"}
            for name in sizes
            if name in manual
        ],
        "inputs": [
            _picker(s.name, s.shape, spec)
            for s, spec in zip(check.inputs, _ins(check, body), strict=False)
        ],
        "outputs": [
            _picker(s.name, s.local_shape, spec)
            for s, spec in zip(check.outputs, outs, strict=True)
        ]
        if fits
        else [],
    }


def _ins(check: ShardMapCheck, body: Body) -> list[Any]:
    count = len(jax.tree_util.tree_leaves(body.args))
    specs = body.in_specs
    if isinstance(specs, PartitionSpec):
        return [specs] * count
    names = [str(i) for i in range(len(body.args))]
    args, given = dict(zip(names, body.args, strict=True)), dict(zip(names, specs, strict=False))
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
