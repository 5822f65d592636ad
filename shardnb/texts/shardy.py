"""Shardy's modules as data: ops, values, their shardings, and what Shardy noted on them.

Read once with jaxlib's MLIR bindings; nothing of MLIR is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from shardnb.jax_compat import mlir
from shardnb.report.model import Spec
from shardnb.texts.shardy_attributes import Attributes, Edge, Numbers, Rule, Sharding, edges

# Where HLO's name is not StableHLO's with hyphens.
_OPCODES = {
    "broadcast_in_dim": "broadcast",
    "case": "conditional",
    "dot_general": "dot",
    "if": "conditional",
    "top_k": "topk",
}
# The bodies of others, such as a reduce, work on elements: nothing is sharded there.
WITH_BODY = frozenset(
    (
        "stablehlo.case",
        "stablehlo.if",
        "stablehlo.while",
        "sdy.manual_computation",
        "sdy.named_computation",
    )
)
# Shardy's import replaces each StableHLO constant by its own.
_CONSTANTS = ("sdy.constant", "stablehlo.constant")


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
        return opcode_of(self.kind)

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
    def stated_axes(self) -> set[str]:
        """The mesh axes that the program names, beyond the shardings of its inputs."""
        return self.axes_inside | _axes_of(output.spec for output in self.outputs)

    @property
    def axes_inside(self) -> set[str]:
        """The mesh axes that the program names, beyond the shardings of inputs and results."""
        given = [value.spec for value in self.values if not value.is_argument or value.op]
        return _axes_of(given) | {_whole(axis) for op in self.ops for axis in op.axes}


def _axes_of(specs: Iterable[Spec | None]) -> set[str]:
    return {_whole(axis) for spec in specs for axes in spec or () for axis in axes}


def _whole(axis: str) -> str:
    """Return the axis that a part such as `data:(4)2` belongs to."""
    return axis.partition(":(")[0]


def opcode_of(kind: str) -> str:
    """Return what HLO calls an op of a kind.

    >>> opcode_of("stablehlo.dot_general")
    'dot'
    """
    name = kind.partition(".")[2]
    return _OPCODES.get(name, name.replace("_", "-"))


def read(module: mlir.Module) -> Module:
    """Read the main function of a module."""
    return module.read(lambda operation: _Reader().read(operation))


class _Reader:
    """Reads the main function of one module."""

    def __init__(self) -> None:
        self.module = Module()
        self.attributes = Attributes()
        self.values: dict[Any, Value] = {}

    def read(self, operation: Any) -> Module:
        for op in operation.regions[0].blocks[0]:
            if op.operation.name == "sdy.mesh":
                name, mesh = (op.operation.attributes[part] for part in ("sym_name", "mesh"))
                self.module.meshes[name.value] = self.attributes.mesh(mesh)
        main = mlir.main_function(operation)
        block = main.regions[0].blocks[0]
        inputs = self._arguments(block, None)
        for value, noted in zip(inputs, notes_of(main, "arg_attrs", len(inputs)), strict=True):
            value.sharding, value.origins = self._noted(noted)
            self.module.inputs.append(value)
        returned = self._block(block, None)
        for value, noted in zip(returned, notes_of(main, "res_attrs", len(returned)), strict=True):
            travelled = edges(noted.get("sdy.propagation_edges", ""))
            self.module.outputs.append(Output(value, *self._noted(noted), travelled))
        return self.module

    def _noted(self, notes: dict[str, Any]) -> tuple[Sharding | None, dict[str, str]]:
        """Return the sharding of an input or a result, and the origins of its axes."""
        sharding, origins = notes.get("sdy.sharding"), notes.get("sdy.sharding_origins")
        return (
            None if sharding is None else self.attributes.sharding(sharding),
            {} if origins is None else self.attributes.origins(origins)[0],
        )

    def _value(self, value: Any, op: Op | None, index: int, *, is_argument: bool = False) -> Value:
        dtype, shape = self.attributes.type(value.type)
        read = Value(len(self.module.values), dtype, shape, op, index, is_argument)
        self.module.values.append(read)
        self.values[value] = read
        return read

    def _arguments(self, block: Any, op: Op | None) -> tuple[Value, ...]:
        arguments = enumerate(block.arguments)
        return tuple(self._value(value, op, at, is_argument=True) for at, value in arguments)

    def _block(self, block: Any, parent: Op | None) -> tuple[Value, ...]:
        """Read the ops of a block; give the values that it returns."""
        for op in block:
            operation = op.operation
            operands = tuple([self.values[value] for value in operation.operands])
            if operation.name.endswith(".return"):
                return operands
            self._op(operation, Op(operation.name, operands, parent))
        return ()

    def _op(self, operation: Any, op: Op) -> None:
        attributes, results = operation.attributes, enumerate(operation.results)
        op.results = tuple(self._value(value, op, at) for at, value in results)
        rank = len(op.operands[0].shape) if op.operands else 0
        op.numbers = self.attributes.numbers(op.kind, attributes, rank)
        op.axes = self.attributes.axes(op.kind, attributes)
        self._shardings(op, attributes)
        self._noted_on(op, attributes)
        self.module.ops.append(op)
        if op.kind in WITH_BODY:
            self._bodies(op, operation)

    def _shardings(self, op: Op, attributes: Any) -> None:
        """Read the shardings of the results; that of a data-flow edge is its operand's."""
        values = op.results
        if op.kind == "sdy.data_flow_edge":
            values = (op.operands[0].placed,)
            op.results[0].holder, values[0].sharding = values[0], None
        if "sdy.sharding" in attributes:
            shardings = self.attributes.shardings(attributes["sdy.sharding"])
            for value, sharding in zip(values, shardings, strict=True):
                value.sharding = sharding
        elif op.kind.startswith("sdy."):
            for name in ("sharding", "out_sharding"):
                if name in attributes:
                    values[0].sharding = self.attributes.sharding(attributes[name])

    def _noted_on(self, op: Op, attributes: Any) -> None:
        """Read what Shardy noted on an op while it propagated."""
        if "sdy.sharding_rule" in attributes:
            op.rule = self.attributes.rule(attributes["sdy.sharding_rule"])
        if "sdy.propagation_edges" in attributes:
            op.edges = edges(attributes["sdy.propagation_edges"])
        if "sdy.sharding_origin_name" in attributes:
            op.origin_name = attributes["sdy.sharding_origin_name"].value
        if "sdy.sharding_origins" in attributes:
            each = self.attributes.origins(attributes["sdy.sharding_origins"])
            for value, origins in zip(op.results, each, strict=True):
                value.placed.origins = origins

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
        if op.kind == "stablehlo.while":
            op.trips = _trips(operation.regions[0].blocks[0])


def _trips(condition: Any) -> int | None:
    """Return the constant that a loop's counter is compared with: loops of JAX count from 0."""
    direction = mlir.bindings("dialects.stablehlo").ComparisonDirectionAttr
    for op in condition:
        compared = op.operation
        if compared.name != "stablehlo.compare":
            continue
        less = direction(compared.attributes["comparison_direction"]).value == "LT"
        limit = compared.operands[1].owner
        if less and getattr(limit, "name", "") in _CONSTANTS:
            return int(limit.attributes["value"].get_splat_value().value)
    return None


def notes_of(main: Any, name: str, count: int) -> list[dict[str, Any]]:
    """Return the attributes of each input or result of the main function."""
    noted = main.attributes.get(name)
    if noted is None:
        return [{}] * count
    return [{note.name: note.attr for note in notes} for notes in noted]
