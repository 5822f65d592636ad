"""Values and operations of a program in the user's words."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from shardnb.causes.expanded import LINEAR_ALGEBRA, algorithm
from shardnb.causes.stated_shardings import is_of_the_compiler, is_shard_map_edge, primitive
from shardnb.causes.unpartitioned import Unpartitioned
from shardnb.texts.extremes import compared_by, extreme_of
from shardnb.texts.graph import Graph
from shardnb.texts.hlo import GraphValue
from shardnb.texts.instruction import HloValue, Instruction
from shardnb.texts.opcodes import CALLERS, ONE_OPERAND_STEPS, SHAPE_STEPS, TUPLES

_RESHAPING = (
    "broadcast_in_dim dynamic_slice expand_dims iota repeat reshape slice split squeeze tile "
    "transpose"
)
_VIEW_NAMES = frozenset(_RESHAPING.split())
_VIEW_WORDS = {"broadcast_in_dim": "", "dynamic_slice": "slice", "expand_dims": ""}
"""What a view is called; new dimensions make no other value of it (`row_added`)."""

_VIEWS = ONE_OPERAND_STEPS | {"slice", "dynamic-slice"}
_STEPS = 12
_NAMED_BY_WHERE = ("carried ", "result of ")
"""How names begin that the user's text does not have."""

_BINARY = frozenset(("add", "collective-permute", "divide", "dot", "multiply", "subtract"))
"""Operations whose operands stand in the order in which they are written."""

_NAMELESS = re.compile(r"Arg_\d+(\.\d+)?")
"""What JAX calls a parameter of which it has no name, as of an array that is closed over."""

_CALLED = re.compile(r"jit\((\w+)\)")
"""What is left of the name of a jitted function of JAX's that the compiler writes out itself."""

_FUNCTION = re.compile(
    r"jit\((cum(?:sum|prod|max|min|logsumexp)|_roll(?:_static|_dynamic)?)\)+/"
    r"(?:reduce_window\w*|concatenate|slice|dynamic_slice|split|pad)$"
)
"""A function of JAX's whose steps have names that do not say what it does."""

