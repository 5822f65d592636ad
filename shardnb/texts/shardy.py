"""Shardy's modules as data: ops, values, their shardings, and what Shardy noted on them.

Read once with jaxlib's MLIR bindings; nothing of MLIR is kept.
"""

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

_DTYPES = {"i1": "pred", "complex<f32>": "c64", "complex<f64>": "c128", "!stablehlo.token": "token"}
_OPCODES = {
    "broadcast_in_dim": "broadcast",
    "case": "conditional",
    "dot_general": "dot",
    "if": "conditional",
    "top_k": "topk",
}
# The bodies of others, such as a reduce, work on elements: nothing is sharded there.
_WITH_BODY = frozenset(
    (
        "stablehlo.case",
        "stablehlo.if",
        "stablehlo.while",
        "sdy.manual_computation",
        "sdy.named_computation",
    )
)
_NUMBERS = {
    "stablehlo.broadcast_in_dim": ("broadcast_dimensions",),
    "stablehlo.concatenate": ("dimension",),
    "stablehlo.reduce": ("dimensions",),
    "stablehlo.reverse": ("dimensions",),
    "stablehlo.slice": ("start_indices", "limit_indices", "strides"),
    "stablehlo.sort": ("dimension",),
    "stablehlo.transpose": ("permutation",),
}
_AXES = {
    "sdy.all_gather": "gathering_axes",
    "sdy.all_reduce": "reduction_axes",
    "sdy.all_to_all": "params",
    "sdy.manual_computation": "manual_axes",
    "sdy.reduce_scatter": "reduce_scatter_axes",
}
_LETTERS = 18
_CONSTANTS = ("sdy.constant", "stablehlo.constant")
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


@dataclass(eq=False)
class Value:
    """An SSA value: a result of `op`, an argument of its body, or an input of the program.

    `number` counts all values of a module; `index` those of their op or body. `holder` is the
    value whose sharding this one shares, where it is not its own: Shardy calls that a data-flow
    edge. `origins` gives by axis what put it there, in Shardy's words.
    """

    number: int
    dtype: str
    shape: tuple[int, ...]
    op: Op | None = field(default=None, repr=False)
    index: int = 0
    is_argument: bool = False
    sharding: Sharding | None = None
    origins: dict[str, str] = field(default_factory=dict)
    holder: Value | None = field(default=None, repr=False)

    @property
    def placed(self) -> Value:
        """The value that holds the sharding of this one."""
        value = self
        while value.holder is not None:
            value = value.holder
        return value

    @property
    def spec(self) -> Spec | None:
        """The spec, None where it has no sharding of its own."""
        return self.sharding.spec if self.sharding else None

    @property
    def maker(self) -> Op | None:
        """The op that it is a result of."""
        return None if self.is_argument else self.op


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


@dataclass(eq=False)
class Op:
    """An operation.

    `arguments` and `returned` are the values of each of its bodies. `axes` are the mesh axes of
    a shard_map or of a collective. `numbers` tell it from ops of the same kind and shapes: the
    dimensions of a transpose; of a dot those it contracts on both sides, then the batch ones; the
    starts, limits and strides of a slice. `trips` says how often a loop runs, where its condition
    compares with a constant.
    """

    kind: str
    operands: tuple[Value, ...]
    parent: Op | None = field(default=None, repr=False)
    results: tuple[Value, ...] = ()
    arguments: list[tuple[Value, ...]] = field(default_factory=list)
    returned: list[tuple[Value, ...]] = field(default_factory=list)
    axes: tuple[str, ...] = ()
    numbers: Numbers = ()
    trips: int | None = None
    rule: Rule | None = None
    edges: tuple[Edge, ...] = ()
    origin_name: str = ""

    @property
    def opcode(self) -> str:
        """What HLO calls an op of this kind."""
        name = self.kind.partition(".")[2]
        return _OPCODES.get(name, name.replace("_", "-"))

    @property
    def parents(self) -> Iterator[Op]:
        """The ops in whose bodies it is, the innermost first."""
        op = self.parent
        while op is not None:
            yield op
            op = op.parent


