"""The text of a Shardy module as data: ops, values, and what Shardy noted on them.

One pass over the lines. What an op's attributes say is read only when it is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from shardnb.report.model import Spec

_OP = re.compile(r"\s*(%[^=]*?) = \"?([a-z_]+\.[\w.]+)\"?(.*)$")
_RETURN = re.compile(r"\s*(?:stablehlo\.|sdy\.|func\.|mhlo\.)?return\b([^:]*)")
_DEFINED = re.compile(r"%(\w+)(?::(\d+))?")
_USED = re.compile(r"%(\w+(?:#\d+)?)")
_BLOCK_ARGUMENT = re.compile(r"%(\w+): (tensor<[^,)]*>)")
_CARRIED = re.compile(r"%(\w+) = %(\w+(?:#\d+)?)")
_TENSOR = re.compile(r"tensor<((?:\d+x)*)(complex<\w+>|[\w.]+)(?:, [^>]*)?>|!stablehlo\.token")
_SHARDING = re.compile(r"<@\w+, \[((?:\{[^}]*\}(?:, )?)*)\]")
_DIM = re.compile(r"\{([^}]*)\}")
_AXIS = re.compile(r'"([^"]+)"(:\(\d+\)\d+)?')
_ORIGIN = re.compile(r'"?([^\s",{}]+)"? = "([^"]*)"')
_EDGE = re.compile(r'step-(\d+)|"([^"]+)"(:\(\d+\)\d+)? = (operand|result)-(\d+) -> \[([^\]]*)\]')
_END = re.compile(r"(operand|result)-(\d+)")
_RULE = re.compile(r"op_sharding_rule<\((.*?)\)->\((.*?)\) ?(?:\{([^}]*)\})?([^>]*)>")
_FACTOR = re.compile(r"[a-z](?:_\d+)?")
_FACTOR_DIMS = re.compile(r"\[([^\]]*)\]")
_MAIN = re.compile(r"func\.func (?:public )?@main\(.*?\) -> (.*) \{$", re.MULTILINE)
_MAIN_RETURN = re.compile(r"^    return (.*?) : ", re.MULTILINE)
_CONSTRAINT = re.compile(
    r"^    (%\w+) = sdy\.sharding_constraint %\S+ <@\w+, (\[.*?\])>", re.MULTILINE
)
_ROLE = re.compile(r"(\w+)=\{([^}]*)\}")
_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*"')
_DTYPES = {"i1": "pred", "complex<f32>": "c64", "complex<f64>": "c128"}


@dataclass(eq=False)
class Value:
    """An SSA value.

    `spec` is None where it has no sharding; `closed` says which dims may not be split further;
    `origins` gives by axis what put it there, in Shardy's words.
    """

    dtype: str = ""
    shape: tuple[int, ...] = ()
    spec: Spec | None = None
    closed: tuple[bool, ...] = ()
    origins: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Edge:
    """One step of propagation: an axis travelled along an op, between operands and results.

    Ends are ("operand" or "result", number).
    """

    step: int
    axis: str
    source: tuple[str, int]
    targets: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Rule:
    """Shardy's rule of an op: the factors of each dimension of its operands and results."""

    operands: tuple[tuple[tuple[str, ...], ...], ...]
    results: tuple[tuple[tuple[str, ...], ...], ...]
    sizes: dict[str, int]
    roles: dict[str, frozenset[str]]

    def has_role(self, factor: str, role: str) -> bool:
        """Whether a factor is, say, a `reduction` or a `need_replication` factor."""
        return factor in self.roles.get(role, ())


@dataclass(eq=False)
class Op:
    """An operation: its operands and results by the number of their value.

    `arguments` and `returned` are values too, for each region of its own.
    """

    kind: str
    operands: tuple[int, ...]
    results: tuple[int, ...]
    text: str
    parent: Op | None = None
    arguments: list[tuple[int, ...]] = field(default_factory=list)
    returned: list[tuple[int, ...]] = field(default_factory=list)

    @cached_property
    def rule(self) -> Rule | None:
        """Shardy's rule, where it has one."""
        match = _RULE.search(self.text)
        return _rule(match) if match else None

    @cached_property
    def edges(self) -> tuple[Edge, ...]:
        """The steps that Shardy noted at this op."""
        return edges(self.text)

    @property
    def origin_name(self) -> str:
        """The name by which origins speak of this op, such as `constraint_0`."""
        match = re.search(r'sdy\.sharding_origin_name = "([^"]*)"', self.text)
        return match[1] if match else ""


@dataclass(eq=False)
class Output:
    """A result of the program: the value that is returned, and the placement of the result."""

    value: int
    spec: Spec | None
    origins: dict[str, str]
    edges: tuple[Edge, ...]
    closed: tuple[bool, ...] = ()


