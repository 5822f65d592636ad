"""Exceptions about `shard_map`, the varying set and the names of mesh axes."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import jax

from shardnb.bugs import Inconclusive, refusable
from shardnb.collectives.find import find_collectives
from shardnb.compiler import placement
from shardnb.compiler.divisibility import text as spec_text
from shardnb.compiler.dumps import captured_fd2
from shardnb.errors.error_draft import Draft, Explainer, listed, mesh_of, value_on
from shardnb.errors.evidence import Evidence
from shardnb.jax_compat import error_wordings as wordings
from shardnb.jax_compat.compilation_cache import without_compilation_cache
from shardnb.jax_compat.error_wordings import spec_in_type, varying_in_type
from shardnb.jax_compat.frames import SHARD_MAP_BODY, is_jaxs_own
from shardnb.jax_compat.jaxprs import as_function
from shardnb.jax_compat.tracing import traced_apart
from shardnb.manual.missing_collective import missing_collective, state_of
from shardnb.mesh import Grid, make_grid
from shardnb.propagation.typed_view import ordered
from shardnb.report.model import Value
from shardnb.report.types import Candidate
from shardnb.rewrite.source_expressions import expression_of
from shardnb.terms.primitives import FUNCTIONS
from shardnb.texts import hlo

_INIT = {"scan": (1, "init"), "while_loop": (2, "init_val"), "fori_loop": (3, "init_val")}


def _unproven(evidence: Evidence, grid: Grid | None) -> Draft | None:
    """A result that may differ along an axis that its out_spec omits."""
    by_class = wordings.REPLICATION_ERROR in evidence.classes
    if not by_class and not wordings.NOT_REPLICATED.search(evidence.message):
        return None
    found = SHARD_MAP_BODY.find(evidence.frames)
    if found is not None and _is_jaxs_own(found["jaxpr"]):
        found = None  # outside of jit JAX maps a body of its own over the finished results
    sentence = "a result of the shard_map may differ along an axis that out_specs leaves out"
    cause = (
        "Leaving an axis out of out_specs says that the devices along it hold the same result. "
        "The body does not make it so."
    )
    if found is None or not hasattr(found["jaxpr"], "outvars"):
        return Draft("missing-collective", sentence, cause)
    missing = list(_missing(evidence, found))
    fixes = tuple(dict.fromkeys(fix for one in missing for fix in one[1]))
    axes = dict.fromkeys(axis for one in missing for axis in one[0].axes)
    told = [f"{one[0].why}." for one in missing]
    return Draft(
        kind="missing-collective",
        sentence=f"a result of the shard_map may differ along {listed(axes)}, which out_specs "
        f"{', '.join(spec_text(s) for s in found['out_specs'])} leaves out",
        cause=" ".join((cause, *dict.fromkeys(told))),
        values=tuple(_body_values(found)),
        fixes=fixes,
        candidates=tuple(_compiled(found, missing, grid)),
        checked=all(map(_is_code, fixes)),
        mesh=mesh_of(found["mesh"]),
        location=next((one[0].location for one in missing if one[0].location), None),
        expression=next((one[0].expression for one in missing if one[0].location), ""),
    )


def _missing(evidence: Evidence, found: dict[str, Any]) -> Iterator[tuple[Any, list[str], int]]:
    """Give each missing collective with its edits and the number of the result."""
    jaxpr, mesh = found["jaxpr"], found["mesh"]
    entries = [list(placement.entries(spec)) for spec in found["in_specs"]]
    for number, (variable, spec) in enumerate(zip(jaxpr.outvars, found["out_specs"], strict=True)):
        said = {axis for axes in placement.entries(spec) for axis in axes}
        for axis in ordered(variable.aval.manual_axis_type.varying - said, mesh):
            state = state_of(jaxpr, number, axis, entries)
            name = "result" if len(jaxpr.outvars) == 1 else f"result[{number}]"
            one = missing_collective(
                name, axis, state, spec, names=evidence.names, sources=evidence.sources
            )
            yield one, list(_edits(evidence, one, state, axis)), number


def _edits(evidence: Evidence, one: Any, state: Any, axis: str) -> Iterator[str]:
    if state.kind in ("partial", "spent") and state.reducer and state.origin is not None:
        expression = expression_of(state.origin, evidence.sources, evidence.names)
        if expression is not None and isinstance(expression.node, ast.expr):
            pieces = expression.wrapped(expression.node, f"lax.{state.reducer}", repr(axis))
            yield expression.edited(pieces)
            return
    yield one.fix
    if one.other_fix:
        yield one.other_fix


def _body_values(found: dict[str, Any]) -> Iterator[Value]:
    """Give the arguments as the whole arrays that in_specs cut."""
    names = getattr(found.get("debug_info"), "arg_names", None) or ()
    for number, (aval, spec) in enumerate(zip(found["in_avals"], found["in_specs"], strict=True)):
        name = names[number] if number < len(names) else f"argument {number}"
        yield value_on(name, aval, spec, found["mesh"])


def _compiled(
    found: dict[str, Any], missing: list[tuple[Any, list[str], int]], grid: Grid | None
) -> Iterator[Candidate]:
    """Compile the body with what it lacks at its results, and count what it sends."""
    where = grid if grid and grid.mesh.shape == found["mesh"].shape else _emulated(found["mesh"])
    for one, edits, number in missing:
        function = FUNCTIONS[one.collective] if one.collective else None
        if function is None or not function.reduces or len(missing) > 1:
            continue
        call = getattr(jax.lax, function.name)

        def body(*args: Any, call: Any = call, one: Any = one, number: int = number) -> Any:
            results = list(as_function(found["jaxpr"])(*args))
            results[number] = call(results[number], one.axes)
            return tuple(results)

        collectives = _collectives(body, found, where)
        if collectives is not None:
            yield Candidate(
                edit=edits[0],
                spec=spec_text(found["out_specs"][number]),
                collectives=tuple((c.kind, c.axes or ()) for c in collectives),
                wire_bytes=sum(c.wire_bytes for c in collectives),
            )


def _collectives(body: Any, found: dict[str, Any], grid: Grid) -> Any:
    mapped = jax.shard_map(
        body, mesh=grid.mesh, in_specs=tuple(found["in_specs"]), out_specs=tuple(found["out_specs"])
    )
    shapes = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in found["in_avals"]]
    text = None
    with (
        suppress(Inconclusive),
        refusable(),
        jax.set_mesh(grid.mesh),
        traced_apart(),
        captured_fd2(),
        without_compilation_cache(),
    ):
        text = jax.jit(mapped).lower(*shapes).compile().as_text()
    if text is None:
        return None
    return find_collectives(hlo.parse(text), grid.describe(), lambda _: ())


def _emulated(mesh: Any) -> Grid:
    axes = zip(mesh.axis_names, mesh.axis_sizes, strict=True)
    return make_grid(",".join(f"{name}={size}" for name, size in axes))


def _carry(evidence: Evidence, grid: Grid | None) -> Draft | None:
    """A loop whose carry changes its type."""
    del grid
    found = wordings.CARRY_CHANGES_TYPE.search(evidence.message)
    if found is None:
        return None
    name, before, after = found.groups()
    axes = sorted(varying_in_type(after) - varying_in_type(before))
    if not axes:
        return _moved_carry(evidence, name, before, after)
    to = f"{axes[0]!r}" if len(axes) == 1 else repr(tuple(axes))
    fix = _at_init(evidence, "lax.pcast", f"{to}, to='varying'")
    return Draft(
        kind="carry",
        sentence=f"the carry {name!r} starts the same along {listed(axes)} and is made to differ",
        cause=f"A loop's carry has one type: it goes in as {before} and comes out as {after}. "
        "The body adds to it what differs between devices, so it has to be typed as differing "
        "from the start. pcast changes the type only; nothing is sent.",
        fixes=(fix or f"jax.lax.pcast(..., {to}, to='varying') on the initial carry",),
    )


def _moved_carry(evidence: Evidence, name: str, before: str, after: str) -> Draft | None:
    if "@" not in before + after:
        return None
    spec = spec_text(spec_in_type(after))
    fix = _at_init(evidence, "sharding.reshard", spec) if spec else None
    back = spec_text(spec_in_type(before))
    return Draft(
        kind="carry",
        sentence=f"the carry {name!r} goes into the loop as {before} and comes out as {after}",
        cause="A loop's carry has one type, and with Explicit axes its placement is part of it.",
        fixes=(
            *([fix] if fix else []),
            f"in the body, jax.sharding.reshard(..., {back}) on the new carry",
        ),
    )


def _at_init(evidence: Evidence, function: str, further: str) -> str | None:
    """Write a call around the initial carry of the loop at the user's line."""
    expression = evidence.expression
    node = expression.node if expression else None
    if expression is None or not isinstance(node, ast.Call):
        return None
    place = _INIT.get(node.func.attr if isinstance(node.func, ast.Attribute) else "")
    if place is None:
        return None
    number, keyword = place
    named = next((k.value for k in node.keywords if k.arg == keyword), None)
    init = node.args[number] if len(node.args) > number else named
    if init is None or isinstance(init, ast.Tuple | ast.List | ast.Dict):
        return None
    return expression.edited(expression.wrapped(init, function, further))


