"""What Shardy's attributes say: shardings, sharding rules, propagation edges, origins."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from shardnb.jax_compat import mlir
from shardnb.report.model import Spec

Factors = tuple[str, ...]
Dims = tuple[Factors, ...]
Numbers = tuple[tuple[int, ...], ...]
Ties = tuple[tuple[tuple[tuple[int, int], ...], ...], ...]
"""For each dimension of each array the dimensions of others: the array's number, its dimension."""

# MLIR's names where HLO has others; `f32` is the same in both, integers are `i32` and `ui8`.
_DTYPES = {"i1": "pred", "complex<f32>": "c64", "complex<f64>": "c128", "!stablehlo.token": "token"}
# The attributes that tell operations of equal shapes apart, as `sharding_rules` reads them of HLO.
_NUMBERS = {
    "stablehlo.broadcast_in_dim": ("broadcast_dimensions",),
    "stablehlo.concatenate": ("dimension",),
    "stablehlo.reduce": ("dimensions",),
    "stablehlo.reverse": ("dimensions",),
    "stablehlo.slice": ("start_indices", "limit_indices", "strides"),
    "stablehlo.sort": ("dimension",),
    "stablehlo.transpose": ("permutation",),
}
# Where an operation of Shardy's has its mesh axes.
_AXES = {
    "sdy.all_gather": "gathering_axes",
    "sdy.all_reduce": "reduction_axes",
    "sdy.all_to_all": "params",
    "sdy.manual_computation": "manual_axes",
    "sdy.reduce_scatter": "reduce_scatter_axes",
}
_LETTERS = ord("z") - ord("i") + 1
_AXIS = re.compile(r'"([^"]+)"(:\(\d+\)\d+)?')
# The bindings have no class for propagation edges, so these are read as they are printed.
_EDGE = re.compile(r'step-(\d+)|"([^"]+)"(:\(\d+\)\d+)? = (operand|result)-(\d+) -> \[([^\]]*)\]')
_END = re.compile(r"(operand|result)-(\d+)")


@dataclass(frozen=True)
class Sharding:
    """The mesh axes along each dimension of an array.

    `closed` says which dimensions may not be sharded further.
    """

    spec: Spec
    closed: tuple[bool, ...] = ()
    replicated: tuple[str, ...] = ()
    unreduced: tuple[str, ...] = ()


@dataclass(frozen=True)
class Edge:
    """One step of propagation: an axis travelled along an op, between operands and results.

    Ends are ("operand" or "result", number).
    """

    step: int
    axis: str
    source: tuple[str, int]
    targets: tuple[tuple[str, int], ...]


@dataclass(frozen=True, eq=False)
class Rule:
    """Shardy's rule of an op: the factors of each dimension of each operand and result.

    `reduction` factors are summed away, `need_replication` ones need every element, and
    `permutation` ones need elements of neighbours.
    """

    operands: tuple[Dims, ...]
    results: tuple[Dims, ...]
    sizes: dict[str, int] = field(default_factory=dict)
    reduction: frozenset[str] = frozenset()
    need_replication: frozenset[str] = frozenset()
    permutation: frozenset[str] = frozenset()

    @cached_property
    def below(self) -> Ties:
        """The dimensions of results that share a factor with each dimension of each operand."""
        return _ties(self.operands, self.results)

    @cached_property
    def above(self) -> Ties:
        """The dimensions of operands that share a factor with each dimension of each result."""
        return _ties(self.results, self.operands)


def _ties(sources: tuple[Dims, ...], targets: tuple[Dims, ...]) -> Ties:
    ends = [(at, dim, f) for at, dims in enumerate(targets) for dim, f in enumerate(dims)]
    return tuple(
        tuple(
            tuple((at, dim) for at, dim, others in ends if not set(factors).isdisjoint(others))
            for factors in dims
        )
        for dims in sources
    )


def sharding_text(mesh: str, spec: Sequence[Sequence[str]], *, is_open: bool = False) -> str:
    """Write a spec as Shardy's attribute; where `is_open`, each dimension may be sharded further.

    >>> sharding_text("mesh", (("data",), (), ("x:(1)2", "y")))
    '#sdy.sharding<@mesh, [{"data"}, {}, {"x":(1)2, "y"}]>'
    """
    dims = []
    for axes in spec:
        parts = (axis.partition(":(") for axis in axes)
        quoted = [f'"{name}"{colon}{part}' for name, colon, part in parts]
        dims.append("{" + ", ".join([*quoted, "?"] if is_open else quoted) + "}")
    return f"#sdy.sharding<@{mesh}, [{', '.join(dims)}]>"


def mesh_text(axes: Mapping[str, int]) -> str:
    """Write a mesh as Shardy's attribute.

    >>> mesh_text({"data": 4, "model": 2})
    '#sdy.mesh<["data"=4, "model"=2]>'
    """
    return f"#sdy.mesh<[{', '.join(f'"{name}"={size}' for name, size in axes.items())}]>"


