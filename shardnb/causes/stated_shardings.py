"""What the user stated: constraints, shardings of results, edges of shard_map."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from shardnb.causes.unpartitioned import Unpartitioned
from shardnb.causes.verdict import Statement
from shardnb.report.model import Spec
from shardnb.terms.causes import AskedBy
from shardnb.terms.primitives import primitive_of
from shardnb.texts.graph import Graph
from shardnb.texts.hlo import Frame
from shardnb.texts.instruction import HloValue, Instruction
from shardnb.texts.shardy_results import Result, Stated

_SHARDYS_BODY = "xla.sdy.inlinable_manual_computation_body"
_STATE_SHARDING = {
    "sharding_constraint": "a sharding constraint",
    "reshard": "a reshard",
    "shard_map": "the in_specs of a shard_map",
}


def primitive(op_name: str) -> str:
    """Return JAX's name of the operation: the last part of its path.

    >>> primitive("jit(f)/jit(_roll)/concatenate")
    'concatenate'
    """
    return op_name.rsplit("/", 1)[-1]


def is_of_the_compiler(node: Instruction) -> bool:
    """Whether the compiler made an instruction of its own, which it names by its opcode.

    JAX names some so as well, inside a shard_map, and says the line.
    """
    by_opcode = re.fullmatch(rf"{re.escape(node.opcode)}(\.\d+)?", node.op_name)
    return by_opcode is not None and not node.key[1]


def is_shard_map_edge(node: Instruction) -> bool:
    """Whether a value goes into a shard_map here, or comes out of one."""
    edges = "SPMDFullToShardShape", "SPMDShardToFullShape"
    return node.opcode == "custom-call" and any(edge in node.attributes for edge in edges)


@dataclass(frozen=True)
class UserShardings:
    """What the user stated beyond Auto's constraints.

    `explicit`: the mesh has Explicit axes, so that JAX itself states every result.
    `results`: the user stated shardings of the results. `operations` are those whose
    `out_sharding` the user gave, each as the end of its op_name and its line. `transposable` are
    the lines, as file and number, at which the forward pass has what autodiff transposes to a
    collective. `windows` are the places of operations over windows that have only one.
    """

    explicit: bool = False
    results: bool = True
    operations: frozenset[tuple[str, str, int]] = frozenset()
    transposable: frozenset[tuple[str, int]] = frozenset()
    windows: Mapping[str, tuple[Frame, ...]] = field(default_factory=dict)


@dataclass
class StatedShardings:
    """The places where a sharding was stated."""

    program: Unpartitioned
    stated: Stated
    propagated_results: tuple[Result, ...]
    user: UserShardings = field(default_factory=UserShardings)

    def states_sharding(self, graph: Graph, node: Instruction) -> bool:
        """Whether an instruction is a constraint, a reshard, or an edge of a shard_map."""
        if node.opcode != "copy":
            return False
        name = primitive(node.op_name)
        if name in _STATE_SHARDING:
            return True
        if not self.user.explicit or not node.op_name:
            return False
        operand = graph.node(graph.operands[node.name][0])
        return operand.op_name == node.op_name or self._is_written(node)

    def is_inserted(self, graph: Graph, node: Instruction) -> bool:
        """Whether the compiler put in a copy that moves a value to another placement."""
        if node.opcode != "copy" or self.states_sharding(graph, node):
            return False
        operand = graph.operands[node.name][0]
        before, after = (self.program.layout(graph, one) for one in (operand, node.value))
        return before is not None and after is not None and before.spec != after.spec

    def asked_by(self, node: Instruction) -> AskedBy:
        """Say whether the user wrote a constraint, or JAX did for an Explicit type."""
        name = primitive(node.op_name)
        if name in _STATE_SHARDING or self._is_written(node):
            return "requested"
        return "inferred"

    def statement(self, graph: Graph, node: Instruction) -> Statement:
        """Return the sharding that an instruction states, as it was written where that is known.

        Along a dimension that was left open it is not.
        """
        name, layout = primitive(node.op_name), self.program.layout(graph, node.value)
        by = _STATE_SHARDING.get(name, "an out_sharding")
        spec = layout.spec if layout is not None else None
        known = name == "shard_map" or spec in self._closed_specs
        return Statement(by, (graph, graph.operands[node.name][0]), spec if known else None, node)

    @cached_property
    def _closed_specs(self) -> frozenset[Spec]:
        """The specs of constraints that leave no dimension open."""
        return frozenset(s.spec for s in self.stated.constraints if all(s.closed))

    def result_statement(self, number: int) -> Statement:
        """Return the sharding that out_specs states of a result."""
        graph = self.program.module.computations[self.program.module.entry]
        sharding = self.stated.results[number].sharding
        spec = sharding.spec if sharding else None
        return Statement("out_specs", (graph, graph.results[number]), spec)

    def is_of_jaxs_shard_map(self, node: Instruction) -> bool:
        """Whether JAX itself may have stated a placement: a shard_map's, beside Explicit axes."""
        return self.user.explicit and primitive(node.op_name) == "shard_map"

    def is_of_a_type(self, made: Instruction) -> bool:
        """Whether a placement in a type asks for what the partitioner did not make.

        So it is where a reshard ends a pending sum: what made the sum lends it its name, but that
        is not a collective.
        """
        shardys = made.computation.startswith(_SHARDYS_BODY)
        row = primitive_of(primitive(made.op_name))
        return self.user.explicit and shardys and (row is None or row.kind is None)

    def asked_within(self, node: Instruction) -> AskedBy:
        """Say whether the user gave an operation its `out_sharding`, and so asked what it sends.

        Axes that are Explicit let none of it happen without.
        """
        return "requested" if self._is_written(node) else "inferred"

    def _is_written(self, node: Instruction) -> bool:
        if "transpose(" in node.op_name:
            return False
        frames = {(f.file, f.line) for f in self.program.module.frames(node)}
        return any(
            node.op_name.endswith(end) and (file, line) in frames
            for end, file, line in self.user.operations
        )

    @property
    def result_asked_by(self) -> AskedBy:
        """Say who stated the results."""
        return "inferred" if self.user.explicit and not self.user.results else "requested"

    def is_stated_result(self, number: int) -> bool:
        """Whether a result has its requested sharding."""
        before, after = (
            results[number].sharding if number < len(results) else None
            for results in (self.stated.results, self.propagated_results)
        )
        return before is not None and before == after

    @cached_property
    def results(self) -> dict[HloValue, int]:
        """The values of the entry computation that are stated results, with their numbers."""
        results = self.program.module.computations[self.program.module.entry].results
        numbered = [(value, at) for at, value in enumerate(results) if self.is_stated_result(at)]
        return dict(reversed(numbered))