_STACKS = re.compile(r"while/body/jit\(dynamic_update_index_in_dim\)/\w+$")
"""How a scan puts what a turn returns, or keeps for the backward pass, beside that of others."""

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

    def operand(self, instruction: Instruction, at: int) -> str:
        """Return what an operand is written as."""

    def operation(self, instruction: Instruction, name: str) -> str:
        """Return what an operation of JAX's is written as, also in the backward pass."""


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
        return self.value(graph, value) if known else self._made_by(made)

    def _made_by(self, node: Instruction) -> str:
        """Name what an operation makes by that: a factorization is many that are not its result."""
        return f"{'a step' if self._algorithm(node) else 'result'} of {self.operation(node)}"

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
                view = _view_of(view, primitive(node.op_name))
                at = here, here.operands[node.name][0]
            else:
                break
        whole = _unrepeated(graph, self._entering(graph, value))
        made = graph.node(whole)
        if made.opcode != "parameter":
            return compared_by(self.program.module, whole, made) or self._made(graph, made)
        here, one = at
        if carried and self.program.is_constant(here, one):
            return LOOP_CARRY
        result = self._made_by(here.node(one))
        return f"carried {result}" if carried else result

    def _made(self, graph: Graph, made: Instruction) -> str:
        """Name what an operation makes by the expression that it is written as, or by itself."""
        whole = self.of_the_user(made)
        users = graph.users.get(made.value, ())
        within = primitive(made.op_name) in LINEAR_ALGEBRA and bool(users)
        if within and all(user.key == made.key for user in users):
            return f"a step of {self.written(made) or self.operation(made)}"
        written = self.user.expression(made) if self.user and whole is made else ""
        if written:
            return written
        if whole.opcode != made.opcode or _is_part_of_a_function(made):
            return f"a step of {self.operation(whole)}"
        return self._made_by(made)

    def taken(self, graph: Graph, value: HloValue, node: Instruction) -> str:
        """Name what an operation takes, by what the user writes there if nothing else names it.

        In the body of a loop this is the body's own name of what it carries (`rnn_over_time`).
        """
        made = graph.node(value)
        if made.opcode == "iota" and made.key == node.key:
            return f"a step of {self.operation(node)}"  # the numbers that `top_k` sorts along
        name = self.value(graph, value)
        if self.user is None or not name.startswith(_NAMED_BY_WHERE):
            return name
        product = _product_of(graph, node)
        if product.opcode not in _BINARY:
            return name
        for at, operand in enumerate(graph.operands[product.name]):
            steps = [graph.maker(one) for one in graph.upward(operand, ONE_OPERAND_STEPS)]
            own = [one for one in steps if one is not None and one.key[1] == node.key[1]]
            if value == operand or (own and graph.operands[own[-1].name][:1] == (value,)):
                written = self.user.operand(node, at)
                others = (one for one in graph.operands[product.name] if one != operand)
                # What the compiler for an accelerator swaps is not named by its place.
                swapped = any(self.value(graph, one) == written for one in others)
                return name if swapped or not written else written
        return name

    def text(self, graph: Graph, value: HloValue) -> str:
        """Return what the user calls a value, by a variable or an expression; "" for neither."""
        if self.user is None:
            return ""
        return self._variable(graph, value) or self.user.expression(graph.node(value))

    def written(self, node: Instruction) -> str:
        """Return what the user writes an operation as, "" where that is not known."""
        if self.user is None:
            return ""
        return self.user.operation(self.of_the_user(node), self.operation(node))

    def indices(self, graph: Graph, gather: Instruction) -> str:
        """Name the indices that the user gives to a look-up, or to an update of some rows."""
        written = self.user.operand(gather, 1) if self.user is not None else ""
        return written or self.value(graph, _index(graph, gather))

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
            name = primitive(node.op_name)
            if _VIEW_WORDS.get(name, name) in _VIEW_NAMES:
                break
            kept = _kept_dims(graph, node)
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

    def taker(self, graph: Graph, node: Instruction) -> tuple[str | None, str]:
        """Name what first takes the result of an instruction, after JAX's own steps of it.

        With what the user writes that as, "" if unknown; nothing takes what a scan stacks. What
        leaves a shard_map is taken outside, or in another one (`keys_for_the_backward_pass`).
        """
        here, elsewhere = deque([(graph, node.value)]), deque[GraphValue]()
        for _ in range(_STEPS):
            if not here and not elsewhere:
                break
            graph, value = (here or elsewhere).popleft()
            for user in graph.users.get(value, ()):
                if user.opcode == "call":
                    elsewhere.extend(self._entered(graph, value, user))
                elif user.key == node.key or _is_scope(user):
                    here.append((graph, user.value))
                elif _STACKS.search(user.op_name):
                    return None, ""
                elif user.opcode != "tuple":
                    return self.operation(user), self.written(user)
            elsewhere.extend(self._left(graph, value))
        return LOOP_CARRY if self.program.module.is_loop(graph) else THE_RESULT, ""

    def _entered(self, graph: Graph, value: HloValue, call: Instruction) -> Iterator[GraphValue]:
        """Yield what a value is inside a computation that is called."""
        inner = self.program.module.computations.get(call.calls("to_apply"))
        for at, operand in enumerate(graph.operands[call.name]):
            if inner is not None and operand == value and at in inner.parameters:
                yield inner, inner.parameters[at]

    def _left(self, graph: Graph, value: HloValue) -> Iterator[GraphValue]:
        """Yield what a result of a computation is where that is called."""
        caller = self.program.module.caller(graph)
        if caller is not None and caller.opcode == "call" and value in graph.results:
            at = graph.results.index(value)
            outer = caller.value.at(at) if graph.root.is_tuple else caller.value
            yield self.program.module.graph_of(caller), outer

    def operation(self, node: Instruction) -> str:
        """Name an operation as JAX does; a loop's name is not that of what XLA put into it."""
        if name := self._algorithm(node) or extreme_of(self.program.module, node):
            return name
        node = self.of_the_user(node)
        name = primitive(_op_name(node))
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

    def _algorithm(self, node: Instruction) -> str:
        """Return the factorization that an operation is a step of, also where the compiler made it.

        It is in one of the loops of that then. "" for another operation.
        """
        if name := algorithm(node.op_name):
            return name
        at: Instruction | None = node
        while at is not None and is_of_the_compiler(at):
            at = self.program.module.caller(self.program.module.graph_of(at))
        name = "" if at is None or at is node else primitive(at.op_name)
        return name if name in LINEAR_ALGEBRA else algorithm(at.op_name if at is not None else "")

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