class Attributes:
    """Reads the attributes and types of one module, each that is equal once."""

    def __init__(self) -> None:
        """Begin with nothing read."""
        self._ir = mlir.bindings("ir")
        self._sdy = mlir.bindings("dialects.sdy")
        self._shardings: dict[Any, Sharding] = {}
        self._rules: dict[Any, Rule] = {}
        self._types: dict[Any, tuple[str, tuple[int, ...]]] = {}

    def type(self, given: Any) -> tuple[str, tuple[int, ...]]:
        """Return the dtype of a type, as HLO calls it, and the shape."""
        if given not in self._types:
            ranked = isinstance(given, self._ir.RankedTensorType)
            name = str(given.element_type if ranked else given).lower()
            signed = f"s{name[1:]}" if name[0] == "i" else name.replace("ui", "u", 1)
            self._types[given] = _DTYPES.get(name, signed), tuple(given.shape) if ranked else ()
        return self._types[given]

    def mesh(self, attribute: Any) -> dict[str, int]:
        """Return the axes of a mesh."""
        axes = map(self._sdy.MeshAxisAttr, self._sdy.MeshAttr(attribute).axes)
        return {axis.name: axis.size for axis in axes}

    def sharding(self, attribute: Any) -> Sharding:
        """Return the sharding of an array."""
        if attribute not in self._shardings:
            read = self._sdy.TensorShardingAttr(attribute)
            dims = [self._sdy.DimensionShardingAttr(dim) for dim in read.dimension_shardings]
            self._shardings[attribute] = Sharding(
                tuple(self._axes(dim.axes) for dim in dims),
                tuple(dim.is_closed for dim in dims),
                self._axes(read.replicated_axes),
                self._axes(read.unreduced_axes),
            )
        return self._shardings[attribute]

    def shardings(self, attribute: Any) -> Iterator[Sharding]:
        """Return the sharding of each result of an op."""
        return map(self.sharding, self._sdy.TensorShardingPerValueAttr(attribute).shardings)

    def _axes(self, axes: Sequence[Any]) -> tuple[str, ...]:
        return tuple(self._axis(self._sdy.AxisRefAttr(axis)) for axis in axes)

    def _axis(self, axis: Any) -> str:
        if axis.sub_axis_info is None:
            return str(axis.name)
        part = self._sdy.SubAxisInfoAttr(axis.sub_axis_info)
        return f"{axis.name}:({part.pre_size}){part.size}"

    def rule(self, attribute: Any) -> Rule:
        """Return a sharding rule; an equal attribute gives the same rule again."""
        if attribute not in self._rules:
            rule = self._sdy.OpShardingRuleAttr(attribute)
            self._rules[attribute] = Rule(
                tuple(map(self._dims, rule.operand_mappings)),
                tuple(map(self._dims, rule.result_mappings)),
                {_factor(at): size for at, size in enumerate(rule.factor_sizes)},
                frozenset(map(_factor, rule.reduction_factors)),
                frozenset(map(_factor, rule.need_replication_factors)),
                frozenset(map(_factor, rule.permutation_factors)),
            )
        return self._rules[attribute]

    def _dims(self, mapping: Any) -> Dims:
        dims = map(self._sdy.DimMappingAttr, self._sdy.TensorMappingAttr(mapping).dim_mappings)
        return tuple(tuple(map(_factor, dim.factor_indices)) for dim in dims)

    def origins(self, attribute: Any) -> list[dict[str, str]]:
        """Return what put each axis on each result of an op, in Shardy's words."""
        each = [attribute] if isinstance(attribute, self._ir.DictAttr) else attribute
        return [{origin.name: origin.attr.value for origin in origins} for origins in each]

    @staticmethod
    def axes(kind: str, attributes: Any) -> tuple[str, ...]:
        """Return the mesh axes that a shard_map or a collective of this kind is over."""
        name = _AXES.get(kind)
        return tuple(map("".join, _AXIS.findall(str(attributes[name])))) if name else ()

    @staticmethod
    def numbers(kind: str, attributes: Any, rank: int) -> Numbers:
        """Return the dimension numbers of an op; `rank` is that of its first operand."""
        if kind in _NUMBERS:
            return tuple(_integers(attributes[name]) for name in _NUMBERS[kind])
        if kind == "stablehlo.dot":
            return (rank - 1,), (0,), (), ()
        if kind == "stablehlo.dot_general":
            dots = mlir.bindings("dialects.stablehlo").DotDimensionNumbers
            dot = dots(attributes["dot_dimension_numbers"])
            left, right = dot.lhs_contracting_dimensions, dot.rhs_contracting_dimensions
            batch = dot.lhs_batching_dimensions, dot.rhs_batching_dimensions
            return tuple(left), tuple(right), tuple(batch[0]), tuple(batch[1])
        if kind == "stablehlo.convolution":
            of = mlir.bindings("dialects.stablehlo").ConvDimensionNumbers
            dims = of(attributes["dimension_numbers"])
            return (
                (dims.input_batch_dimension, dims.input_feature_dimension),
                (dims.kernel_input_feature_dimension, dims.kernel_output_feature_dimension),
                (dims.output_batch_dimension, dims.output_feature_dimension),
            )
        return ()


def _integers(attribute: Any) -> tuple[int, ...]:
    try:
        return tuple(attribute)
    except TypeError:
        return (int(attribute),)


def _factor(index: int) -> str:
    """Name a factor as Shardy does: `i` to `z`, then `z_1`."""
    return chr(ord("i") + index) if index < _LETTERS else f"z_{index - _LETTERS + 1}"


def edges(attribute: Any) -> tuple[Edge, ...]:
    """Return the steps of propagation along an op."""
    found, step = [], 0
    for number, axis, part, kind, index, targets in _EDGE.findall(str(attribute)):
        if number:
            step = int(number)
            continue
        ends = tuple((end, int(at)) for end, at in _END.findall(targets))
        found.append(Edge(step, axis + part, (kind, int(index)), ends))
    return tuple(found)
