"""The check of a `jax.shard_map`: its specs, the types in its body, its results."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jax
from jax.sharding import AxisType, PartitionSpec

from shardnb.compiler import Request, SourceTexts, divisibility, placement
from shardnb.compiler.arrays import dtype_name
from shardnb.compiler.divisibility import Stated
from shardnb.jax_compat.error_wordings import OTHER_TYPE_THAN_IN_SPECS
from shardnb.jax_compat.jaxprs import PartialJaxpr, bare
from shardnb.jax_compat.tracing import traced_apart
from shardnb.manual.missing_collective import missing_collective, result_name, state_of
from shardnb.mesh import Grid
from shardnb.propagation.typed_view import ordered, typed_program
from shardnb.report.types import (
    CheckStep,
    ErrorReport,
    MissingCollective,
    Shard,
    ShardMapCheck,
    SpecProblem,
)
from shardnb.sources.source_texts import Sources
from shardnb.terms.checks import CHECKS, Check
from shardnb.terms.errors import SPEC_PROBLEMS

Tree = Any

_MARK = "shardnb_results"


@dataclass(frozen=True)
class ShardMapCall:
    """A `shard_map` and its arguments; the specs are as the user wrote them."""

    function: Callable[..., Tree]
    arguments: tuple[Tree, ...]
    grid: Grid
    in_specs: Tree
    out_specs: Tree
    axis_names: frozenset[str] = frozenset()
    check_vma: bool = True
    texts: SourceTexts = field(default_factory=SourceTexts)

    @property
    def manual(self) -> frozenset[str]:
        """The axes over which the function is written for one device."""
        return self.axis_names or frozenset(self.grid.mesh.axis_names)

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes of the manual axes."""
        return {a: size for a, size in self.grid.mesh.shape.items() if a in self.manual}

    @property
    def names(self) -> list[str]:
        """The names of the function's arguments."""
        code, count = getattr(self.function, "__code__", None), len(self.arguments)
        given = list(code.co_varnames[: code.co_argcount]) if code is not None else []
        return [*given, *(f"arg{i}" for i in range(len(given), count))][:count]

    def of_shapes(self) -> ShardMapCall:
        """Return the call on shapes, each with its own sharding if that is on the grid's mesh."""

        def shape(leaf: Any) -> jax.ShapeDtypeStruct:
            sharding = placement.own_sharding(leaf, self.grid.mesh)
            return jax.ShapeDtypeStruct(leaf.shape, placement.dtype_of(leaf), sharding=sharding)

        return replace(self, arguments=jax.tree_util.tree_map(shape, self.arguments))

    def mapped(self, fn: Callable[..., Tree], out_specs: Tree) -> Callable[..., Tree]:
        """Return the `shard_map` of a body."""
        return jax.shard_map(
            fn,
            mesh=self.grid.mesh,
            in_specs=self.in_specs,
            out_specs=out_specs,
            axis_names=self.manual,
            check_vma=self.check_vma,
        )

    def trace(self, fn: Callable[..., Tree], out_specs: Tree) -> Any:
        """Trace the `shard_map` of a body, without affecting the traces of the user's program."""
        with jax.set_mesh(self.grid.mesh), traced_apart():
            return jax.jit(self.mapped(fn, out_specs)).trace(*self.arguments)


