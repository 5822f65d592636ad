"""Shardy's own rules: for each operation, which dimensions of its arrays go together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import accumulate
from operator import mul

from shardnb.texts.hlo import Instruction

Factors = tuple[str, ...]
Shape = tuple[int, ...]
Dims = tuple[Factors, ...]
Ties = tuple[tuple[tuple[tuple[int, int], ...], ...], ...]
"""For each dimension of each array the dimensions of others: the array's number, its dimension."""

_RULE = re.compile(r"#sdy\.op_sharding_rule<\((.*?)\)->\((.*?)\)([^>]*)>")
_LIST = re.compile(r"\[([^\]]*)\]")
_FACTOR = re.compile(r"[a-z](?:_\d+)?")
_SIZE = re.compile(r"([a-z](?:_\d+)?)=(\d+)")
_KIND = re.compile(r"(\w+)=\{([^}]*)\}")
_OP = re.compile(
    r"\s*(?:%[\w:, %]+ = )?\"?(?:stablehlo|sdy|mhlo|chlo)\.([a-z_]+)\"?(.*)$", re.DOTALL
)
_TENSOR = re.compile(r"tensor<((?:\d+x)*)[^<>]*(?:<[^<>]*>)?>")
_VALUES_AND_SPACES = re.compile(r"%[\w#:]+|\s")
_DIGITS = re.compile(r"-?\d+")
_OPCODES = {"dot_general": "dot", "broadcast_in_dim": "broadcast"}


@dataclass(frozen=True)
class Rule:
    """The factors of each dimension of each operand and result.

    `reductions` are summed away, `whole` need every element (Shardy's need_replication),
    `exchanges` need elements of neighbours (Shardy's permutation).
    """

    operands: tuple[Dims, ...]
    results: tuple[Dims, ...]
    sizes: tuple[tuple[str, int], ...] = ()
    reductions: frozenset[str] = frozenset()
    whole: frozenset[str] = frozenset()
    exchanges: frozenset[str] = frozenset()

    def size(self, factor: str) -> int:
        """Give the number of elements along a factor."""
        return dict(self.sizes).get(factor, 1)

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


AMBIGUOUS = Rule((), ())
"""Stands for the rule of what cannot be told apart."""


def parse_rule(text: str) -> Rule | None:
    """Read a rule as Shardy prints it.

    >>> rule = parse_rule("#sdy.op_sharding_rule<([i, k], [k])->([i]) {i=8, k=4} reduction={k}>")
    >>> rule.operands, rule.results
    (((('i',), ('k',)), (('k',),)), ((('i',),),))
    >>> sorted(rule.reductions)
    ['k']
    """
    match = _RULE.search(text)
    if match is None:
        return None
    kinds = {name: frozenset(_FACTOR.findall(names)) for name, names in _KIND.findall(match[3])}
    none: frozenset[str] = frozenset()
    return Rule(
        _tensors(match[1]),
        _tensors(match[2]),
        tuple((name, int(size)) for name, size in _SIZE.findall(match[3])),
        kinds.get("reduction", none),
        kinds.get("need_replication", none),
        kinds.get("permutation", none),
    )


def _tensors(text: str) -> tuple[Dims, ...]:
    return tuple(
        tuple(tuple(_FACTOR.findall(dim)) for dim in dims.split(",") if dim.strip())
        for dims in _LIST.findall(text)
    )


_Kind = tuple[str, tuple[Shape, ...], tuple[Shape, ...] | None]
"""What an operation is, the shapes of its results, and those of its operands where they stand."""


@dataclass
class Rules:
    """The rules of a module's operations, found by what the operation is, never by its name."""

    _printed: dict[_Kind, dict[str, list[str]]] = field(default_factory=dict)
    _alike: dict[_Kind, dict[str, list[str]]] = field(default_factory=dict)
    _parsed: dict[str, Rule | None] = field(default_factory=dict)

    def add(self, kind: _Kind, rule: str, operation: str) -> None:
        """Note the rule of an operation, both as they were printed."""
        self._printed.setdefault(kind, {}).setdefault(rule, []).append(operation)

    def of(self, instruction: Instruction, operands: tuple[Shape, ...]) -> Rule | None:
        """Give the rule of an HLO instruction with operands of these shapes.

        None where Shardy has none, `AMBIGUOUS` where several operations could be meant.
        """
        results = tuple(shape for _, shape in instruction.arrays)
        found = self._of_kind(instruction.opcode.replace("-", "_"), results, operands)
        rules = list(found)
        if len(rules) > 1:
            marks = _marks(instruction)
            rules = [rule for rule in rules if any(_has(text, marks) for text in found[rule])]
        if len(rules) > 1:
            return AMBIGUOUS
        return self._parse(rules[0]) if rules else _plain(instruction, operands, results)

    def _of_kind(
        self, opcode: str, results: tuple[Shape, ...], operands: tuple[Shape, ...]
    ) -> dict[str, list[str]]:
        """Give the rules of operations of these shapes; where they are several, by attributes."""
        kind = opcode, results, operands
        if kind not in self._alike:
            found = dict(self._printed.get(kind, {}))
            for rule, operations in self._printed.get((opcode, results, None), {}).items():
                found[rule] = found.get(rule, []) + operations
            if len(found) > 1:
                found = {rule: list({*map(_attributes, found[rule])}) for rule in found}
            self._alike[kind] = found
        return self._alike[kind]

    def _parse(self, text: str) -> Rule | None:
        if text not in self._parsed:
            self._parsed[text] = parse_rule(text)
        return self._parsed[text]


