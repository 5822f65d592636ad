"""Exceptions about `shard_map`, the varying set and the names of mesh axes."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import jax

from shardnb.bugs import Inconclusive, refusable
from shardnb.compiler import placement
from shardnb.compiler.placement import text as spec_text
from shardnb.errors.error_draft import Draft, listed, mesh_of, value_on
from shardnb.errors.evidence import ErrorEvidence
from shardnb.errors.reshard_candidates import collectives_of
from shardnb.jax_compat import error_wordings as wordings
from shardnb.jax_compat.error_wordings import spec_in_type, varying_in_type
from shardnb.jax_compat.frames import SHARD_MAP_BODY, is_jaxs_own
from shardnb.jax_compat.jaxprs import as_function
from shardnb.jax_compat.tracing import traced_apart
from shardnb.manual.missing_collective import missing_collective, result_name, state_of
from shardnb.manual.varying import State
from shardnb.mesh import Grid, make_grid
from shardnb.propagation.typed_view import ordered
from shardnb.report.bytes_sent import most_sent
from shardnb.report.model import Value
from shardnb.report.types import Candidate, MissingCollective
from shardnb.rewrite.source_expressions import expression_of
from shardnb.terms.primitives import FUNCTIONS

_INIT = {"scan": (1, "init"), "while_loop": (2, "init_val"), "fori_loop": (3, "init_val")}


def unproven(evidence: ErrorEvidence, _: re.Match[str]) -> Draft | None:
    """A result that may differ along an axis that its out_spec omits."""
    by_class = wordings.REPLICATION_ERROR in evidence.classes
    if not by_class and not wordings.NOT_REPLICATED.search(evidence.message):
        return None
    sentence = "a result of the shard_map may differ along an axis that out_specs leaves out"
    cause = (
        "Leaving an axis out of out_specs promises that the devices along it hold the same result. "
        "The body does not ensure that"
    )
    names = SHARD_MAP_BODY.find(evidence.frames)
    file = str(getattr(names["debug_info"], "func_filename", None) or "") if names else ""
    # Outside jit, JAX maps its own function over the finished results.
    if names is None or is_jaxs_own(file) or not hasattr(names["jaxpr"], "outvars"):
        return Draft("missing-collective", sentence, f"{cause}.")
    found = list(_missing(evidence, names))
    fixes = tuple(dict.fromkeys(edit for each in found for edit in each.edits))
    collectives = [each.collective for each in found]
    axes = dict.fromkeys(axis for collective in collectives for axis in collective.axes)
    why = "; ".join(dict.fromkeys(each.why for each in collectives))
    located = next((collective for collective in collectives if collective.location), None)
    return Draft(
        kind="missing-collective",
        sentence=f"a result of the shard_map may differ along {listed(axes)}, which out_specs "
        f"{', '.join(spec_text(s) for s in names['out_specs'])} leaves out",
        cause=f"{cause}{f': {why}' if why else ''}.",
        values=tuple(_body_values(names)),
        fixes=fixes,
        candidates=_candidates(names, found, evidence.grid),
        checked=all(map(_is_code, fixes)),
        mesh=mesh_of(names["mesh"]),
        location=located.location if located else None,
        expression=located.expression if located else "",
    )


class _Missing(NamedTuple):
    """A missing collective, the edits that add it, and the number of the result."""

    collective: MissingCollective
    edits: list[str]
    number: int


def _missing(evidence: ErrorEvidence, names: dict[str, Any]) -> Iterator[_Missing]:
    jaxpr, mesh = names["jaxpr"], names["mesh"]
    entries = [list(placement.entries(spec)) for spec in names["in_specs"]]
    for number, (variable, spec) in enumerate(zip(jaxpr.outvars, names["out_specs"], strict=True)):
        in_spec = {axis for axes in placement.entries(spec) for axis in axes}
        for axis in ordered(variable.aval.manual_axis_type.varying - in_spec, mesh):
            state = state_of(jaxpr, number, axis, entries)
            missing = missing_collective(
                result_name(number, len(jaxpr.outvars)),
                axis,
                state,
                spec,
                variable.aval,
                names=evidence.names,
                sources=evidence.sources,
            )
            yield _Missing(missing, list(_edits(evidence, missing, state, axis)), number)


def _edits(
    evidence: ErrorEvidence, missing: MissingCollective, state: State, axis: str
) -> Iterator[str]:
    if state.kind in ("partial", "spent") and state.reducer and state.origin is not None:
        expression = expression_of(state.origin, evidence.sources, evidence.names)
        if expression is not None and isinstance(expression.node, ast.expr):
            pieces = expression.wrapped(expression.node, f"lax.{state.reducer}", repr(axis))
            yield expression.edited(pieces)
            return
    yield missing.fix
    if missing.other_fix:
        yield missing.other_fix


def _body_values(names: dict[str, Any]) -> Iterator[Value]:
    """Return the arguments as the global arrays that in_specs shard."""
    given = getattr(names.get("debug_info"), "arg_names", None) or ()
    for number, (aval, spec) in enumerate(zip(names["in_avals"], names["in_specs"], strict=True)):
        name = given[number] if number < len(given) else f"argument {number}"
        yield value_on(name, aval, spec, names["mesh"].shape)


def _candidates(
    names: dict[str, Any], found: list[_Missing], grid: Grid | None
) -> tuple[Candidate, ...]:
    """Compile the body with the missing collective, and count what it sends.

    If several are missing, JAX would not accept one alone.
    """
    if len(found) != 1:
        return ()
    (missing, edits, number), *_ = found
    function = FUNCTIONS[missing.collective] if missing.collective else None
    if function is None or not function.reduces:
        return ()
    call = getattr(jax.lax, function.name)
    mesh = names["mesh"]
    if grid is None or grid.mesh.shape != mesh.shape:
        grid = make_grid(",".join(map("{}={}".format, mesh.axis_names, mesh.axis_sizes)))

    def body(*args: Any) -> Any:
        results = list(as_function(names["jaxpr"])(*args))
        results[number] = call(results[number], missing.axes)
        return tuple(results)

    in_specs, out_specs = tuple(names["in_specs"]), tuple(names["out_specs"])
    mapped = jax.shard_map(body, mesh=grid.mesh, in_specs=in_specs, out_specs=out_specs)
    shapes = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in names["in_avals"]]
    with suppress(Inconclusive):
        with refusable(), jax.set_mesh(grid.mesh), traced_apart():
            traced = jax.jit(mapped).trace(*shapes)
        collectives = collectives_of(traced, grid)
        return (
            Candidate(
                edit=edits[0],
                spec=spec_text(out_specs[number]),
                collectives=tuple((c.kind, c.axes or ()) for c in collectives),
                wire_bytes=most_sent(collectives),
            ),
        )
    return ()


def carry(evidence: ErrorEvidence, match: re.Match[str]) -> Draft | None:
    """A loop whose carry changes its type: the axes along which it varies, or its sharding."""
    name, before, after = match.groups()
    axes = sorted(varying_in_type(after) - varying_in_type(before))
    if axes:
        cast = f"{_axis_argument(axes)}, to='varying'"
        fix = _at_init(evidence, "lax.pcast", cast)
        return Draft(
            kind="carry",
            sentence=f"the carry {name!r} starts the same along {listed(axes)} but is made to "
            "differ",
            cause=f"A loop's carry has one type: it goes in as {before} and comes out as {after}. "
            "The body adds values that differ between devices, so its type has to say so "
            "from the start. pcast only changes the type; nothing is sent.",
            fixes=(fix or f"jax.lax.pcast(..., {cast}) on the initial carry",),
        )
    if "@" not in before + after:
        return None
    fix = _at_init(evidence, "sharding.reshard", spec_text(spec_in_type(after)))
    back = spec_text(spec_in_type(before))
    return Draft(
        kind="carry",
        sentence=f"the carry {name!r} goes into the loop as {before} and comes out as {after}",
        cause="A loop's carry has one type, and with Explicit axes the sharding is part of it.",
        fixes=(
            *([fix] if fix else []),
            f"in the body, jax.sharding.reshard(..., {back}) on the new carry",
        ),
    )


def _axis_argument(axes: Sequence[str]) -> str:
    return repr(axes[0] if len(axes) == 1 else tuple(axes))


def _at_init(evidence: ErrorEvidence, function: str, further: str) -> str | None:
    """Write a call around the initial carry of the loop at the user's line."""
    expression = evidence.expression
    node = expression.node if expression else None
    if expression is None or not isinstance(node, ast.Call):
        return None
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    if name not in _INIT:
        return None
    number, keyword = _INIT[name]
    by_name = next((k.value for k in node.keywords if k.arg == keyword), None)
    init = node.args[number] if len(node.args) > number else by_name
    if init is None or isinstance(init, ast.Tuple | ast.List | ast.Dict):
        return None
    return expression.edited(expression.wrapped(init, function, further))