def check_shard_map(
    call: ShardMapCall, explain: Callable[[Exception], ErrorReport | None]
) -> ShardMapCheck:
    """Check a `shard_map` of shapes; nothing is compiled or run.

    The verdict is JAX's: the `shard_map` is traced as `jax.shard_map` would. With it come the
    single checks, the per-device shapes, the varying axes after each line of the body, and the
    missing collectives. If JAX rejects it, the function is traced once more. `explain` returns the
    cause of an exception that none of these show.
    """
    sources = call.texts.located()
    stated, structure = _stated(call)
    problems = (*divisibility.check(stated, call.sizes), *_outer_axes(call))
    error, jaxpr, results = _traced(call)
    outputs = list(_outputs(call, results)) if results is not None else []
    missing = tuple(_missing(call, jaxpr, results, stated, sources)) if jaxpr is not None else ()
    names = [given.name for given in stated]
    view = None
    if jaxpr is not None:
        view = typed_program(jaxpr, sources, names, tracks_varying=call.check_vma)
    return ShardMapCheck(
        accepted=error is None,
        mesh=call.grid.describe(),
        error=type(error).__name__ if error else "",
        message=str(error) if error else "",
        steps=tuple(_steps(call, structure, problems, error, results)),
        inputs=tuple(_inputs(call, stated, problems)),
        outputs=tuple(outputs),
        lines=view.lines if view else (),
        missing=missing,
        problems=tuple(problems),
        explained=explain(error) if error and not missing and not problems else None,
        sources=sources.texts(),
    )


def request_of(call: ShardMapCall) -> Request:
    """Return the request to compile an accepted `shard_map`."""
    names = call.names
    one_for_all = isinstance(call.in_specs, PartitionSpec)
    specs = [call.in_specs] * len(names) if one_for_all else call.in_specs
    return Request(
        function=call.mapped(call.function, call.out_specs),
        arguments=dict(zip(names, call.arguments, strict=True)),
        grid=Grid(call.grid.mesh, target=call.grid.target),
        in_specs=dict(zip(names, specs, strict=True)),
        texts=replace(call.texts, title="shard_map"),
    )


def region_of(text: str) -> str:
    """Return the lines that open the manual region, or say why there is none."""
    opening = next((line for line in text.splitlines() if "manual_computation" in line), "")
    return opening.strip() or "no region: every manual axis has size 1, so the body is inlined"


def _stated(call: ShardMapCall) -> tuple[list[Stated], str]:
    """Return each argument with its spec, or the problem with the structure of in_specs."""
    specs, names = call.in_specs, call.names
    one_for_all = isinstance(specs, PartitionSpec)
    if not one_for_all and (not isinstance(specs, tuple | list) or len(specs) != len(names)):
        given = len(specs) if isinstance(specs, tuple | list) else specs
        return [], f"in_specs is for {given} arguments, but there are {len(names)}"
    by_name = dict.fromkeys(names, specs) if one_for_all else dict(zip(names, specs, strict=True))
    try:
        leaves = list(placement.stated(dict(zip(names, call.arguments, strict=True)), by_name))
    except ValueError as error:
        return [], str(error)
    return [
        Stated("in_spec", name, tuple(leaf.shape), dtype_name(leaf.dtype), spec)
        for name, leaf, spec in leaves
        if isinstance(spec, PartitionSpec)
    ], ""


def _outer_axes(call: ShardMapCall) -> Iterator[SpecProblem]:
    """Find axes in out_specs that are not manual axes."""
    sizes = call.sizes
    for spec in jax.tree_util.tree_leaves(call.out_specs, is_leaf=placement.is_spec):
        if isinstance(spec, PartitionSpec):
            endless = Stated("out_spec", "a result", (0,) * len(spec), "f32", spec)
            yield from divisibility.check([endless], sizes)


def _traced(call: ShardMapCall) -> tuple[Exception | None, Any, list[Any] | None]:
    """Return JAX's exception, the body's jaxpr and its result types, as far as they exist."""
    seen: list[list[Any]] = []

    def body(*args: Tree) -> Tree:
        result = call.function(*args)
        seen.append([jax.typeof(leaf) for leaf in jax.tree_util.tree_leaves(result)])
        return result

    try:
        traced = call.trace(body, call.out_specs)
    # The user's body and JAX may raise anything; that is the verdict.
    except Exception as error:  # noqa: BLE001
        return error, *_probed(call, seen)
    mapped = next(e for e in bare(traced.jaxpr).eqns if e.primitive.name == "shard_map")
    try:
        traced.lower()
    # A verdict too: JAX checks again while it lowers.
    except Exception as error:  # noqa: BLE001
        return error, bare(mapped.params["jaxpr"]), seen[-1]
    return None, bare(mapped.params["jaxpr"]), seen[-1]