@dataclass
class Module:
    """A module: the ops of its main function in the order of the text, and their values.

    `same` leads from a value to the one whose placement it shares: what Shardy calls a data-flow
    edge, and the carry of a loop inside its body.
    """

    ops: list[Op] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    outputs: list[Output] = field(default_factory=list)
    same: dict[int, int] = field(default_factory=dict)

    def placed(self, value: int) -> int:
        """Give the value that holds the placement of a value."""
        while value in self.same:
            value = self.same[value]
        return value


def read(text: str) -> Module:
    """Read the main function of a Shardy module."""
    return _Reader().read(text)


def output_specs(text: str) -> tuple[Spec | None, ...]:
    """Give the spec of each result of the main function, and read nothing else of a module."""
    lines = text.splitlines()
    head = next((s for s in lines if s.startswith("  func.func") and " @main(" in s), "")
    return tuple(_sharding(part)[0] for part in _results(head.partition(") -> ")[2]))


def _results(text: str) -> list[str]:
    return re.split(r"(?=tensor<)", text)[1:]


class _Reader:
    def __init__(self) -> None:
        self.module = Module()
        self.names: dict[str, int] = {}
        self.open: list[Op] = []
        self.last: Op | None = None

    def read(self, text: str) -> Module:
        inside = False
        for line in text.splitlines():
            if line.startswith("  func.func"):
                inside = " @main(" in line
                if inside:
                    self._header(line)
            elif inside:
                self._line(line)
        return self.module

    def _new(self, name: str, value: Value | None = None) -> int:
        self.module.values.append(value or Value())
        self.names[name] = len(self.module.values) - 1
        return self.names[name]

    def _used(self, text: str) -> tuple[int, ...]:
        if '"' in text:
            text = _STRINGS.sub("", text)
        return tuple(self.names[name] for name in _USED.findall(text) if name in self.names)

    def _header(self, line: str) -> None:
        arguments, _, results = line.partition(") -> ")
        for part in re.split(r"(?=%arg\d+: )", arguments)[1:]:
            name, _, rest = part[1:].partition(": ")
            value = _typed(rest)
            value.spec, value.closed = _sharding(rest)
            value.origins = _origins(rest, 1)[0]
            self.module.inputs.append(self._new(name, value))
        self.results = _results(results)

    def _line(self, line: str) -> None:
        stripped = line.lstrip()
        if stripped.startswith("%"):
            self._op(line)
        elif stripped.startswith("}"):
            self._closing(stripped)
        elif stripped.startswith("^"):
            self._arguments(stripped)
        elif returned := _RETURN.match(line):
            self._returned(returned[1])
        elif stripped.endswith("{") and self.last is not None:
            self._open(self.last)
            self._arguments(stripped)

    def _op(self, line: str) -> None:
        match = _OP.match(line)
        if match is None:
            return
        defined, kind, rest = match.groups()
        head = _operands(rest)
        op = Op(kind, self._used(head), (), line, self.open[-1] if self.open else None)
        op.results = tuple(self._define(defined))
        self.module.ops.append(op)
        self.last = op
        if kind == "sdy.data_flow_edge":
            self._same(op)
        elif kind == "stablehlo.while":
            op.operands = tuple(self.names[name] for _, name in _CARRIED.findall(head))
            self._carry(op, head)
        if line.endswith("{"):
            self._open(op)
            self._arguments(line)
        else:
            self._finish(op)

    def _define(self, text: str) -> Iterator[int]:
        for name, count in _DEFINED.findall(text):
            if not count:
                yield self._new(name)
            for number in range(int(count or 0)):
                yield self._new(f"{name}#{number}")

    def _carry(self, op: Op, head: str) -> None:
        """The carry of a loop has one placement: outside, in the condition, and in the body."""
        names = [name for name, _ in _CARRIED.findall(head)]
        carried = tuple(self._new(name) for name in names)
        self.module.same.update(zip(carried, op.results, strict=False))
        op.arguments = [carried, carried]

    def _same(self, op: Op) -> None:
        self.module.same.update(zip(op.results, op.operands, strict=False))
        value = self.module.values[self.module.placed(op.operands[0])]
        value.spec, value.closed = _sharding(op.text)
        value.origins = _origins(op.text, 1)[0]

    def _open(self, op: Op) -> None:
        if not self.open or self.open[-1] is not op:
            self.open.append(op)
        if op.kind != "stablehlo.while":
            op.arguments.append(())
        op.returned.append(())

    def _arguments(self, line: str) -> None:
        found = _BLOCK_ARGUMENT.findall(line)
        if found and self.open and self.open[-1].kind != "stablehlo.while":
            values = tuple(self._new(name, _typed(kind)) for name, kind in found)
            self.open[-1].arguments[-1] = values

    def _returned(self, text: str) -> None:
        values = self._used(text)
        if self.open:
            self.open[-1].returned[-1] = values
        else:
            self.module.outputs = [
                _output(value, kind) for value, kind in zip(values, self.results, strict=True)
            ]

    def _closing(self, line: str) -> None:
        if not self.open:
            return
        op = self.open[-1]
        if line.endswith("{"):
            self._open(op)
            self._arguments(line)
            return
        self.open.pop()
        self.last = op
        if op.kind != "stablehlo.while":
            op.text += line
            self._finish(op)

    def _finish(self, op: Op) -> None:
        """Read the types and placements of the results; those of an op with regions stand last."""
        start = op.text.rfind(" : ")
        types = list(_TENSOR.finditer(op.text, start))[-len(op.results) :]
        for number, match in zip(op.results, types, strict=False):
            value = self.module.values[number]
            value.dtype, value.shape = _type(match)
        if op.kind == "sdy.data_flow_edge":
            return
        at = op.text.find("#sdy.sharding_per_value<")
        shardings = list(_SHARDING.finditer(op.text, at)) if at >= 0 else []
        if op.kind in ("sdy.sharding_constraint", "sdy.reshard"):
            shardings = list(_SHARDING.finditer(op.text))
        origins = _origins(op.text, len(op.results))
        for number, match in zip(op.results, shardings, strict=False):
            value = self.module.values[number]
            value.spec, value.closed = _dims(match[1])
        for number, found in zip(op.results, origins, strict=False):
            self.module.values[number].origins = found