def _branches(evidence: Evidence, grid: Grid | None) -> Draft | None:
    """Branches of a cond whose results have different types."""
    del grid
    found = wordings.BRANCHES_DIFFER.search(evidence.message)
    if found is None:
        return None
    one, kind, other, other_kind = found.groups()
    axes, other_axes = varying_in_type(kind), varying_in_type(other_kind)
    lacking, short = (other, axes - other_axes) if axes - other_axes else (one, other_axes - axes)
    if not short:
        return None
    names = sorted(short)
    to = f"{names[0]!r}" if len(names) == 1 else repr(tuple(names))
    return Draft(
        kind="branches",
        sentence=f"the result of {lacking} is the same along {listed(names)}, and that of the "
        "other branch may differ",
        cause=f"A cond has one type: {one} gives {kind} and {other} gives {other_kind}. pcast "
        "changes the type only; nothing is sent.",
        fixes=(f"in {lacking}, return jax.lax.pcast(..., {to}, to='varying')",),
    )


def _unbound(evidence: Evidence, grid: Grid | None) -> Draft | None:
    """A collective over a name that is no manual axis here."""
    found = wordings.AXIS_UNBOUND.search(evidence.message)
    axes = _axes_of(evidence, grid)
    axis = found[1] if found else _strange_axis(evidence, axes)
    if axis is None:
        return None
    said = evidence.expression.text if evidence.expression else "the collective"
    if axis in axes:
        return Draft(
            kind="unbound-axis",
            sentence=f"{said} is a collective over {axis!r} outside of shard_map",
            cause=f"{axis!r} is an axis of the mesh, and outside of shard_map the program is "
            "written for whole arrays: no device is told apart, and there is nothing to combine.",
            fixes=(
                (
                    "jax.shard_map(f, mesh=mesh, in_specs=..., out_specs=...) around the function "
                    "(in a cell: --axes manual)"
                ),
                (
                    "or leave the collective out: with Auto axes a sum over a split dimension is "
                    "combined by itself"
                ),
            ),
        )
    near = difflib.get_close_matches(axis, axes, 1)
    expression = evidence.expression
    edit: tuple[str, ...] = ()
    if near and expression and repr(axis)[1:-1] in expression.text:
        edit = (re.sub(rf"(['\"]){axis}\1", rf"\g<1>{near[0]}\g<1>", expression.text),)
    return Draft(
        kind="unbound-axis",
        sentence=f"{said} names the axis {axis!r}, which is none here",
        cause=f"The mesh has the axes {listed(axes)}."
        if axes
        else "A collective's axis has to be one of the mesh of a shard_map around it.",
        fixes=edit,
    )