@dataclass(eq=False)
class Output:
    """A result of the program: the value that is returned, and the sharding of the result."""

    value: Value
    sharding: Sharding | None
    origins: dict[str, str]
    edges: tuple[Edge, ...]

    @property
    def spec(self) -> Spec | None:
        """The spec of the result itself."""
        return self.sharding.spec if self.sharding else None

    @property
    def constrained_spec(self) -> Spec | None:
        """The spec of the result itself, else that of a constraint on the value returned."""
        maker = self.value.maker
        constrained = maker is not None and maker.kind == "sdy.sharding_constraint"
        return self.value.spec if self.sharding is None and constrained else self.spec


@dataclass
class Module:
    """A module: the ops of its main function in the order of the text, and all their values.

    `meshes` has the axes of each mesh, with their sizes.
    """

    meshes: dict[str, dict[str, int]] = field(default_factory=dict)
    ops: list[Op] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    inputs: list[Value] = field(default_factory=list)
    outputs: list[Output] = field(default_factory=list)

    @property
    def constrained_specs(self) -> tuple[Spec | None, ...]:
        """The spec of each result itself, else that of a constraint on the value returned."""
        return tuple(output.constrained_spec for output in self.outputs)

    @property
    def stated_axes(self) -> set[str]:
        """The mesh axes that the program itself names, beyond the shardings of its inputs."""
        given = [value.spec for value in self.values if not value.is_argument or value.op]
        given += [output.spec for output in self.outputs]
        named = {axis for spec in given for axes in spec or () for axis in axes}
        named.update(axis for op in self.ops for axis in op.axes)
        return {axis.partition(":(")[0] for axis in named}


def read(text: str) -> Module:
    """Read the main function of a module; raises `ValueError` where jaxlib cannot parse it."""
    return read_module(mlir.Module(text))


def read_module(module: mlir.Module) -> Module:
    """Read the main function of a module that is parsed already."""
    return module.read(lambda operation: _Reader().read(operation))


def sharding_text(mesh: str, spec: Sequence[Sequence[str]], *, is_open: bool = False) -> str:
    """Write a spec as Shardy's attribute; where `is_open`, each dimension may be sharded further.

    >>> sharding_text("mesh", (("data",), (), ("x:(1)2", "y")))
    '#sdy.sharding<@mesh, [{"data"}, {}, {"x":(1)2, "y"}]>'
    """
    more = ["?"] if is_open else []
    dims = ("{" + ", ".join([*map(_quoted, axes), *more]) + "}" for axes in spec)
    return f"#sdy.sharding<@{mesh}, [{', '.join(dims)}]>"


def mesh_text(axes: Mapping[str, int]) -> str:
    """Write a mesh as Shardy's attribute.

    >>> mesh_text({"data": 4, "model": 2})
    '#sdy.mesh<["data"=4, "model"=2]>'
    """
    return f"#sdy.mesh<[{', '.join(f'"{name}"={size}' for name, size in axes.items())}]>"


def _quoted(axis: str) -> str:
    name, colon, part = axis.partition(":(")
    return f'"{name}"{colon}{part}'


