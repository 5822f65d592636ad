"""JAX's primitives and functions over named mesh axes, and what each does to the varying set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from shardnb.terms.collectives import Kind
from shardnb.terms.table import table

Primitive = Literal[
    "psum",
    "psum_invariant",
    "pmax",
    "pmin",
    "unreduced_psum",
    "unreduced_pmax",
    "unreduced_pmin",
    "all_gather",
    "all_gather_invariant",
    "all_gather_reduced",
    "reduce_scatter",
    "unreduced_reduce_scatter",
    "all_to_all",
    "ragged_all_to_all",
    "ppermute",
    "pbroadcast",
    "pbroadcast_dynamic",
    "psend",
    "precv",
    "axis_index",
    "pvary",
    "preduced",
    "reduced_vary_cast",
    "vary_unreduced_cast",
]

Function = Literal[
    "psum",
    "pmean",
    "pmax",
    "pmin",
    "all_gather",
    "all_to_all",
    "psum_scatter",
    "psum_scatter_start",
    "ppermute",
    "pshuffle",
    "pswapaxes",
    "pbroadcast",
    "ragged_all_to_all",
    "axis_index",
    "axis_size",
    "psend",
    "precv",
    "pcast",
]
"""The functions of `jax.lax`."""

Effect = Literal["removes", "keeps", "adds", "none"]
"""What becomes of the primitive's axes in the varying set of its result; "none" where they are
not in it before and after.
"""


@dataclass(frozen=True)
class PrimitiveTerm:
    """A primitive over named mesh axes.

    `kind` is the collective that it lowers to. `casts` says that it changes the type only: JAX
    inserts such where the types of operands have to meet.
    """

    name: Primitive
    kind: Kind | None
    effect: Effect
    casts: bool = False

    @property
    def makes_equal(self) -> bool:
        """Whether it is a collective whose result is the same along its axes."""
        return self.kind is not None and self.effect == "removes"


@dataclass(frozen=True)
class FunctionTerm:
    """A function of `jax.lax`, and the primitive that stands for it in a jaxpr, if one does.

    `combines` are the primitives whose results over each device's own part it makes one of.
    """

    name: Function
    primitive: Primitive | None
    combines: tuple[str, ...] = ()

    @property
    def reduces(self) -> bool:
        """Whether it combines the devices' values and gives all of them the result."""
        row = PRIMITIVES[self.primitive] if self.primitive else None
        return row is not None and row.makes_equal and row.kind == "all-reduce"

    @property
    def effect(self) -> Effect:
        """What becomes of its axes in the varying set."""
        return PRIMITIVES[self.primitive].effect if self.primitive else "none"


def _primitive(name: Primitive) -> PrimitiveTerm:
    match name:
        case "psum" | "psum_invariant" | "pmax" | "pmin":
            return PrimitiveTerm(name, "all-reduce", "removes")
        case "unreduced_psum" | "unreduced_pmax" | "unreduced_pmin":
            return PrimitiveTerm(name, "all-reduce", "none")
        case "all_gather":
            return PrimitiveTerm(name, "all-gather", "keeps")
        case "all_gather_invariant" | "all_gather_reduced":
            return PrimitiveTerm(name, "all-gather", "removes")
        case "reduce_scatter":
            return PrimitiveTerm(name, "reduce-scatter", "keeps")
        case "unreduced_reduce_scatter":
            return PrimitiveTerm(name, "reduce-scatter", "adds")
        case "all_to_all":
            return PrimitiveTerm(name, "all-to-all", "keeps")
        case "ragged_all_to_all":
            return PrimitiveTerm(name, "ragged-all-to-all", "keeps")
        case "ppermute":
            return PrimitiveTerm(name, "collective-permute", "keeps")
        case "pbroadcast" | "pbroadcast_dynamic":
            return PrimitiveTerm(name, "collective-broadcast", "keeps")
        case "psend" | "precv":  # send and recv in HLO, which is not a collective there
            return PrimitiveTerm(name, None, "none")
        case "axis_index":
            return PrimitiveTerm(name, None, "adds")
        case "pvary" | "reduced_vary_cast":
            return PrimitiveTerm(name, None, "adds", casts=True)
        case "preduced":
            return PrimitiveTerm(name, None, "none", casts=True)
        case "vary_unreduced_cast":
            return PrimitiveTerm(name, None, "removes", casts=True)


def _function(name: Function) -> FunctionTerm:
    match name:
        case "psum":
            return FunctionTerm(name, "psum_invariant", ("reduce_sum",))
        case "pmean":
            return FunctionTerm(name, "psum_invariant")
        case "pmax":
            return FunctionTerm(name, "pmax", ("reduce_max", "reduce_or"))
        case "pmin":
            return FunctionTerm(name, "pmin", ("reduce_min", "reduce_and"))
        case "psum_scatter" | "psum_scatter_start":
            return FunctionTerm(name, "reduce_scatter")
        case "pshuffle":
            return FunctionTerm(name, "ppermute")
        case "pswapaxes":
            return FunctionTerm(name, "all_to_all")
        case "pcast":
            return FunctionTerm(name, "pvary")
        case "axis_size":
            return FunctionTerm(name, None)
        case _:
            return FunctionTerm(name, name)


_ARITHMETIC = (
    "abs add cbrt ceil clamp convert_element_type copy div floor integer_pow max min mul neg pow "
    "rem round rsqrt sign sqrt square sub"
)
_FUNCTIONS = (
    "atan2 cos cosh erf erf_inv exp exp2 expm1 log log1p logistic nextafter sin sinh tan tanh"
)
_LOGIC = "and eq ge gt is_finite le lt ne not or select_n xor"
ELEMENTWISE = frozenset(f"{_ARITHMETIC} {_FUNCTIONS} {_LOGIC}".split())
"""Primitives whose results have in each place what their operands have in the same place."""

PRIMITIVES: Mapping[Primitive, PrimitiveTerm] = table(Primitive, _primitive)
FUNCTIONS: Mapping[Function, FunctionTerm] = table(Function, _function)

_BY_NAME: Mapping[str, PrimitiveTerm] = {row.name: row for row in PRIMITIVES.values()}


def primitive_of(name: str) -> PrimitiveTerm | None:
    """Return the row of a primitive by the name that JAX gives it.

    One that ends in `_start` is the same, done in two steps; JAX 0.11 writes the name of some
    with `_p` after it.

    >>> primitive_of("all_gather_start").kind, primitive_of("dot_general")
    ('all-gather', None)
    """
    return _BY_NAME.get(name.removesuffix("_p").removesuffix("_start"))
