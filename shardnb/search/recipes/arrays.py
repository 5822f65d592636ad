"""What the arguments of a program are to it: its parameters, their state, its data.

Which arguments are parameters is read off the program's dataflow (`causes.training`), as is how it
multiplies by them. Which state belongs to a parameter is also read off the paths.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import jax

from shardnb.causes.flows import Flows
from shardnb.causes.training import Training
from shardnb.compiler import Program, placement
from shardnb.compiler import arrays as values
from shardnb.compiler.arrays import dtype_name
from shardnb.report import dtypes
from shardnb.search.patterns import path_pattern
from shardnb.texts.graph import Graph
from shardnb.texts.instruction import HloValue, Instruction

Tree = Any
Part = Literal["parameter", "state", "data"]
Path = tuple[str, ...]
# Each element of the operand is one of the result, at the place that a transpose says.
_SAME = ("bitcast", "convert", "copy", "transpose")


@dataclass(frozen=True)
class Array:
    """An array of the arguments; `steps` are its path within the argument.

    `pattern` is its name with a star for each number of a layer.
    """

    name: str
    argument: str
    steps: Path
    pattern: str
    dtype: str
    shape: tuple[int, ...]
    is_key: bool = False

    @property
    def is_tokens(self) -> bool:
        """Whether it is of integers, and so without features."""
        return self.dtype[0] in "su"

    @property
    def bytes(self) -> int:
        """Size in bytes; a random key is next to nothing."""
        return 0 if self.is_key else dtypes.size_in_bytes(self.dtype, self.shape)


@dataclass(frozen=True)
class ProgramArrays:
    """The arrays of the arguments, and what they are to the program.

    `owners` has the parameter that each state array belongs to. `matrices` has the dimensions of a
    parameter that can be sharded without a sum: those that its first product does not sum over, or
    the one by which the program looks rows up; in the order of the program's text. `experts` has
    the dimension of a parameter along which a product takes it matrix by matrix. `assumed` says
    that the dataflow shows no parameters: then what the program multiplies by on the right counts.
    """

    arrays: tuple[Array, ...]
    parameters: frozenset[str] = frozenset()
    owners: Mapping[str, str] = field(default_factory=dict)
    matrices: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    experts: Mapping[str, int] = field(default_factory=dict)
    assumed: bool = False

    def part(self, name: str) -> Part:
        """Return what an array is to the program."""
        if name in self.parameters:
            return "parameter"
        return "state" if name in self.owners else "data"

    @cached_property
    def data(self) -> tuple[Array, ...]:
        """The arrays that are neither parameters nor their state."""
        return tuple(array for array in self.arrays if self.part(array.name) == "data")

    @property
    def batch(self) -> Array | None:
        """The array whose first dimension is the batch: the first of the data.

        A mask has no batch as a rule, and a vector in an argument of its own may be a bias.
        """
        known = [a for a in self.data if a.shape and not a.is_key and a.dtype != "pred"]
        return next((a for a in known if len(a.shape) > 1), known[0] if known else None)

    @cached_property
    def patterns(self) -> Mapping[str, str]:
        """The pattern of each array by its name."""
        return {array.name: array.pattern for array in self.arrays}

    @cached_property
    def by_name(self) -> Mapping[str, Array]:
        """The arrays by their names."""
        return {array.name: array for array in self.arrays}


def training_of(program: Program) -> Training | None:
    """Read what a program trains off its dataflow; None if the program was not kept."""
    if program.before is None:
        return None
    inputs = values.inputs(program)
    return Training(Flows(program.before), [inputs[n].name for n in program.parameters])


def arrays_of(arguments: Mapping[str, Tree], training: Training | None) -> ProgramArrays:
    """Read what the arrays of the arguments are to a program."""
    arrays = tuple(_arrays(arguments))
    if training is None:
        return ProgramArrays(arrays)
    names = training.inputs
    shapes = {array.name: array.shape for array in arrays}
    matrices, experts = dict(_matrices(training, shapes, names)), _experts(training, shapes, names)
    known = {array.name for array in arrays}
    parameters = frozenset(names[n] for n in training.parameters) & known
    assumed = not parameters
    if assumed:
        parameters = frozenset(_multiplied_by(training, names)) & known
    read = {names[n]: names[of] for n, of in training.owners.items() if of is not None}
    owners = {**dict(_owners_by_path(arrays, parameters)), **read}
    return ProgramArrays(arrays, parameters, owners, matrices, dict(experts), assumed)


def _arrays(arguments: Mapping[str, Tree]) -> Iterator[Array]:
    for argument, tree in arguments.items():
        for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
            is_key = bool(jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.extended))
            yield Array(
                name=f"{argument}{jax.tree_util.keystr(path)}",
                argument=argument,
                steps=placement.step_names(path),
                pattern=argument + path_pattern(path),
                dtype="key" if is_key else dtype_name(placement.dtype_of(leaf)),
                shape=tuple(leaf.shape),
                is_key=is_key,
            )


def _owners_by_path(
    arrays: Sequence[Array], parameters: frozenset[str]
) -> Iterator[tuple[str, str]]:
    """Yield arrays whose paths end as a parameter's path does, with that parameter.

    An optimizer keeps its moments in pytrees with the structure of the parameters. Of several
    parameters the one with the longest such path is meant.
    """
    tails: dict[Path, Array] = {}
    for argument in {array.argument for array in arrays}:
        trained = [a for a in arrays if a.argument == argument and a.name in parameters]
        root = _common([array.steps[:-1] for array in trained])
        tails |= {array.steps[root:]: array for array in trained if array.steps[root:]}
    for array in arrays:
        if array.name in parameters:
            continue
        ends = (array.steps[at:] for at in range(len(array.steps)))
        owner = next((tails[end] for end in ends if end in tails), None)
        if owner is not None and owner.shape == array.shape:
            yield array.name, owner.name


def _common(paths: Sequence[Path]) -> int:
    """Return the number of steps that all paths begin with."""
    steps = zip(*paths, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda step: len(set(step)) == 1, steps))


# How the program uses its parameters


def _matrices(
    training: Training, shapes: Mapping[str, tuple[int, ...]], names: Sequence[str]
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield each array that a product or a look-up takes, where it is first taken."""
    seen = set[str]()
    for node, side, name, dims in _taken(training, shapes, names):
        free = [dims[dim] for dim in _free(node, side, len(dims))]
        if free and name not in seen:
            seen.add(name)
            yield name, tuple(sorted(free))