def _probed(call: ShardMapCall, seen: list[list[Any]]) -> tuple[Any, list[Any] | None]:
    """Trace the body of a rejected `shard_map` with out_specs that fit any result."""
    if not seen:
        return None, None
    count: list[int] = []

    def body(*args: Tree) -> Tree:
        leaves = jax.tree_util.tree_leaves(call.function(*args))
        count.append(len(leaves))
        with jax.named_scope(_MARK):
            return [jax.numpy.expand_dims(leaf, 0) for leaf in leaves]

    try:
        traced = call.trace(body, PartitionSpec(tuple(sorted(call.manual))))
    # The body runs again and may raise again: then there is no jaxpr to show.
    except Exception:  # noqa: BLE001
        return None, seen[-1]
    mapped = next(e for e in bare(traced.jaxpr).eqns if e.primitive.name == "shard_map")
    return _cut(bare(mapped.params["jaxpr"])), seen[-1]


def _cut(jaxpr: Any) -> Any:
    """Return a jaxpr without what the probe added after its results."""
    added = [e for e in jaxpr.eqns if _MARK in str(e.source_info.name_stack)]
    first = min((jaxpr.eqns.index(e) for e in added), default=len(jaxpr.eqns))
    results = [e.invars[0] for e in added if e.invars]
    return PartialJaxpr(jaxpr.constvars, jaxpr.invars, jaxpr.eqns[:first], results)