def _operands(rest: str) -> str:
    """Cut what follows an op's name to the part in which its operands stand."""
    marks = (" : ", " {", "<{", "({", " in_shardings")
    return rest[: min((at for mark in marks if (at := rest.find(mark)) > 0), default=len(rest))]


def _typed(text: str) -> Value:
    match = _TENSOR.search(text)
    return Value(*_type(match)) if match else Value()


def _type(match: re.Match[str]) -> tuple[str, tuple[int, ...]]:
    if match[2] is None:
        return "token", ()
    name = match[2].lower()
    dtype = _DTYPES.get(name, f"s{name[1:]}" if name[0] == "i" else name.replace("ui", "u", 1))
    return dtype, tuple(int(size) for size in match[1].split("x") if size)


def _sharding(text: str) -> tuple[Spec | None, tuple[bool, ...]]:
    match = _SHARDING.search(text)
    return _dims(match[1]) if match else (None, ())


def _dims(text: str) -> tuple[Spec, tuple[bool, ...]]:
    dims = _DIM.findall(text)
    spec = tuple(tuple(name + part for name, part in _AXIS.findall(dim)) for dim in dims)
    return spec, tuple("?" not in dim for dim in dims)


def result_specs(text: str) -> tuple[Spec | None, ...]:
    """Give what a module states for each result of its main function, None where nothing.

    A result is stated on itself, or by a constraint on the value that is returned.
    """
    head, returned = _MAIN.search(text), _MAIN_RETURN.search(text)
    if head is None or returned is None:
        return ()
    constraints = dict(_CONSTRAINT.findall(text))
    parts = head[1].split("tensor<")[1:]
    names = returned[1].split(", ")
    own = (_SHARDING.search(part) for part in parts)
    stated = (
        match[1] if match else constraints.get(name) for match, name in zip(own, names, strict=True)
    )
    return tuple(_dims(dims)[0] if dims else None for dims in stated)


def _origins(text: str, count: int) -> list[dict[str, str]]:
    at = text.find("sdy.sharding_origins = ")
    if at < 0:
        return [{} for _ in range(count)]
    dims = list(_DIM.finditer(text, at))[:count]
    return [dict(_ORIGIN.findall(match[0])) for match in dims]


def _output(value: int, text: str) -> Output:
    spec, closed = _sharding(text)
    return Output(value, spec, _origins(text, 1)[0], edges(text), closed)


def edges(text: str) -> tuple[Edge, ...]:
    """Read the propagation edges in an op's or a result's attributes.

    >>> edges('<[{step-1 = [{"data" = result-0 -> [operand-0, operand-1]}]}]>')
    (Edge(step=1, axis='data', source=('result', 0), targets=(('operand', 0), ('operand', 1))),)
    """
    if "step-" not in text:
        return ()
    found, step = [], 0
    for number, axis, part, kind, index, targets in _EDGE.findall(text):
        if number:
            step = int(number)
            continue
        ends = tuple((end, int(at)) for end, at in _END.findall(targets))
        found.append(Edge(step, axis + part, (kind, int(index)), ends))
    return tuple(found)


def _rule(match: re.Match[str]) -> Rule:
    operands, results, sizes, roles = match.groups()
    return Rule(
        _factors(operands),
        _factors(results),
        {name: int(size) for name, size in re.findall(r"(\w+)=(\d+)", sizes or "")},
        {role: frozenset(_FACTOR.findall(names)) for role, names in _ROLE.findall(roles)},
    )


def _factors(text: str) -> tuple[tuple[tuple[str, ...], ...], ...]:
    return tuple(
        tuple(tuple(_FACTOR.findall(dim)) for dim in dims.split(",") if dim.strip())
        for dims in _FACTOR_DIMS.findall(text)
    )