def _strange_axis(evidence: Evidence, axes: tuple[str, ...]) -> str | None:
    """Find an axis that a collective names and the mesh has not; JAX asserts without a text."""
    node = evidence.expression.node if evidence.expression else None
    if evidence.message or not isinstance(node, ast.Call):
        return None
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    texts = [n.value for n in ast.walk(node) if isinstance(n, ast.Constant)]
    strange = [text for text in texts if isinstance(text, str) and text not in axes]
    return strange[0] if name in FUNCTIONS and strange and axes else None


def _axes_of(evidence: Evidence, grid: Grid | None) -> tuple[str, ...]:
    """Give the axes of the mesh: of the grid, of the arrays at the line, or of the one set."""
    meshes = [aval.sharding.mesh for aval in evidence.arrays.values()]
    known = [grid.mesh] if grid else [*meshes, jax.sharding.get_abstract_mesh()]
    return next((tuple(mesh.axis_names) for mesh in known if not mesh.empty), ())


def _not_varying(evidence: Evidence, grid: Grid | None) -> Draft | None:
    """A collective over an axis along which its operand is the same."""
    del grid
    if not wordings.NOT_VARYING.search(evidence.message):
        return None
    said = evidence.expression.text if evidence.expression else "the collective"
    return Draft(
        kind="not-varying",
        sentence=f"{said} combines a value along an axis along which it is the same already",
        cause="A collective needs its axis in the varying set of its operand.",
        fixes=("jax.lax.pcast(..., to='varying') on the operand, or no collective",),
    )


def _unreduced_out(evidence: Evidence, grid: Grid | None) -> Draft | None:
    """Specs of a shard_map whose unreduced or reduced set is not that of the value."""
    del grid
    if not wordings.OTHER_UNREDUCED.search(evidence.message):
        return None
    return Draft(
        kind="unreduced-spec",
        sentence="a spec of the shard_map says other pending sums than its value has",
        cause="unreduced={...} in a spec says that a sum over these axes is still to be done. "
        "The value's type has its own set, shown as {U:...}, and the two have to be the same.",
        fixes=("jax.lax.psum over the axis in the body, and no unreduced in the spec",),
    )


def _is_jaxs_own(jaxpr: Any) -> bool:
    """Whether a body is a function of JAX's."""
    file = getattr(getattr(jaxpr, "debug_info", None), "func_filename", None)
    return is_jaxs_own(str(file or ""))


def _is_code(text: str) -> bool:
    """Whether a fix is Python, or a spec to write, and no advice."""
    if "..." in text:
        return False
    try:
        ast.parse(text.removeprefix("out_specs "))
    except SyntaxError:
        return False
    return True


EXPLAINERS = (
    Explainer("ValueError", _unproven),
    Explainer("TypeError", _carry),
    Explainer("TypeError", _branches),
    Explainer("NameError", _unbound),
    Explainer("AssertionError", _unbound),
    Explainer("ValueError", _not_varying),
    Explainer("ValueError", _unreduced_out),
)