def read_rules(text: str) -> Rules:
    """Read the rules out of Shardy's module after propagation."""
    rules = Rules()
    for line in _operations(text):
        at = line.find("sdy.sharding_rule = ")
        match = _OP.match(line) if at >= 0 else None
        if match is None:
            continue
        name = match[1]
        end = line.find(">", line.find("->", at) + 2)
        operands, results = _types(line[line.rfind("} : ") + 3 :], name)
        kind = _OPCODES.get(name, name), results, operands
        rules.add(kind, line[at : end + 1], line[:at])
    return rules


def _operations(text: str) -> Iterator[str]:
    """Give the text of each operation that has a rule, that of one with a body without its body."""
    open_ops: list[str] = []
    for line in text.splitlines():
        if line.endswith("({"):
            open_ops.append(line)
        elif open_ops and line.lstrip().startswith("})"):
            yield open_ops.pop() + line
        elif "sharding_rule" in line:
            yield line


@lru_cache(1 << 12)
def _types(text: str, name: str) -> tuple[tuple[Shape, ...] | None, tuple[Shape, ...]]:
    before, arrow, after = text.partition("->")
    if arrow:
        return _shapes(before), _shapes(after)
    shapes = _shapes(before)
    return None, shapes[-1:] if name == "select" else shapes[:1]


def _shapes(text: str) -> tuple[Shape, ...]:
    return tuple(
        tuple(int(size) for size in dims.split("x") if size) for dims in _TENSOR.findall(text)
    )


def _attributes(text: str) -> str:
    """Write the attributes of an operation so that two notations can be compared."""
    text = _VALUES_AND_SPACES.sub("", text)
    if "stablehlo.dot" in text:
        text += "" if "contracting_dims=" in text else "contracting_dims=[1]x[0]"
        text += "" if "batching_dims=" in text else "batching_dims=[]x[]"
    return text


def _has(attributes: str, marks: Sequence[str]) -> bool:
    return all(mark in attributes for mark in marks)


def _marks(instruction: Instruction) -> list[str]:
    """Say in Shardy's notation what tells operations of one kind and shape apart."""
    opcode = instruction.opcode
    if opcode == "dot":
        return [
            f"contracting_dims={_pair(instruction, 'contracting')}",
            f"batching_dims={_pair(instruction, 'batch')}",
        ]
    if opcode == "slice":
        return [re.sub(r"[\s{}]", "", instruction.attribute("slice") or "").replace("],[", ",")]
    mark = _DIMENSIONS.get(opcode)
    return [mark.format(_listed(instruction, "dimensions"))] if mark else []


_DIMENSIONS = {
    "transpose": "dims=[{}]",
    "broadcast": "dims=[{}]",
    "reverse": "dims=[{}]",
    "reduce": "dimensions=[{}]",
    "concatenate": "dim={}",
    "sort": "dimension={}",
}


def _pair(instruction: Instruction, kind: str) -> str:
    left, right = (_listed(instruction, f"{side}_{kind}_dims") for side in ("lhs", "rhs"))
    return f"[{left}]x[{right}]"


def _listed(instruction: Instruction, name: str) -> str:
    return ",".join(_DIGITS.findall(instruction.attribute(name) or ""))


_ELEMENTWISE = (
    "abs add and atan2 bitcast-convert cbrt ceil clamp compare complex convert copy "
    "cosine divide erf exponential exponential-minus-one floor imag is-finite log log- "
    "plus-one logistic maximum minimum multiply negate not or popcnt power real reduce- "
    "precision remainder round-nearest-afz round-nearest-even rsqrt select shift-left "
    "shift-right-arithmetic shift-right-logical sign sine sqrt subtract tan tanh xor "
)
ELEMENTWISE = frozenset(_ELEMENTWISE.split())
"""The operations that work element by element."""


def _plain(
    instruction: Instruction, operands: tuple[Shape, ...], results: tuple[Shape, ...]
) -> Rule | None:
    """Give the rule of what has but one: element by element, transpose, broadcast, reshape."""
    opcode = instruction.opcode
    if len(results) != 1:
        return None
    result = results[0]
    names = tuple((f"i_{dim}",) for dim in range(len(result)))
    sizes = tuple((f"i_{dim}", size) for dim, size in enumerate(result))
    if opcode in ELEMENTWISE and all(shape in (result, ()) for shape in operands):
        return Rule(tuple(names if shape else () for shape in operands), (names,), sizes)
    if opcode in ("transpose", "broadcast") and len(operands) == 1:
        dims = [int(d) for d in _DIGITS.findall(instruction.attribute("dimensions") or "")]
        if opcode == "transpose":
            return Rule((tuple(names[dims.index(d)] for d in range(len(dims))),), (names,), sizes)
        return Rule((tuple(names[dim] for dim in dims),), (names,), sizes)
    if opcode == "reshape" and len(operands) == 1:
        return _reshape(operands[0], result)
    return None


def _reshape(source: Shape, result: Shape) -> Rule | None:
    """Cut into factors what a reshape joins or splits; None where sizes do not cut each other."""
    ends = sorted({*accumulate(source, mul), *accumulate(result, mul)})
    sizes: list[int] = []
    before = 1
    for end in ends:
        if before == 0 or end % before:
            return None
        sizes += [end // before] if end > before else []
        before = end
    named = tuple((f"i_{number}", size) for number, size in enumerate(sizes))
    return Rule((_assigned(source, named),), (_assigned(result, named),), named)


def _assigned(shape: Shape, named: tuple[tuple[str, int], ...]) -> Dims:
    """Give each dimension the factors that it is made of."""
    left = iter(named)
    dims: list[Factors] = []
    for size in shape:
        mine: list[str] = []
        product = 1
        while product < size:
            name, factor = next(left)
            mine.append(name)
            product *= factor
        dims.append(tuple(mine))
    return tuple(dims)
