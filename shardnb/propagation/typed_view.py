"""The typed view: every binder of a program with its sharding, next to the user's lines."""

from __future__ import annotations

import itertools
import string
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from shardnb.compiler import placement
from shardnb.compiler.arrays import dtype_name
from shardnb.compiler.placement import text as spec_text
from shardnb.jax_compat.frames import is_jaxs_own
from shardnb.jax_compat.jaxprs import bare, inner, is_dropped, is_literal
from shardnb.report.model import Location, Value
from shardnb.report.typed import TypedLine, TypedValue
from shardnb.report.types import TypedProgram
from shardnb.sources import positions
from shardnb.sources.source_texts import Sources
from shardnb.terms.primitives import primitive_of

# The casts that a user calls by name; `jax.lax.psum` makes some on its own.
_CASTS = {"pvary", "pcast"}
# The parameters that tell what an equation does to placements, in the order of the view.
_SHOWN = (
    "axes",
    "axis_name",
    "axis",
    "dimension",
    "dimensions",
    "new_sizes",
    "perm",
    "all_gather_dimension",
    "scatter_dimension",
    "split_axis",
    "concat_axis",
    "dst_sharding",
    "sharding",
    "out_sharding",
    "in_specs",
    "out_specs",
    "name",
    "length",
)


def typed_program(
    jaxpr: Any,
    sources: Sources | None = None,
    names: Sequence[str] = (),
    *,
    tracks_varying: bool = True,
) -> TypedProgram:
    """Return the typed view of a jaxpr, with everything inside its equations.

    `names` are those of its first inputs. `sources` finds the user's lines. `tracks_varying` is
    False for the body of a `shard_map` with `check_vma=False`, whose types do not track it.

    >>> import jax.numpy as jnp
    >>> typed = typed_program(jax.make_jaxpr(jnp.tanh)(jnp.ones(3)), names=["x"])
    >>> [str(line) for line in typed.lines]
    ['lambda x:f32[3]', 'a:f32[3] = tanh x']
    """
    sources = sources or Sources()
    reader = _Reader(sources, names)
    lines = tuple(reader.lines(bare(jaxpr), (), tracked=tracks_varying))
    return TypedProgram(lines, sources.texts())


def typed_value(aval: Any, name: str) -> TypedValue:
    """Return a type as plain data; `type` is JAX's own text of it."""
    if not isinstance(aval, jax.core.ShapedArray):
        return TypedValue(name, str(aval), "", (), ())
    sharding, manual = aval.sharding, aval.manual_axis_type
    return TypedValue(
        name=name,
        type=aval.str_short(True),  # noqa: FBT003 - JAX calls it short_dtypes
        dtype=dtype_name(aval.dtype),
        shape=tuple(aval.shape),
        spec=placement.dims_of(sharding.spec, len(aval.shape)),
        varying=ordered(manual.varying, sharding.mesh),
        unreduced=ordered(manual.unreduced | sharding.spec.unreduced, sharding.mesh),
        reduced=ordered(manual.reduced | sharding.spec.reduced, sharding.mesh),
    )


def with_varying(values: Sequence[Value], lines: Sequence[TypedLine]) -> tuple[Value, ...]:
    """Add the axes over which values inside a `shard_map` vary, from the types of the typed view.

    A value is identified there by its line, its operation and its type. If the line makes several
    such values, it is the one that the line itself does not use; else it stays unknown.
    """
    inside = [line for line in lines if "shard_map" in line.within and line.location is not None]
    used_at: dict[str, set[Location | None]] = {}
    for line in lines:
        for operand in line.operands:
            used_at.setdefault(operand, set()).add(line.location)
    made: dict[Hashable, list[tuple[TypedValue, bool]]] = {}
    for line in inside:
        for bind in line.binds:
            kind = _place_of(line.location), line.primitive, bind.dtype, bind.shape
            used_up = used_at.get(bind.name) == {line.location}
            made.setdefault(kind, []).append((bind, used_up))
    kinds = [(_place_of(value.location), value.op, value.dtype, value.shape) for value in values]
    numbers = Counter[Hashable](kinds)

    def varying_of(kind: Hashable) -> tuple[str, ...] | None:
        binds = made.get(kind, [])
        handed_on = [bind for bind, used_up in binds if not used_up]
        single = numbers[kind] == 1 and handed_on
        found = {bind.varying for bind in (handed_on if single else [bind for bind, _ in binds])}
        return found.pop() if len(found) == 1 else None

    return tuple(
        replace(value, varying=varying_of(kind)) if value.manual and value.location else value
        for value, kind in zip(values, kinds, strict=True)
    )


def _place_of(location: Location | None) -> tuple[int, int] | None:
    return (location.source, location.line) if location else None


