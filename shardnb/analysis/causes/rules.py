"""Shardy's own rules: for each operation, which dimensions of its arrays go together."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from operator import mul

from shardnb.compiler.hlo import Instruction

Factors = tuple[str, ...]
Shape = tuple[int, ...]

_RULE = re.compile(r"#sdy\.op_sharding_rule<\((.*?)\)->\((.*?)\)([^>]*)>")
_LIST = re.compile(r"\[([^\]]*)\]")
_FACTOR = re.compile(r"[a-z](?:_\d+)?")
_SIZE = re.compile(r"([a-z](?:_\d+)?)=(\d+)")
_KIND = re.compile(r"(\w+)=\{([^}]*)\}")
_OP = re.compile(
    r"\s*(?:%[\w:, %]+ = )?\"?(?:stablehlo|sdy|mhlo|chlo)\.([a-z_]+)\"?(.*)$", re.DOTALL
)
_TENSOR = re.compile(r"tensor<((?:\d+x)*)[^<>]*(?:<[^<>]*>)?>")
_DIGITS = re.compile(r"-?\d+")
_OPCODES = {"dot_general": "dot", "broadcast_in_dim": "broadcast"}


@dataclass(frozen=True)
class Rule:
    """The factors of each dimension of each operand and result.

    `reductions` are summed away, `whole` need every element (Shardy's need_replication),
    `exchanges` need elements of neighbours (Shardy's permutation).
    """

    operands: tuple[tuple[Factors, ...], ...]
    results: tuple[tuple[Factors, ...], ...]
    sizes: tuple[tuple[str, int], ...] = ()
    reductions: frozenset[str] = frozenset()
    whole: frozenset[str] = frozenset()
    exchanges: frozenset[str] = frozenset()

    def size(self, factor: str) -> int:
        """Give the number of elements along a factor."""
        return dict(self.sizes).get(factor, 1)


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


def _tensors(text: str) -> tuple[tuple[Factors, ...], ...]:
    return tuple(
        tuple(tuple(_FACTOR.findall(dim)) for dim in dims.split(",") if dim.strip())
        for dims in _LIST.findall(text)
    )


@dataclass(frozen=True)
class _Entry:
    """A rule as it was printed, with what tells its operation."""

    operands: tuple[Shape, ...] | None
    text: str
    rule: str


@dataclass
class Rules:
    """The rules of a module's operations, found by what the operation is, never by its name."""

    _entries: dict[tuple[str, tuple[Shape, ...]], list[_Entry]] = field(
        default_factory=lambda: defaultdict(list)
    )
    _parsed: dict[str, Rule | None] = field(default_factory=dict)

    def add(self, opcode: str, results: tuple[Shape, ...], entry: _Entry) -> None:
        """Note the rule of an operation with results of these shapes."""
        self._entries[opcode, results].append(entry)

    def of(self, instruction: Instruction, operands: tuple[Shape, ...]) -> Rule | None:
        """Give the rule of an HLO instruction with operands of these shapes.

        None where Shardy has none, `AMBIGUOUS` where several operations could be meant.
        """
        results = tuple(shape for _, shape in instruction.arrays)
        opcode = instruction.opcode
        entries = self._entries.get((opcode.replace("-", "_"), results), [])
        entries = [e for e in entries if e.operands is None or e.operands == operands]
        if len({entry.rule for entry in entries}) > 1:
            marks = _marks(instruction)
            entries = [e for e in entries if _has(e.text, marks)]
        texts = {entry.rule for entry in entries}
        if len(texts) == 1:
            return self._parse(texts.pop())
        return AMBIGUOUS if texts else _plain(instruction, operands, results)

    def _parse(self, text: str) -> Rule | None:
        if text not in self._parsed:
            self._parsed[text] = parse_rule(text)
        return self._parsed[text]


def read_rules(text: str) -> Rules:
    """Read the rules out of Shardy's module after propagation."""
    rules = Rules()
    for name, line in _operations(text):
        at = line.find("sdy.sharding_rule = ")
        if at < 0:
            continue
        end = line.find(">", line.find("->", at) + 2)
        types = line[line.rfind("} : ") + 3 :]
        operands, results = _types(types, name)
        opcode = _OPCODES.get(name, name)
        rules.add(opcode, results, _Entry(operands, line[:at], line[at : end + 1]))
    return rules


def _operations(text: str) -> Iterator[tuple[str, str]]:
    """Give the name and the text of each operation, that of one with a body without its body."""
    open_ops: list[tuple[str, str]] = []
    for line in text.splitlines():
        if line.lstrip().startswith("})") and open_ops:
            name, start = open_ops.pop()
            yield name, start + line
            continue
        match = _OP.match(line)
        if match is None:
            continue
        if line.endswith("({"):
            open_ops.append((match[1], line))
        elif "sharding_rule" in line:
            yield match[1], line


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


def _has(text: str, marks: Sequence[str]) -> bool:
    written = _numbers(text)
    return all(mark in written for mark in marks)


@lru_cache(1 << 12)
def _numbers(text: str) -> str:
    """Write the attributes of an operation so that two notations can be compared."""
    text = re.sub(r"\s", "", text)
    if "stablehlo.dot" in text:
        text += "" if "contracting_dims=" in text else "contracting_dims=[1]x[0]"
        text += "" if "batching_dims=" in text else "batching_dims=[]x[]"
    return text


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


def _assigned(shape: Shape, named: tuple[tuple[str, int], ...]) -> tuple[Factors, ...]:
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