def _experts(
    training: Training, shapes: Mapping[str, tuple[int, ...]], names: Sequence[str]
) -> Iterator[tuple[str, int]]:
    """Yield each array of which a product takes one matrix after the other, and its dimension."""
    for node, side, name, dims in _taken(training, shapes, names):
        batch = _numbers(node, f"{side}_batch_dims") if side else []
        if len(batch) == 1:
            yield name, dims[batch[0]]


def _taken(
    training: Training, shapes: Mapping[str, tuple[int, ...]], names: Sequence[str]
) -> Iterator[tuple[Instruction, str, str, tuple[int, ...]]]:
    """Yield products and look-ups of the forward pass, the operand that is an array, and its name.

    Last come the array's dimensions that the operand has. Of the backward pass, products take the
    parameters transposed.
    """
    flows = training.flows
    for node in flows.module.of_kind("dot", "gather"):
        if "transpose(" in flows.module.path(node):
            continue
        graph = flows.module.graph_of(node)
        sides = ("lhs", "rhs") if node.opcode == "dot" else ("",)
        for side, value in zip(sides, graph.operands[node.name], strict=False):
            number = flows.part_of(graph, value)
            if number is not None and names[number] in shapes:
                dims = _own_dims(graph, value, shapes[names[number]])
                if dims is not None:
                    yield node, side, names[number], dims


def _free(node: Instruction, side: str, rank: int) -> list[int]:
    """Return the dimensions of an operand that are not summed and no batch, or that look up."""
    if not side:
        return _numbers(node, "start_index_map")
    taken = {*_numbers(node, f"{side}_contracting_dims"), *_numbers(node, f"{side}_batch_dims")}
    return [dim for dim in range(rank) if dim not in taken]


def _numbers(node: Instruction, name: str) -> list[int]:
    return [int(dim) for dim in (node.attribute(name) or "").strip("{}").split(",") if dim]


def _own_dims(graph: Graph, value: HloValue, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the dimension of an argument that each dimension of an operand is.

    Before a product an argument may be transposed, and a loop over layers takes one of a stack of
    them. None where it is reshaped otherwise.
    """
    array = graph.array(value)
    dims = tuple(range(len(array[1]))) if array else ()
    while (maker := graph.maker(value)) is not None and maker.opcode in _SAME:
        if maker.opcode == "transpose":
            order = _numbers(maker, "dimensions")
            dims = tuple(order[dim] for dim in dims)
        value = graph.operands[maker.name][0]
    array = graph.array(value)
    if array is None:
        return None
    outer = len(shape) - len(array[1])
    fits = outer >= 0 and shape[outer:] == array[1]
    return tuple(outer + dim for dim in dims) if fits else None


def _multiplied_by(training: Training, names: Sequence[str]) -> Iterator[str]:
    """Yield the arrays that stand on the right of a product, as `W` in `x @ W` does."""
    flows = training.flows
    for node in flows.module.of_kind("dot"):
        if not node.attribute("lhs_batch_dims"):
            graph = flows.module.graph_of(node)
            number = flows.part_of(graph, graph.operands[node.name][1])
            if number is not None:
                yield names[number]
