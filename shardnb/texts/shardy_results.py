"""What a report needs of Shardy's modules, without the values and ops in between.

A large program has thousands of ops, and few that differ: each rule is read once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from shardnb.jax_compat import mlir
from shardnb.report.model import Spec
from shardnb.texts.shardy import WITH_BODY, notes_of, opcode_of
from shardnb.texts.shardy_attributes import Attributes, Numbers, Rule, Sharding

_CONSTRAINT = "sdy.sharding_constraint"

Shape = tuple[int, ...]
Signature = tuple[str, tuple[Shape, ...], tuple[Shape, ...]]
"""What HLO calls an op, the shapes of its results, and those of its operands."""

RulesBySignature = dict[Signature, dict[Rule, frozenset[Numbers]]]
"""The rules of the ops alike; where there are several, the dimension numbers of each one's ops."""


@dataclass(frozen=True)
class Result:
    """The sharding of a result of the program, and that of a constraint on the value returned."""

    sharding: Sharding | None
    constraint: Sharding | None

    @property
    def constrained_spec(self) -> Spec | None:
        """The spec of the result itself, else that of a constraint on the value returned."""
        sharding = self.sharding or self.constraint
        return sharding.spec if sharding else None


@dataclass(frozen=True)
class Stated:
    """The results of a module before propagation, and the shardings of its constraints."""

    results: tuple[Result, ...] = ()
    constraints: frozenset[Sharding] = frozenset()


@dataclass(frozen=True)
class Propagated:
    """The results of a module after propagation, and the rules of its ops."""

    results: tuple[Result, ...] = ()
    rules: RulesBySignature = field(default_factory=dict)


def read_stated(module: mlir.Module) -> Stated:
    """Read the results and constraints of a module before propagation."""

    def read(operation: Any) -> Stated:
        attributes = Attributes()
        constraints = {
            op.attributes["sharding"]
            for op in _ops(mlir.main_function(operation).regions[0].blocks[0])
            if op.name == _CONSTRAINT
        }
        results = tuple(_results(operation, attributes))
        return Stated(results, frozenset(map(attributes.sharding, constraints)))

    return module.read(read)


def read_propagated(module: mlir.Module) -> Propagated:
    """Read the results and the rules of a module after propagation."""

    def read(operation: Any) -> Propagated:
        attributes = Attributes()
        return Propagated(tuple(_results(operation, attributes)), _rules(operation, attributes))

    return module.read(read)


def _results(module: Any, attributes: Attributes) -> Iterator[Result]:
    main = mlir.main_function(module)
    returned = main.regions[0].blocks[0].operations[-1].operation.operands
    for value, noted in zip(returned, notes_of(main, "res_attrs", len(returned)), strict=True):
        sharding, constraint, maker = noted.get("sdy.sharding"), None, value.owner
        if getattr(maker, "name", "") == _CONSTRAINT:
            constraint = attributes.sharding(maker.attributes["sharding"])
        yield Result(None if sharding is None else attributes.sharding(sharding), constraint)


def _rules(module: Any, attributes: Attributes) -> RulesBySignature:
    def shapes(values: Any) -> tuple[Shape, ...]:
        return tuple([attributes.type(value.type)[1] for value in values])

    ops: dict[Signature, dict[Any, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for op in _ops(mlir.main_function(module).regions[0].blocks[0]):
        if (rule := op.attributes.get("sdy.sharding_rule")) is not None:
            signature = opcode_of(op.name), shapes(op.results), shapes(op.operands)
            ops[signature][rule].append(op)
    return {
        signature: {
            attributes.rule(rule): frozenset(
                attributes.numbers(
                    op.name, op.attributes, len(signature[2][0]) if signature[2] else 0
                )
                for op in (alike if len(rules) > 1 else ())
            )
            for rule, alike in rules.items()
        }
        for signature, rules in ops.items()
    }


def _ops(block: Any) -> Iterator[Any]:
    """Yield the ops of a block, and those in their bodies."""
    for op in block:
        operation = op.operation
        yield operation
        if operation.name in WITH_BODY:
            for region in operation.regions:
                yield from _ops(region.blocks[0])