def branches(_: ErrorEvidence, match: re.Match[str]) -> Draft | None:
    """Branches of a cond whose results have different types."""
    branch, kind, other, other_kind = match.groups()
    axes, other_axes = varying_in_type(kind), varying_in_type(other_kind)
    lacking, short = (
        (other, axes - other_axes) if axes - other_axes else (branch, other_axes - axes)
    )
    if not short:
        return None
    names = sorted(short)
    return Draft(
        kind="branches",
        sentence=f"the result of {lacking} is the same along {listed(names)}, but that of the "
        "other branch may differ",
        cause=f"A cond has one type: {branch} gives {kind} and {other} gives {other_kind}. pcast "
        "only changes the type; nothing is sent.",
        fixes=(f"in {lacking}, return jax.lax.pcast(..., {_axis_argument(names)}, to='varying')",),
    )


def unbound(evidence: ErrorEvidence, _: re.Match[str]) -> Draft | None:
    """A collective over a name that is not a manual axis here."""
    found = wordings.AXIS_UNBOUND.search(evidence.message)
    meshes = [aval.sharding.mesh for aval in evidence.arrays.values()]
    grid = evidence.grid
    known = [grid.mesh] if grid else [*meshes, jax.sharding.get_abstract_mesh()]
    axes = next((tuple(mesh.axis_names) for mesh in known if not mesh.empty), ())
    axis = found[1] if found else _strange_axis(evidence, axes)
    if axis is None:
        return None
    expression = evidence.expression
    text = expression.text if expression else "the collective"
    if axis in axes:
        return Draft(
            kind="unbound-axis",
            sentence=f"{text} is a collective over {axis!r} outside shard_map",
            cause=f"{axis!r} is an axis of the mesh, but outside shard_map a program is "
            "written for global arrays, so there are no per-device values to combine.",
            fixes=(
                (
                    "jax.shard_map(f, mesh=mesh, in_specs=..., out_specs=...) around the function "
                    "(in a cell: --axes manual)"
                ),
                (
                    "or remove the collective: with Auto axes the compiler completes a sum over a "
                    "sharded dimension"
                ),
            ),
        )
    near = difflib.get_close_matches(axis, axes, 1)
    edit: tuple[str, ...] = ()
    if near and axis in text:
        edit = (re.sub(rf"(['\"]){axis}\1", rf"\g<1>{near[0]}\g<1>", text),)
    return Draft(
        kind="unbound-axis",
        sentence=f"{text} uses the axis {axis!r}, which is not an axis of this mesh",
        cause=f"Its axes are {listed(axes)}."
        if axes
        else "A collective's axis has to be an axis of the shard_map around it.",
        fixes=edit,
    )