def _inputs(
    call: ShardMapCall, stated: list[Stated], problems: Sequence[SpecProblem]
) -> Iterator[Shard]:
    bad = {problem.name for problem in problems}
    for given in stated:
        axes = frozenset(itertools.chain(*given.entries))
        local = None
        if given.name not in bad:
            parts = _parts(given.entries, len(given.shape), call.sizes)
            local = tuple(size // part for size, part in zip(given.shape, parts, strict=True))
        yield Shard(
            name=given.name,
            spec=placement.text(given.spec),
            shape=given.shape,
            local_shape=local,
            dtype=given.dtype,
            varying=ordered(axes, call.grid.mesh),
        )


def _parts(entries: Sequence[tuple[str, ...]], rank: int, sizes: Mapping[str, int]) -> list[int]:
    """Return into how many blocks a spec divides each dimension."""
    parts = [math.prod(sizes[axis] for axis in axes) for axes in entries]
    return parts + [1] * (rank - len(parts))


def _out_specs(call: ShardMapCall, count: int) -> list[Any]:
    """Spread out_specs over the results; one that does not fit is None."""
    leaves = jax.tree_util.tree_leaves(call.out_specs, is_leaf=placement.is_spec)
    if len(leaves) == 1:
        return leaves * count
    return leaves if len(leaves) == count else [None] * count


def _outputs(call: ShardMapCall, results: list[Any]) -> Iterator[Shard]:
    specs, tracked = _out_specs(call, len(results)), call.check_vma
    for number, (aval, spec) in enumerate(zip(results, specs, strict=True)):
        local, whole = tuple(aval.shape), None
        if isinstance(spec, PartitionSpec) and len(spec) <= len(local):
            entries = list(placement.entries(spec))
            if call.sizes.keys() >= set(itertools.chain(*entries)):
                parts = _parts(entries, len(local), call.sizes)
                whole = tuple(size * part for size, part in zip(local, parts, strict=True))
        yield Shard(
            name=result_name(number, len(results)),
            spec=placement.text(spec) if isinstance(spec, PartitionSpec) else str(spec),
            shape=whole,
            local_shape=local,
            dtype=dtype_name(aval.dtype),
            varying=ordered(aval.manual_axis_type.varying, call.grid.mesh) if tracked else None,
        )


def _unproven(call: ShardMapCall, aval: Any, spec: Any) -> tuple[str, ...]:
    """Return the axes along which a result may differ although its spec says that it does not."""
    if not call.check_vma or not isinstance(spec, PartitionSpec):
        return ()
    named = set(itertools.chain(*placement.entries(spec)))
    differs = aval.manual_axis_type.varying - named
    return ordered(frozenset(differs & call.manual), call.grid.mesh)


def _steps(
    call: ShardMapCall,
    structure: str,
    problems: Sequence[SpecProblem],
    error: Exception | None,
    results: list[Any] | None,
) -> Iterator[CheckStep]:
    """Yield JAX's checks one by one; JAX did not reach those after the first that fails."""
    refused = False
    for key, wrong in _wrongs(call, structure, problems, error, results):
        reached = not CHECKS[key].of_body or results is not None or bool(wrong)
        reached = reached and not (key == "lower" and refused and not wrong)
        refused = refused or bool(wrong)
        if key == "replication" and not call.check_vma:
            yield CheckStep(CHECKS[key].prose, None, "check_vma=False turns it off")
        else:
            yield CheckStep(CHECKS[key].prose, (not wrong) if reached else None, wrong)


def _wrongs(
    call: ShardMapCall,
    structure: str,
    problems: Sequence[SpecProblem],
    error: Exception | None,
    results: list[Any] | None,
) -> Iterator[tuple[Check, str]]:
    yield "structure", structure
    # JAX notices an axis used twice only while it lowers, after dropping unused arguments.
    met = [p for p in problems if p.kind != "axis-twice" or error is not None]
    for check in (check for check in CHECKS if check in SPEC_PROBLEMS):
        yield check, "; ".join(p.message for p in met if p.kind == check)
    before = bool(structure or met)
    explicit = ""
    if results is None and not before and OTHER_TYPE_THAN_IN_SPECS.search(str(error)):
        kinds = call.grid.mesh.axis_types
        explicit = _words(error) if all(kind == AxisType.Explicit for kind in kinds) else ""
    yield "type", explicit
    fails = error is not None and results is None and not before and not explicit
    yield "body", _words(error) if fails else ""
    if results is None:
        yield from ((check, "") for check in list(CHECKS)[list(CHECKS).index("body") + 1 :])
        return
    specs = _out_specs(call, len(results))
    yield "out-structure", "" if None not in specs else f"{len(results)} results"
    long = [
        f"result {number} has {len(aval.shape)} dimensions, and {placement.text(spec)} is longer"
        for number, (aval, spec) in enumerate(zip(results, specs, strict=True))
        if isinstance(spec, PartitionSpec) and len(spec) > len(aval.shape)
    ]
    yield "out-rank", "; ".join(long)
    unproven = {a for r, s in zip(results, specs, strict=True) for a in _unproven(call, r, s)}
    yield "replication", f"may differ along {', '.join(sorted(unproven))}" if unproven else ""
    explained = before or unproven or long or None in specs
    yield "lower", "" if explained else _words(error)


def _words(error: Exception | None) -> str:
    """Return the first line of an exception, or its class if it has no message."""
    return "" if error is None else str(error).partition("\n")[0] or type(error).__name__


def _missing(
    call: ShardMapCall,
    jaxpr: Any,
    results: list[Any] | None,
    stated: list[Stated],
    sources: Sources,
) -> Iterator[MissingCollective]:
    results = results or []
    names = getattr(call.function, "__globals__", {})
    entries = [given.entries for given in stated]
    specs = _out_specs(call, len(results))
    for number, (aval, spec) in enumerate(zip(results, specs, strict=True)):
        for axis in _unproven(call, aval, spec):
            state = state_of(jaxpr, number, axis, entries)
            name = result_name(number, len(results))
            yield missing_collective(name, axis, state, spec, aval, names=names, sources=sources)
