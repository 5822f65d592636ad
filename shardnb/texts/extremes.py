"""Where the largest or the smallest element is: `argmax` and `argmin`, of which JAX drops the name.

It writes them as one reduce of the elements and their places, under the name `reduce`.
"""

from __future__ import annotations

from shardnb.texts.graph import Graph
from shardnb.texts.hlo import Module
from shardnb.texts.instruction import HloValue, Instruction
from shardnb.texts.opcodes import ONE_OPERAND_STEPS, TUPLES

_BY_COMPARISON = {"GT": "argmax", "LT": "argmin"}


def extreme_of(module: Module, node: Instruction) -> str:
    """Return "argmax" or "argmin" for a reduce that is one, "" for another instruction.

    Its reducer keeps the one of two elements that compares so, or that is not a number.
    """
    if (
        node.opcode != "reduce"
        or len(node.results) != 2
        or not _counts(module.graph_of(node), node)
    ):
        return ""
    reducer = module.computations.get(node.calls("to_apply"))
    if reducer is None:
        return ""
    here, there = (reducer.parameters.get(number) for number in (0, 2))
    compared = {
        one.attribute("direction")
        for one in reducer.body
        if one.opcode == "compare" and reducer.operands[one.name] == (here, there)
    }
    found = [name for way, name in _BY_COMPARISON.items() if way in compared]
    return found[0] if len(found) == 1 else ""


def compared_by(module: Module, value: HloValue, made: Instruction) -> str:
    """Name the elements that an `argmax` compares, which it returns beside the places; else "".

    XLA merges it with a `max` of the same array (`experts_chosen_and_weighed`).
    """
    extreme = extreme_of(module, made)
    if not extreme or value.element == (1,):
        return ""
    used = bool(module.graph_of(made).users.get(value))
    return f"result of reduce_{extreme[3:]}" if used else f"a step of {extreme}"


def _counts(graph: Graph, node: Instruction) -> bool:
    """Whether the second operand numbers the elements of the first."""
    value = graph.source(graph.operands[node.name][1], ONE_OPERAND_STEPS | TUPLES)
    made = graph.maker(value)
    return made is not None and made.opcode == "iota"