def _strange_axis(evidence: ErrorEvidence, axes: tuple[str, ...]) -> str | None:
    """Find the axis that a collective names but the mesh lacks; JAX's assertion has no text."""
    node = evidence.expression.node if evidence.expression else None
    if evidence.message or not isinstance(node, ast.Call):
        return None
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    texts = [n.value for n in ast.walk(node) if isinstance(n, ast.Constant)]
    strange = [text for text in texts if isinstance(text, str) and text not in axes]
    return strange[0] if name in FUNCTIONS and strange and axes else None


def not_varying(evidence: ErrorEvidence, _: re.Match[str]) -> Draft:
    """A collective over an axis along which its operand is the same."""
    text = evidence.expression.text if evidence.expression else "the collective"
    return Draft(
        kind="not-varying",
        sentence=f"{text} combines a value along an axis along which it is already the same",
        cause="A collective's operand has to vary over the collective's axis.",
        fixes=("jax.lax.pcast(..., to='varying') on the operand, or no collective",),
    )


def unreduced_out(*_: object) -> Draft:
    """Specs of a shard_map whose unreduced or reduced axes are not those of the value."""
    return Draft(
        kind="unreduced-spec",
        sentence="a spec of the shard_map names other pending sums than its value has",
        cause="unreduced={...} in a spec says that a sum over these axes is still pending. "
        "The value's type has its own set, shown as {U:...}, and the two have to agree.",
        fixes=("jax.lax.psum over the axis in the body, and no unreduced in the spec",),
    )


def _is_code(text: str) -> bool:
    """Whether a fix is Python or a spec to write, rather than advice."""
    if "..." in text:
        return False
    try:
        ast.parse(text.removeprefix("out_specs "))
    except SyntaxError:
        return False
    return True