def ordered(axes: frozenset[str], mesh: Any) -> tuple[str, ...]:
    """Return axes in the order of their mesh."""
    return tuple(axis for axis in mesh.axis_names if axis in axes)


class _Reader:
    """Names the variables of a jaxpr in the order in which they are bound."""

    def __init__(self, sources: Sources, names: Sequence[str]) -> None:
        self._sources = sources
        self._given = list(names)
        self._names: dict[Any, str] = {}
        self._fresh = (name for name in _letters() if name not in names)

    def lines(self, jaxpr: Any, within: tuple[str, ...], *, tracked: bool) -> Iterator[TypedLine]:
        binders = [*jaxpr.invars, *jaxpr.constvars]
        if binders:
            yield TypedLine(
                "", tuple(self._bind(v, tracked=tracked) for v in binders), within=within
            )
        for equation in jaxpr.eqns:
            yield self._line(equation, within, tracked=tracked)
            for role, part in inner(equation):
                checked = tracked and equation.params.get("check_vma", True)
                yield from self.lines(part, (*within, _place(equation, role)), tracked=checked)

    def _line(self, equation: Any, within: tuple[str, ...], *, tracked: bool) -> TypedLine:
        operands = tuple(map(self._name, equation.invars))
        return TypedLine(
            primitive=equation.primitive.name,
            binds=tuple(self._bind(variable, tracked=tracked) for variable in equation.outvars),
            operands=operands,
            parameters=_parameters(equation.params),
            within=within,
            inserted=is_inserted(equation),
            location=line_of(equation, self._sources),
        )

    def _bind(self, variable: Any, *, tracked: bool) -> TypedValue:
        name = "_" if is_dropped(variable) else self._name(variable)
        value = typed_value(variable.aval, name)
        return value if tracked else replace(value, varying=None)

    def _name(self, variable: Any) -> str:
        if is_literal(variable):
            return _literal(variable)
        if variable not in self._names:
            self._names[variable] = self._given.pop(0) if self._given else next(self._fresh)
        return self._names[variable]


def _literal(literal: Any) -> str:
    """Write a number; an array that the program closes over is only named as such."""
    if isinstance(literal.val, jax.Array) or np.ndim(literal.val):
        return f"const:{literal.aval.str_short(True)}"  # noqa: FBT003 - short_dtypes
    return str(np.asarray(literal.val).item())


def _letters() -> Iterator[str]:
    for length in itertools.count(1):
        yield from map("".join, itertools.product(string.ascii_lowercase, repeat=length))


def _place(equation: Any, role: str) -> str:
    name = str(equation.params.get("name") or equation.primitive.name)
    if role == "cond_jaxpr":
        return f"{name} condition"
    return f"{name} branch" if role == "branches" else name


def _parameters(params: Mapping[str, Any]) -> str:
    stated = ((key, params.get(key)) for key in _SHOWN)
    empty = ((), None)
    shown = ((k, v) for k, v in stated if not any(v is nothing for nothing in empty))
    return ", ".join(f"{key}={_value(value)}" for key, value in shown)


def _value(value: Any) -> str:
    if isinstance(value, NamedSharding):
        return spec_text(value.spec)
    if isinstance(value, PartitionSpec):
        return spec_text(value)
    if isinstance(value, tuple) and value and isinstance(value[0], PartitionSpec):
        return f"({', '.join(map(spec_text, value))}{',' * (len(value) == 1)})"
    return str(value)


def line_of(equation: Any, sources: Sources) -> Location | None:
    """Return the innermost user line that wrote an equation."""
    frames = positions.lines(positions.of_equation(equation))
    return next(iter(sources.locate(frames)), None)


def is_inserted(equation: Any) -> bool:
    """Whether an equation is a coercion that JAX inserted so that types agree."""
    row = primitive_of(equation.primitive.name)
    if row is None or not row.casts:
        return False
    called = _called_by_user(positions.of_equation(equation))
    return called is None or called not in _CASTS


def _called_by_user(stack: tuple[positions.Position, ...]) -> str | None:
    """Return the JAX function that code outside JAX called, past wrappers and tree maps."""
    outside = next((i for i, p in enumerate(stack) if not is_jaxs_own(p.file)), len(stack))
    # `jax.tree.map(partial(lax.pcast, ...), tree)` is the user's own cast
    # (test_a_coercion_of_jax_is_inserted_and_one_of_the_user_is_not).
    helpers = ("traceback_util.py", "tree_util.py", "tree.py", "api_util.py")
    inside = (p for p in stack[:outside][::-1] if not p.file.endswith(helpers))
    return next((p.function for p in inside), None)
