"""Values and operations of a program in the user's words."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from shardnb.causes.stated_shardings import is_of_the_compiler, primitive
from shardnb.causes.unpartitioned import Unpartitioned
from shardnb.texts.graph import Graph
from shardnb.texts.instruction import HloValue, Instruction
from shardnb.texts.opcodes import CALLERS, ONE_OPERAND_STEPS, SHAPE_STEPS, TUPLES

_RESHAPING = (
    "broadcast_in_dim dynamic_slice expand_dims iota repeat reshape slice split squeeze tile "
    "transpose"
)
_VIEW_NAMES = frozenset(_RESHAPING.split())
_VIEWS = ONE_OPERAND_STEPS | {"slice", "dynamic-slice"}
_STEPS = 12
_NAMELESS = re.compile(r"Arg_\d+(\.\d+)?")
"""What JAX calls a parameter of which it has no name, as of an array that is closed over."""

_CALLED = re.compile(r"jit\((\w+)\)")
"""What is left of the name of a jitted function of JAX's that the compiler writes out itself."""

_FUNCTION = re.compile(
    r"jit\((cum(?:sum|prod|max|min|logsumexp)|_roll(?:_static|_dynamic)?)\)/"
    r"(?:reduce_window\w*|concatenate|slice|dynamic_slice)$"
)
"""A function of JAX's whose steps have names that do not say what it does."""

_STEP = re.compile(r"[^.\[\]]+")
"""A step of a path: the first one is the argument."""

_CONTROL_FLOW = frozenset(("body", "closed_call", "cond", "pjit", "scan", "while"))
_PRODUCTS = {"dot": "dot_general", "convolution": "conv_general_dilated"}
"""What JAX calls a product into which the compiler folded a transpose, whose name it then has."""

_SCOPES = _CONTROL_FLOW | {"eval_jaxpr", "jit", "shard_map"}
"""What a copy is named by that moves nothing: the function, the loop or the shard_map it leaves."""

LOOP_CARRY = "the loop's carry"
THE_RESULT = "the program's result"


class UserNames(Protocol):
    """What the user's text calls values: "" where it does not say."""

    def variable(self, computation: str, value: HloValue) -> tuple[str, int]:
        """Return the variable that a statement assigns a value to, and its line."""

    def expression(self, instruction: Instruction) -> str:
        """Return the expression that an operation is written as."""