def _kept_dims(graph: Graph, view: Instruction) -> list[int]:
    """Return the dimension of a broadcast or a reshape that each one of its operand becomes.

    None of a reshape that does more than to add dimensions of size one, or to drop them.
    """
    if view.opcode == "broadcast":
        return [int(dim) for dim in re.findall(r"\d+", view.attribute("dimensions") or "")]
    before, after = graph.array(graph.operands[view.name][0]), graph.array(view.value)
    if before is None or after is None:
        return []
    long = [dim for dim, size in enumerate(after[1]) if size != 1]
    if [size for size in before[1] if size != 1] != [after[1][dim] for dim in long]:
        return []
    numbers = iter(long)
    return [-1 if size == 1 else next(numbers) for size in before[1]]


def _op_name(node: Instruction) -> str:
    """Return the name of an operation; of several that XLA joined, of what is not a view.

    A product with a constant is a product with its broadcast (`squares_of_a_difference`).
    """
    names = node.op_name.split(";")
    computing = [name for name in names if primitive(name) not in _VIEW_NAMES]
    return (computing if computing and node.opcode not in _VIEWS else names)[-1]


def _index(graph: Graph, gather: Instruction) -> HloValue:
    """Return what the user looks up with: JAX adds the size to what is negative, and shapes it.

    It does so at the line of the look-up itself (`rows_by_an_index`).
    """
    value = graph.operands[gather.name][1]
    for _ in range(_STEPS):
        node = graph.node(value)
        operands = graph.operands[node.name]
        if node.opcode == "parameter" or node.key[1] != gather.key[1] or not operands:
            break
        if node.opcode != "select" and node.opcode not in ONE_OPERAND_STEPS:
            break
        value = operands[-1]
    return value


def _unrepeated(graph: Graph, value: HloValue) -> HloValue:
    """Return what new dimensions are added to (`causal_mask_of_positions`)."""
    node = graph.node(value)
    while _VIEW_WORDS.get(primitive(node.op_name)) == "" and node.opcode in (
        "broadcast",
        "reshape",
    ):
        value = graph.operands[node.name][0]
        node = graph.node(value)
    return value


def _product_of(graph: Graph, node: Instruction) -> Instruction:
    """Return the product that a broadcast is a step of, else the instruction itself.

    TPU writes a matrix times a vector as a product with rows that repeat it, and a sum
    (`directions_of_a_solver`).
    """
    users = graph.users.get(node.value, ())
    if node.opcode != "broadcast" or len(users) != 1 or users[0].opcode != "multiply":
        return node
    return users[0] if users[0].key == node.key or is_of_the_compiler(users[0]) else node


def _view_of(view: str, name: str) -> str:
    """Return what a view of a view is called: `x[0]` and what a scan takes are slices."""
    if name not in _VIEW_NAMES:
        return view
    word = _VIEW_WORDS.get(name, name)
    return word if not view or (view, word) == ("squeeze", "slice") else view


def _is_scope(node: Instruction) -> bool:
    """Whether a value only leaves a function, a loop's body or a shard_map here.

    Where some axes are manual, the compiler copies it under the name of what it leaves
    (`pipeline_with_tensor_parallel_stages`).
    """
    left = node.opcode == "copy" and primitive(node.op_name) in _SCOPES
    return left or is_shard_map_edge(node)


def _is_part_of_a_function(node: Instruction) -> bool:
    """Whether a function of JAX's, as `_FUNCTION` reads it, goes on with what it takes out here."""
    return node.opcode in ("dynamic-slice", "slice") and bool(_FUNCTION.search(node.op_name))


def _is_scalar(node: Instruction) -> bool:
    return [shape for _, shape in node.arrays] == [()]


def _is_view(node: Instruction) -> bool:
    """Whether a value is another one, seen in another shape, type or part."""
    edge = node.opcode == "custom-call" and "FullToShardShape" in node.attributes
    return edge or node.opcode in _VIEWS
