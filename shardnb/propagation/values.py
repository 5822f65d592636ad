"""The values of the user's lines, with their shardings in the compiled program and the reasons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from shardnb.compiler import shardy_passes
from shardnb.compiler.dumps import Dumps
from shardnb.jax_compat.parts import NotAvailable
from shardnb.propagation.blocked import blocked_axes
from shardnb.propagation.chains import Chains, Move, Node, Root, flat, manual
from shardnb.propagation.matching import Leaf, match
from shardnb.propagation.named import Lines, Named, op_word
from shardnb.report.model import Blocked, Location, Mesh, Origin, Spec, Step, Value
from shardnb.report.spec import spec_text
from shardnb.texts import hlo, shardy
from shardnb.texts.instruction import Instruction
from shardnb.texts.shardings import LayoutReader

# A list that somebody can still look through; a note says what was left out
# (test_many_values_are_cut_with_a_note).
VALUE_LIMIT = 2000
# Bytes of Shardy's module above which it is run again for the reasons only when asked to: 8 layers
# of a training step (tests/benchmarks/bench_explain.py) are 304 KB and take 0.2 s.
SIZE_LIMIT = 500_000

# What JAX calls the operations with bodies.
_WORDS = {
    "stablehlo.while": "loop",
    "stablehlo.case": "cond",
    "sdy.manual_computation": "shard_map",
}


@dataclass(frozen=True)
class Explained:
    """Values, and what a report should say about all of them."""

    values: tuple[Value, ...]
    notes: tuple[str, ...] = ()


def values_of(
    dumps: Dumps,
    mesh: Mesh,
    lines: Lines,
    *,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    origins: bool | None = None,
) -> Explained:
    """Return the values of the user's lines, each with its sharding and the reason for it.

    They are those of the program right before partitioning, whose shardings are the compiled one's.
    `inputs` names the program's parameters and `outputs` the report's. `origins` says whether to
    find the reasons (None: only if the program is not large, as that takes a while).
    """
    before, named = lines.module, lines.values
    notes: list[str] = []
    if len(named) > VALUE_LIMIT:
        notes.append(f"of {len(named)} values of these lines, the first {VALUE_LIMIT} are kept")
        named = named[:VALUE_LIMIT]
    reader = LayoutReader(mesh)
    values = [_value(user_value, reader) for user_value in named]
    reasons = _reasons(dumps, mesh, before, notes, origins=origins) if named else None
    if reasons is None:
        inside = _manual(dumps, before)
        typed = (
            replace(_typed(value, mesh), manual=inside.get(user_value.leaf, ()))
            for user_value, value in zip(named, values, strict=True)
        )
        return Explained(tuple(typed), tuple(notes))
    finder = _OriginFinder(reasons, lines, mesh, named, values, tuple(inputs), tuple(outputs))
    return Explained(tuple(finder.explained()), tuple(notes))


def _value(named: Named, reader: LayoutReader) -> Value:
    arrays, index = named.instruction.arrays, named.leaf[1]
    ranks = tuple(len(shape) for _, shape in arrays)
    layout = reader.leaves(named.instruction.attribute("sharding"), ranks)[index]
    dtype, shape = arrays[index]
    return Value(
        name=named.name,
        dtype=dtype,
        shape=shape,
        spec=layout.spec,
        shard_shape=layout.shard_shape(shape),
        unreduced=layout.unreduced,
        location=named.location,
        op=named.op,
    )


@dataclass
class _Reasons:
    """A propagated module, and its values by those of the program before partitioning."""

    module: shardy.Module
    matched: dict[Leaf, shardy.Value]


def _reasons(
    dumps: Dumps, mesh: Mesh, before: hlo.Module, notes: list[str], *, origins: bool | None
) -> _Reasons | None:
    stated = dumps.stated
    if not stated or origins is False or not any(axis.type == "auto" for axis in mesh.axes):
        return None
    if len(stated) > SIZE_LIMIT and not origins:
        notes.append(
            "the origin of each sharding was not traced in such a large program: "
            "explain(..., origins=True) traces it"
        )
        return None
    try:
        propagation = shardy_passes.propagate(dumps)
    except (ValueError, NotAvailable) as error:
        notes.append(f"origins of shardings are unknown: {error}")
        return None
    if not propagation.traced:
        notes.append(
            "this jaxlib does not record through which ops shardings propagate in a program with a "
            "loop or a branch: only their origins are known"
        )
    return _Reasons(propagation.module, match(propagation.module, before))


def _manual(dumps: Dumps, before: hlo.Module) -> dict[Leaf, tuple[str, ...]]:
    """Return the axes of the shard_map that a value is in, if nothing was propagated."""
    if "sdy.manual_computation" not in dumps.stated:
        return {}
    return {leaf: manual(value) for leaf, value in match(dumps.stated_module, before).items()}


def _typed(value: Value, mesh: Mesh) -> Value:
    """Return the origins that need no propagation: those in explicit types."""
    explicit = {axis.name for axis in mesh.axes if axis.type == "explicit"}
    origins = tuple(
        Origin(axis, "type" if axis.partition(":(")[0] in explicit else "unknown", steps=None)
        for axis in flat(value.spec)
    )
    return replace(value, origins=origins)


@dataclass
class _OriginFinder:
    """Finds for each value where its axes came from."""

    reasons: _Reasons
    lines: Lines
    mesh: Mesh
    named: list[Named]
    values: list[Value]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    chains: Chains = field(init=False)
    names: dict[shardy.Value, str] = field(init=False)

    def __post_init__(self) -> None:
        module = self.reasons.module
        self.chains = Chains(module)
        self.exact = {value: leaf for leaf, value in self.reasons.matched.items()}
        self.instructions = {i.name: i for i in self.lines.module.instructions()}
        self.names = {v.placed: self._input(i) for i, v in enumerate(module.inputs)}
        self.places: dict[int, tuple[str, Location | None]] = {}
        self.stops: dict[Node, int] = {}
        self.explicit = {axis.name for axis in self.mesh.axes if axis.type == "explicit"}
        for index, user_value in enumerate(self.named):
            value = self.reasons.matched.get(user_value.leaf)
            if value is not None:
                placed = value.placed
                self.names.setdefault(placed, user_value.name)
                for axis in flat(placed.spec):
                    self.stops.setdefault((placed, axis), index)

    def explained(self) -> Iterator[Value]:
        for index, (user_value, value) in enumerate(zip(self.named, self.values, strict=True)):
            matched = self.reasons.matched.get(user_value.leaf)
            if matched is None:
                yield _typed(value, self.mesh)
                continue
            yield self._with_origins(index, value, matched)

    def _with_origins(self, index: int, value: Value, matched: shardy.Value) -> Value:
        placed = matched.placed
        given = placed.spec or ((),) * len(value.shape)
        same = given == value.spec
        origins = [
            self._origin(index, (placed, axis), value.spec, given) for axis in flat(value.spec)
        ]
        return replace(
            value,
            manual=manual(matched),
            propagated=None if same else given,
            origins=tuple(origins),
            blocked=tuple(self._blocked(matched)) if same else (),
        )

    def _blocked(self, value: shardy.Value) -> Iterator[Blocked]:
        stops = blocked_axes(self.chains, value, self._name, self.mesh.shape)
        return (stop for stop in stops if stop.axis.partition(":(")[0] not in self.explicit)

    def _origin(self, index: int, node: Node, spec: Spec | None, given: Spec) -> Origin:
        axis = node[1]
        if axis.partition(":(")[0] in self.explicit:
            return Origin(axis, "type", steps=None)
        if _dim(spec, axis) != _dim(given, axis):
            return Origin(axis, "unknown", steps=None)
        root = self.chains.root(node)
        moves, start = self.chains.back(node, root, self.stops)
        after = self.stops.get(start) if moves and start[0] not in root.values else None
        known = start[0] in root.values or (
            after not in (None, index) and self.chains.root(start) == root
        )
        name, location = self._described(root)
        if not known:
            return Origin(axis, root.kind, name, location, None)
        return Origin(axis, root.kind, name, location, tuple(self._steps(moves, node)), after)

    def _steps(self, moves: list[Move], node: Node) -> Iterator[Step]:
        targets = [node, *(move.source for move in moves)]
        for move, target in reversed(list(zip(moves, targets, strict=False))):
            word, location = self._place(move.op) if move.op else ("result", None)
            yield Step(
                op=word,
                direction=move.direction,
                source=self._name(move.source[0]),
                target=self._name(target[0]),
                location=location,
                number=move.step,
            )

    def _input(self, number: int) -> str:
        return self.inputs[number] if number < len(self.inputs) else f"argument {number}"

    def _described(self, root: Root) -> tuple[str, Location | None]:
        """Name the origin of an axis: an input, a result, the spec of a constraint, a line."""
        if root.kind == "input":
            return self._input(root.number), None
        if root.kind == "output":
            known = root.number < len(self.outputs)
            return self.outputs[root.number] if known else f"result {root.number}", None
        if root.op is None:
            return "", None
        location = self._place(root.op)[1]
        if root.kind == "constraint":
            return spec_text(root.op.results[0].spec), location
        return "", location

    def _instruction(self, op: shardy.Op) -> Instruction | None:
        values = (*op.results, *(value.placed for value in op.results))
        values += tuple(value for arguments in op.arguments for value in arguments)
        leaves = (self.exact.get(value) for value in values)
        return next((self.instructions[leaf[0]] for leaf in leaves if leaf), None)

    def _place(self, op: shardy.Op) -> tuple[str, Location | None]:
        """Return the name of an op, and its line."""
        if id(op) not in self.places:
            found = self._instruction(op)
            word = op_word(found) if found else op.kind.partition(".")[2]
            if op.kind == "sdy.data_flow_edge":
                owner = op.operands[0].op or op
                word = _WORDS.get(owner.kind, owner.kind.partition(".")[2])
            self.places[id(op)] = word, self.lines.location(found) if found else None
        return self.places[id(op)]

    def _name(self, value: shardy.Value) -> str:
        """Name a value by its own name, or by its op and line."""
        placed = value.placed
        if placed in self.names:
            return self.names[placed]
        op = value.maker or placed.maker
        word, location = self._place(op) if op else ("an argument", None)
        return f"{word} at line {location.line}" if location else word


def _dim(spec: Spec | None, axis: str) -> int | None:
    """Return the dimension that an axis shards."""
    return next((dim for dim, axes in enumerate(spec or ()) if axis in axes), None)
