"""The report of a StableHLO text: what goes in and out, before the partitioner adds collectives."""

from __future__ import annotations

import re
from collections.abc import Sequence

from shardnb.findings.text_evidence import of_axes, unnamed
from shardnb.jax_compat import mlir
from shardnb.jax_compat.parts import NotAvailable
from shardnb.report import valid
from shardnb.report.invalid_input import InvalidInput
from shardnb.report.model import Axis, Mesh, Report, Spec, Value
from shardnb.report.spec import placed_value
from shardnb.terms.collectives import KINDS
from shardnb.texts import shardy
from shardnb.texts.nesting import check_nesting
from shardnb.texts.shardy_results import read_stated

_HEAD = re.compile(r"\s*(?:#\w+ = .*\n|\s|//.*\n)*module\b")
_ONE_DEVICE = re.compile(r"\bmhlo\.num_partitions = 1 :")
_NAME = re.compile(r"module @([\w.$-]+)")
_CALLED = re.compile(rf"\bstablehlo\.({'|'.join(kind.replace('-', '_') for kind in KINDS)})\b")
_NOTE = (
    "this is StableHLO, before partitioning: the collectives that the partitioner will add are not "
    "in it; sn.explain(lowered) explains the program that it is compiled to"
)


def is_stablehlo(text: str) -> bool:
    """Whether a text is a module of MLIR."""
    return _HEAD.match(text) is not None


def report_of_stablehlo(text: str, mesh: Mesh | None = None) -> Report:
    """Return the report of a StableHLO module with Shardy's shardings.

    Raises `InvalidInput` where the text cannot be read, and where the mesh has other axes.
    """
    check_nesting(text)
    try:
        parsed = mlir.Module(text)
        module, results = shardy.read(parsed), read_stated(parsed).results
    except (ValueError, NotAvailable) as error:
        raise InvalidInput(str(error)) from error
    stated = [axes for axes in module.meshes.values() if axes]
    if mesh is None:
        mesh = of_axes([Axis(*axis) for axis in stated[0].items()]) if stated else unnamed(1)
    elif stated and dict(mesh.shape) != stated[0]:
        raise InvalidInput(
            f"the text is for the mesh {stated[0]}, and the mesh is {dict(mesh.shape)}"
        )
    name = _NAME.search(text)
    alone = not stated and _ONE_DEVICE.search(text) is not None
    called = len(_CALLED.findall(text))
    calls = (f"it calls {called} collective{'s'[: called != 1]} itself",) if called else ()
    report = Report(
        title=name[1] if name else "module",
        mesh=mesh,
        inputs=_values(mesh, "argument", module.inputs, [value.spec for value in module.inputs]),
        outputs=_values(
            mesh,
            "result",
            [output.value for output in module.outputs],
            [result.constrained_spec for result in results],
        ),
        notes=() if alone else (_NOTE, *calls),
        partitioned=alone,
        complete=False,
        texts={"stablehlo": text},
    )
    return valid.check(report)


def _values(
    mesh: Mesh, name: str, values: Sequence[shardy.Value], specs: Sequence[Spec | None]
) -> tuple[Value, ...]:
    """Return the arrays whose sharding the text states; propagation decides of the others."""
    return tuple(
        placed_value(f"{name} {number}", value.dtype, value.shape, spec, mesh)
        for number, (value, spec) in enumerate(zip(values, specs, strict=True))
        if spec is not None
    )