class _Reader:
    """Reads the operation of one module, with what was read of its attributes and types."""

    def __init__(self) -> None:
        self.ir = mlir.bindings("ir")
        self.sdy = mlir.bindings("dialects.sdy")
        self.stablehlo = mlir.bindings("dialects.stablehlo")
        self.module = Module()
        self.values: dict[Any, Value] = {}
        self.types: dict[Any, tuple[str, tuple[int, ...]]] = {}
        self.shardings: dict[Any, Sharding] = {}
        self.rules: dict[Any, Rule] = {}

    def read(self, operation: Any) -> Module:
        for op in operation.regions[0].blocks[0]:
            if op.operation.name == "sdy.mesh":
                attributes = op.operation.attributes
                axes = map(self.sdy.MeshAxisAttr, self.sdy.MeshAttr(attributes["mesh"]).axes)
                sizes = {axis.name: axis.size for axis in axes}
                self.module.meshes[attributes["sym_name"].value] = sizes
        main = mlir.main_function(operation)
        block = main.regions[0].blocks[0]
        inputs = self._arguments(block, None)
        for value, noted in zip(inputs, _notes(main, "arg", len(inputs)), strict=True):
            value.sharding, value.origins = self._noted(noted)
            self.module.inputs.append(value)
        returned = self._block(block, None)
        for value, noted in zip(returned, _notes(main, "res", len(returned)), strict=True):
            edges = _edges(str(noted.get("sdy.propagation_edges", "")))
            self.module.outputs.append(Output(value, *self._noted(noted), edges))
        return self.module

    def _noted(self, notes: dict[str, Any]) -> tuple[Sharding | None, dict[str, str]]:
        """Give the sharding of an input or a result, and the origins of its axes."""
        sharding, origins = notes.get("sdy.sharding"), notes.get("sdy.sharding_origins")
        return self._sharding(sharding) if sharding else None, _origins(origins)

    def _value(self, value: Any, op: Op | None, index: int, *, is_argument: bool = False) -> Value:
        kind = value.type
        if kind not in self.types:
            self.types[kind] = self._type(kind)
        read = Value(len(self.module.values), *self.types[kind], op, index, is_argument)
        self.module.values.append(read)
        self.values[value] = read
        return read

    def _type(self, kind: Any) -> tuple[str, tuple[int, ...]]:
        """Give the dtype, as HLO calls it, and the shape."""
        ranked = isinstance(kind, self.ir.RankedTensorType)
        name = str(kind.element_type if ranked else kind).lower()
        signed = f"s{name[1:]}" if name[0] == "i" else name.replace("ui", "u", 1)
        return _DTYPES.get(name, signed), tuple(kind.shape) if ranked else ()

    def _arguments(self, block: Any, op: Op | None) -> tuple[Value, ...]:
        arguments = enumerate(block.arguments)
        return tuple(self._value(value, op, at, is_argument=True) for at, value in arguments)

    def _block(self, block: Any, parent: Op | None) -> tuple[Value, ...]:
        """Read the ops of a block; give the values that it returns."""
        for one in block:
            operation = one.operation
            kind = operation.name
            operands = tuple([self.values[value] for value in operation.operands])
            if kind.endswith(".return"):
                return operands
            self._op(operation, Op(kind, operands, parent))
        return ()

    def _op(self, operation: Any, op: Op) -> None:
        results = enumerate(operation.results)
        op.results = tuple(self._value(value, op, at) for at, value in results)
        self.module.ops.append(op)
        attributes = operation.attributes
        self._shardings(op, attributes)
        self._noted_on(op, attributes)
        if op.kind in _AXES:
            op.axes = tuple(map("".join, _AXIS.findall(str(attributes[_AXES[op.kind]]))))
        elif op.kind in _NUMBERS:
            op.numbers = tuple(_integers(attributes[name]) for name in _NUMBERS[op.kind])
        elif op.opcode == "dot":
            op.numbers = self._contracted(op, attributes)
        elif op.opcode == "while":
            op.trips = self._trips(operation.regions[0].blocks[0])
        if op.kind in _WITH_BODY:
            self._bodies(op, operation)

    def _shardings(self, op: Op, attributes: Any) -> None:
        """Read the shardings of the results; that of a data-flow edge is its operand's."""
        values = op.results
        if op.kind == "sdy.data_flow_edge":
            values = (op.operands[0].placed,)
            op.results[0].holder, values[0].sharding = values[0], None
        if "sdy.sharding" in attributes:
            given = self.sdy.TensorShardingPerValueAttr(attributes["sdy.sharding"]).shardings
            for value, sharding in zip(values, given, strict=True):
                value.sharding = self._sharding(sharding)
        elif op.kind.startswith("sdy."):
            for name in ("sharding", "out_sharding"):
                if name in attributes:
                    values[0].sharding = self._sharding(attributes[name])

    def _noted_on(self, op: Op, attributes: Any) -> None:
        """Read what Shardy noted on an op while it propagated."""
        if "sdy.sharding_rule" in attributes:
            op.rule = self._rule(attributes["sdy.sharding_rule"])
        if "sdy.propagation_edges" in attributes:
            op.edges = _edges(str(attributes["sdy.propagation_edges"]))
        if "sdy.sharding_origin_name" in attributes:
            op.origin_name = attributes["sdy.sharding_origin_name"].value
        if "sdy.sharding_origins" in attributes:
            noted = attributes["sdy.sharding_origins"]
            for value, origins in zip(
                op.results, [noted] if isinstance(noted, self.ir.DictAttr) else noted, strict=True
            ):
                value.placed.origins = _origins(origins)

    def _contracted(self, op: Op, attributes: Any) -> Numbers:
        if "dot_dimension_numbers" not in attributes:
            return (len(op.operands[0].shape) - 1,), (0,), (), ()
        numbers = self.stablehlo.DotDimensionNumbers(attributes["dot_dimension_numbers"])
        return (
            tuple(numbers.lhs_contracting_dimensions),
            tuple(numbers.rhs_contracting_dimensions),
            tuple(numbers.lhs_batching_dimensions),
            tuple(numbers.rhs_batching_dimensions),
        )

    def _trips(self, condition: Any) -> int | None:
        """Give the constant that a loop's counter is compared with: loops of JAX start at 0."""
        for op in condition:
            compared = op.operation
            if compared.name != "stablehlo.compare":
                continue
            limit = compared.operands[1].owner
            direction = compared.attributes["comparison_direction"]
            less = self.stablehlo.ComparisonDirectionAttr(direction).value == "LT"
            if less and not isinstance(limit, self.ir.Block) and limit.name in _CONSTANTS:
                return int(limit.attributes["value"].get_splat_value().value)
        return None

    def _bodies(self, op: Op, operation: Any) -> None:
        for region in operation.regions:
            block = region.blocks[0]
            arguments = self._arguments(block, op)
            if op.kind == "stablehlo.while":
                # The carry of a loop has one sharding: outside, in the condition, in the body.
                for argument, result in zip(arguments, op.results, strict=True):
                    argument.holder = result
            op.arguments.append(arguments)
            op.returned.append(self._block(block, op))

    def _sharding(self, attribute: Any) -> Sharding:
        if attribute not in self.shardings:
            read = self.sdy.TensorShardingAttr(attribute)
            dims = [self.sdy.DimensionShardingAttr(dim) for dim in read.dimension_shardings]
            self.shardings[attribute] = Sharding(
                tuple(self._axes(dim.axes) for dim in dims),
                tuple(dim.is_closed for dim in dims),
                self._axes(read.replicated_axes),
                self._axes(read.unreduced_axes),
            )
        return self.shardings[attribute]

    def _axes(self, axes: Sequence[Any]) -> tuple[str, ...]:
        return tuple(self._axis(self.sdy.AxisRefAttr(axis)) for axis in axes)

    def _axis(self, axis: Any) -> str:
        if axis.sub_axis_info is None:
            return str(axis.name)
        part = self.sdy.SubAxisInfoAttr(axis.sub_axis_info)
        return f"{axis.name}:({part.pre_size}){part.size}"

    def _rule(self, attribute: Any) -> Rule:
        if attribute not in self.rules:
            rule = self.sdy.OpShardingRuleAttr(attribute)
            self.rules[attribute] = Rule(
                tuple(map(self._dims, rule.operand_mappings)),
                tuple(map(self._dims, rule.result_mappings)),
                {_factor(at): size for at, size in enumerate(rule.factor_sizes)},
                frozenset(map(_factor, rule.reduction_factors)),
                frozenset(map(_factor, rule.need_replication_factors)),
                frozenset(map(_factor, rule.permutation_factors)),
            )
        return self.rules[attribute]

    def _dims(self, mapping: Any) -> Dims:
        dims = map(self.sdy.DimMappingAttr, self.sdy.TensorMappingAttr(mapping).dim_mappings)
        return tuple(tuple(map(_factor, dim.factor_indices)) for dim in dims)


def _notes(main: Any, of: str, count: int = 0) -> list[dict[str, Any]]:
    """Give the attributes of each input or result of the main function."""
    name = f"{of}_attrs"
    if name not in main.attributes:
        return [{}] * count
    return [{note.name: note.attr for note in notes} for notes in main.attributes[name]]


def _origins(noted: Any) -> dict[str, str]:
    return {origin.name: origin.attr.value for origin in noted or ()}


def _integers(attribute: Any) -> tuple[int, ...]:
    try:
        return tuple(attribute)
    except TypeError:
        return (int(attribute),)


def _factor(index: int) -> str:
    """Name a factor as Shardy does: `i` to `z`, then `z_1`."""
    return chr(ord("i") + index) if index < _LETTERS else f"z_{index - _LETTERS + 1}"


def _edges(text: str) -> tuple[Edge, ...]:
    found, step = [], 0
    for number, axis, part, kind, index, targets in _EDGE.findall(text):
        if number:
            step = int(number)
            continue
        ends = tuple((end, int(at)) for end, at in _END.findall(targets))
        found.append(Edge(step, axis + part, (kind, int(index)), ends))
    return tuple(found)