@dataclass
class ValueNames:
    """Names the values of the program before partitioning."""

    program: Unpartitioned
    inputs: Sequence[str]
    user: UserNames | None = None

    def result(self, graph: Graph, value: HloValue) -> str:
        """Name what an operation makes by that operation, and other values as the user does."""
        made = graph.node(value)
        known = made.opcode == "parameter" or _is_view(made)
        return self.value(graph, value) if known else f"result of {self.operation(made)}"

    def _variable(self, graph: Graph, value: HloValue) -> str:
        """Return the user's name of a value, "" where no statement assigns it alone.

        That of an argument may be assigned anew: the line tells such a value from it.
        """
        name, line = self.user.variable(graph.name, value) if self.user else ("", 0)
        return f"{name} of line {line}" if name in self._arguments else name

    @cached_property
    def _arguments(self) -> frozenset[str]:
        return frozenset(step for path in self.inputs for step in _STEP.findall(path)[:1])

    def value(self, graph: Graph, value: HloValue) -> str:
        """Name a value: the user's variable, a parameter's path, a view of one, or an expression.

        By the operation that makes it only where the user's text has no name for it.
        """
        at, view, carried = (graph, value), "", False
        for _ in range(_STEPS):
            here, one = at
            node = here.node(one)
            variable = self._variable(here, one)
            if variable:
                name = f"{view} of {variable}" if view else variable
                return f"carried {name}" if carried else name
            if node.opcode == "parameter":
                outer = self.program.module.outside(here, one)
                if outer is None:
                    grown = here.array(one) != graph.array(value) and _is_scalar(node)
                    view = view or ("broadcast" if grown else "")
                    name = self._parameter(here, node, view)
                    return f"carried {name}" if carried else name
                carried = carried or self._is_carried(here, one)
                at = outer
            elif _is_view(node) and here.operands[node.name]:
                name = primitive(node.op_name)
                view = view or (name if name in _VIEW_NAMES else "")
                at = here, here.operands[node.name][0]
            else:
                break
        made = graph.node(self._entering(graph, value))
        if made.opcode != "parameter":
            whole = self.of_the_user(made)
            written = self.user.expression(made) if self.user and whole is made else ""
            if written:
                return written
            what = "result" if whole is made or whole.opcode == made.opcode else "a step"
            return f"{what} of {self.operation(whole)}"
        here, one = at
        result = f"result of {self.operation(here.node(one))}"
        return f"carried {result}" if carried else result

    def _entering(self, graph: Graph, value: HloValue) -> HloValue:
        """Return what enters an operation, for a step of it that only shapes what it takes.

        In `position[:, None] >= position` the comparison repeats both itself
        (`causal_mask_of_positions`).
        """
        node = graph.node(value)
        while _is_scope(node) and graph.operands[node.name]:
            value = graph.operands[node.name][0]
            node = graph.node(value)
        key, step = node.key, value
        while node.key == key and node.opcode in SHAPE_STEPS and graph.operands[node.name]:
            step = graph.operands[node.name][0]
            node = graph.node(step)
        shapes = primitive(key[0]) not in _VIEW_NAMES and graph.node(value).opcode != "copy"
        return step if shapes and key[0] and node.key != key else value

    def dims(self, graph: Graph, value: HloValue, dims: tuple[int, ...]) -> tuple[int, ...]:
        """Give the dimensions of what a value is named by: an operation may broadcast that itself.

        In `x[:, None] - x` the second operand is a broadcast under the name of the subtraction.
        """
        node = graph.maker(value)
        while node is not None and node.opcode in ("broadcast", "reshape"):
            if primitive(node.op_name) in _VIEW_NAMES:
                break
            if node.opcode == "reshape":
                return ()
            kept = [int(dim) for dim in re.findall(r"\d+", node.attribute("dimensions") or "")]
            dims = tuple(kept.index(dim) for dim in dims if dim in kept)
            node = graph.maker(graph.operands[node.name][0])
        return dims

    def _is_carried(self, graph: Graph, value: HloValue) -> bool:
        module = self.program.module
        return module.is_loop(graph) and not module.is_kept(graph, value)

    def _parameter(self, graph: Graph, node: Instruction, view: str) -> str:
        number = int(node.operand_text) if node.operand_text.isdigit() else -1
        name = "" if _NAMELESS.fullmatch(node.op_name) else node.op_name
        if not name and 0 <= number < len(self.inputs) and graph.name == self.program.module.entry:
            name = self.inputs[number]
        name = name or f"argument {number}"
        return f"{view} of {name}" if view else name

    def taker(self, graph: Graph, node: Instruction) -> str:
        """Name what first takes the result of an instruction, after JAX's own steps of it.

        Of what a shard_map gives back, this is what takes it outside.
        """
        last, value = node, node.value
        for _ in range(_STEPS):
            users = graph.users.get(value, ())
            taking = [one for one in users if one.opcode != "tuple"]
            if taking:
                last, value = taking[0], taking[0].value
                if last.key != node.key and not _is_scope(last):
                    return self.operation(last)
                continue
            caller = self.program.module.caller(graph)
            if caller is None or caller.opcode != "call" or value not in graph.results:
                break
            at = graph.results.index(value)
            value = caller.value.at(at) if graph.root.is_tuple else caller.value
            graph = self.program.module.graph_of(caller)
        return LOOP_CARRY if self.program.module.is_loop(graph) else THE_RESULT

    def operation(self, node: Instruction) -> str:
        """Name an operation as JAX does; a loop's name is not that of what XLA put into it."""
        node = self.of_the_user(node)
        name = primitive(node.op_name)
        if is_of_the_compiler(node):
            return node.opcode
        if called := _CALLED.fullmatch(name):
            return called[1]
        if function := _FUNCTION.search(node.op_name):
            return function[1].removeprefix("_").removesuffix("_static").removesuffix("_dynamic")
        if name in _VIEW_NAMES and node.opcode in _PRODUCTS:
            return _PRODUCTS[node.opcode]
        inside = name in _CONTROL_FLOW and node.opcode not in CALLERS
        return node.opcode if inside or not name else name

    def of_the_user(self, node: Instruction) -> Instruction:
        """Return the operation that JAX named, where an instruction is a step of it alone.

        TPU writes a running sum as windows over pieces (`cumsum_rows`), and a small product as a
        multiplication and a sum, with names of its own for all steps but the last.
        """
        if not is_of_the_compiler(node):
            return node
        graph = self.program.module.graph_of(node)
        queue, seen = deque([node]), {node}
        while queue and len(seen) < _STEPS:
            here = queue.popleft()
            if here.op_name and not is_of_the_compiler(here):
                return here
            users = (one for one in graph.users.get(here.value, ()) if one.opcode not in TUPLES)
            fresh = [one for one in users if one not in seen]
            seen.update(fresh)
            queue.extend(fresh)
        return node


def only_returns(graph: Graph, node: Instruction) -> bool:
    """Whether an instruction without a name only returns its operand.

    Where jit returns an array in another sharding than it has, the program before partitioning
    has a reshape to the same shape that is not an operation of JAX's.
    """
    same = node.opcode == "reshape" and graph.array(node.value) == graph.array(
        graph.operands[node.name][0]
    )
    users = graph.users.get(node.value, ())
    ends = all(user is graph.root and user.opcode == "tuple" for user in users)
    return same and not node.op_name and ends


def _is_scope(node: Instruction) -> bool:
    """Whether a value only leaves a function, a loop's body or a shard_map here.

    Where some axes are manual, the compiler copies it under the name of what it leaves
    (`pipeline_with_tensor_parallel_stages`).
    """
    left = node.opcode == "copy" and primitive(node.op_name) in _SCOPES
    return left or (node.opcode == "custom-call" and "SPMDShardToFullShape" in node.attributes)


def _is_scalar(node: Instruction) -> bool:
    return [shape for _, shape in node.arrays] == [()]


def _is_view(node: Instruction) -> bool:
    """Whether a value is another one, seen in another shape, type or part."""
    edge = node.opcode == "custom-call" and "FullToShardShape" in node.attributes
    return edge or node.opcode in _VIEWS
