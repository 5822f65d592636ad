"""What a placement sends, holds and computes by Shardy's own passes, without a compile.

Shardy propagates the placement, puts in the reshards that its ops then need, and turns them into
collectives, in a few milliseconds. The compiler's partitioner may decide otherwise: an estimate
orders the plans that are then compiled, and is never shown.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from shardnb.bugs import Inconclusive
from shardnb.collectives.wire_bytes import wire_bytes
from shardnb.compiler import Program
from shardnb.compiler.shardy_passes import attribute, prepared
from shardnb.jax_compat import private
from shardnb.report.cost import Work
from shardnb.report.model import Collective, Groups, Spec
from shardnb.terms.collectives import KINDS, Kind, kind_of

_PROPAGATE = "sdy-import-pipeline,sdy-apply-sharding-constraints,sdy-user-priority-propagate"
_PIPELINE = (
    _PROPAGATE + ",sdy-close-shardings,"
    "func.func(sdy-insert-explicit-reshards{enable-full-version=true}),"
    "func.func(sdy-reshard-to-collectives),cse"
)
_MESH = re.compile(r"sdy\.mesh (@\w+) =")
_COLLECTIVE = re.compile(r"(\s*)%\S+ = sdy\.(\w+) (.*?)%\S+ out_sharding=<@\w+, (.*?)>.* : (.*)$")
_QUOTED = re.compile(r'"([^"]+)"(?::\(\d+\)(\d+))?')
_DIM = re.compile(r"\{([^}]*)\}")
_TENSOR = re.compile(r"tensor<((?:\d+x)*)(complex<\w+>|\w+)[,>]")
_SHARDING = re.compile(r"#sdy\.sharding<@\w+, \[((?:\{[^}]*\}(?:, )?)*)\]")
_PER_VALUE = re.compile(r"<@\w+, \[((?:\{[^}]*\}(?:, )?)*)\]")
_DOT = re.compile(r"\s*(%\S+) = stablehlo\.dot(?:_general)? (%\S+), (%\S+), ")
_SUMMED = re.compile(r" contracting_dims = \[([\d, ]*)\] x \[([\d, ]*)\]")
_ARGUMENT = re.compile(
    r"(%arg\d+): tensor<[^{]*\{[^@]*sdy\.sharding = #sdy\.sharding<@\w+, "
    r"\[((?:\{[^}]*\}(?:, )?)*)\]"
)
_DEFINED = re.compile(r"\s*(%\w+)(?::\d+)? = ")
_WHILE = re.compile(r"(\s*)%\S+ = stablehlo\.while\(")
_LESS = re.compile(r"stablehlo\.compare\s+LT, %\w+, (%\w+)")
_NUMBER = re.compile(r"\s*(%\w+) = (?:stablehlo|sdy)\.constant dense<(\d+)> : tensor<i(?:32|64)>")
_MAIN = re.compile(r"func\.func (?:public )?@main\((.*)\) -> (.*) \{$", re.MULTILINE)


@dataclass(frozen=True)
class Estimate:
    """What a placement is reckoned to hold of inputs and results, send, and compute a device."""

    held: int
    wire_bytes: int
    flops: float
    collectives: tuple[Collective, ...] = ()

    @property
    def work(self) -> Work:
        """The work, as a report has it."""
        return Work(self.flops, 0.0)


class Estimator:
    """Estimates placements of one program's arguments; `number` says which input an array is."""

    def __init__(self, program: Program) -> None:
        """Take the module that XLA handed to Shardy; raises `ValueError` where there is none."""
        stated = program.dumps.stated
        mesh = _MESH.search(stated or "")
        if not stated or mesh is None:
            raise ValueError("the compiler gave no module of Shardy's for this program")
        self._mesh = mesh[1]
        self.sizes = dict(program.mesh.shape)
        text = prepared(stated, program.dumps.propagated or "")
        self.lines = text.count("\n") + 1
        self._passes = private.Passes(text, _PIPELINE)
        self._propagation = private.Passes(text, _PROPAGATE)
        lifted = len(program.closed_over)
        kept = private.kept_arguments(program.lowered)
        self._inputs = {n - lifted: at for at, n in enumerate(kept) if n >= lifted}
        self.names_axes = any(f'"{axis}"' in _beyond_inputs(stated) for axis in self.sizes)

    def of(self, specs: Mapping[int, Spec]) -> Estimate:
        """Estimate specs by the number of an array; `Inconclusive` where Shardy refuses them."""
        given = {
            self._inputs[number]: attribute(self._mesh, spec)
            for number, spec in specs.items()
            if number in self._inputs
        }
        return _Text(_run(self._passes, given), self.sizes).estimate()

    def carried(self, specs: Mapping[int, Spec], free: Collection[int]) -> dict[int, Spec]:
        """Let Shardy split the arrays `free` further, as the program carries what is split.

        Gives the specs of the inputs by number; `Inconclusive` where Shardy refuses them.
        """
        given = {
            self._inputs[number]: _opened(attribute(self._mesh, spec), number in free)
            for number, spec in specs.items()
            if number in self._inputs
        }
        main = _MAIN.search(_run(self._propagation, given))
        arguments = re.split(r"(?=%arg\d+: )", main[1])[1:] if main else []
        placed = [_SHARDING.search(text) for text in arguments]
        return {
            number: _spec(placed[at][1])  # type: ignore[index]
            for number, at in self._inputs.items()
            if at < len(placed) and placed[at] is not None
        }


def _run(passes: private.Passes, given: Mapping[int, str]) -> str:
    try:
        return passes.run(given)
    except ValueError as refusal:
        raise Inconclusive(str(refusal)) from refusal


def _opened(sharding: str, free: bool) -> str:  # noqa: FBT001
    """Let every dimension of a sharding be split further."""
    return (
        re.sub(r"\{([^}]*)\}", lambda m: f"{{{m[1] + ', ' if m[1] else ''}?}}", sharding)
        if free
        else sharding
    )


def _spec(dims: str) -> Spec:
    return tuple(tuple(axis for axis, _ in _QUOTED.findall(dim)) for dim in _DIM.findall(dims))


def _beyond_inputs(stated: str) -> str:
    """Give a module without its mesh and its arguments."""
    return stated.partition(") -> ")[2]


@dataclass(frozen=True)
class _Text:
    """A module with Shardy's collectives in it, as text."""

    text: str
    sizes: Mapping[str, int]

    def estimate(self) -> Estimate:
        found = tuple(replace(c, id=number) for number, c in enumerate(self._collectives()))
        sent = sum(c.total_wire_bytes or 0 for c in found)
        return Estimate(self._held(), sent, sum(self._products()), found)

    def _held(self) -> int:
        main = _MAIN.search(self.text)
        if main is None:
            return 0
        parts = re.split(r"(?=tensor<)", f"{main[1]} -> {main[2]}")
        return sum(self._size(part) for part in parts if part.startswith("tensor<"))

    def _size(self, part: str) -> int:
        """Give the bytes on one device of a type with its sharding."""
        match, sharding = _TENSOR.match(part), _SHARDING.search(part)
        if match is None:
            return 0
        return self._bytes(match) // self._parts(sharding[1] if sharding else "")

    @staticmethod
    def _bytes(match: re.Match[str]) -> int:
        return math.prod(_shape(match)) * _width(match[2])

    def _parts(self, text: str) -> int:
        return math.prod(
            int(part) if part else self.sizes.get(axis, 1) for axis, part in _QUOTED.findall(text)
        )

    @cached_property
    def _loops(self) -> list[tuple[int, int, int]]:
        """The loops: first and last line, and how often each runs, 1 where that is not seen."""
        constants, open_loops, found = {}, [], []
        for number, line in enumerate(self.text.splitlines()):
            if match := _NUMBER.match(line):
                constants[match[1]] = int(match[2])
            elif match := _WHILE.match(line):
                open_loops.append([len(match[1]), number, 1])
            elif open_loops:
                indent, first, trips = open_loops[-1]
                less = _LESS.search(line) if trips == 1 else None
                if less:
                    open_loops[-1][2] = constants.get(less[1], 1)
                if line.startswith(f"{' ' * indent}}}") and not line.endswith("{"):
                    found.append((first, number, trips))
                    open_loops.pop()
        return found

    def _trips(self, number: int) -> int:
        return math.prod(trips for first, last, trips in self._loops if first < number < last)

    def _collectives(self) -> Iterator[Collective]:
        for number, line in enumerate(self.text.splitlines()):
            if "sdy." not in line or (match := _COLLECTIVE.match(line)) is None:
                continue
            kind = kind_of(match[2].replace("_", "-"))
            if kind is not None:
                yield self._collective(kind, match, self._trips(number))

    def _collective(self, kind: Kind, match: re.Match[str], trips: int) -> Collective:
        result = list(_TENSOR.finditer(match[5]))[-1]
        size = self._bytes(result) // self._parts(match[4])
        axes = tuple(dict.fromkeys(axis for axis, _ in _QUOTED.findall(match[3])))
        groups = _groups(self.sizes, axes)
        if KINDS[kind].in_pairs:
            groups = tuple((a, b) for g in groups for a, b in zip(g, g[1:] + g[:1], strict=True))
        sent = wire_bytes(kind, size, self._parts(match[3]))
        return Collective(0, kind, axes or None, groups, "u8", (size,), sent, trips)

    def _products(self) -> Iterator[float]:
        """Give the operations of each matrix product on one device."""
        shardings = dict(_ARGUMENT.findall(self.text))
        for number, line in enumerate(self.text.splitlines()):
            name = _DEFINED.match(line)
            placed = _PER_VALUE.search(line, line.find("sdy.sharding"))
            if name and placed and "sdy.sharding" in line:
                shardings[name[1]] = placed[1]
            product = _DOT.match(line)
            if product:
                yield self._product(line, product, shardings) * self._trips(number)

    def _product(self, line: str, match: re.Match[str], shardings: Mapping[str, str]) -> float:
        left, _, result = list(_TENSOR.finditer(line, line.rfind(" : (")))[-3:]
        summed = _SUMMED.search(line)
        dims = [_numbers(text) for text in summed.groups()] if summed else [[-1], [0]]
        placed = [_DIM.findall(shardings.get(name, "")) for name in match.groups()[1:]]
        # The two operands are split alike where both placements are known.
        cut = max(
            math.prod(self._parts(spec[dim]) for dim in of) if spec else 1
            for spec, of in zip(placed, dims, strict=True)
        )
        whole = math.prod(_shape(result)) * math.prod(_shape(left)[dim] for dim in dims[0])
        return 2.0 * whole / (cut * self._parts(shardings.get(match[1], "")))


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",") if part.strip()]


def _shape(tensor: re.Match[str]) -> list[int]:
    return [int(size) for size in tensor[1].split("x") if size]


def _groups(sizes: Mapping[str, int], axes: Sequence[str]) -> Groups:
    """Give the positions that exchange over some axes of a mesh."""
    places = np.arange(math.prod(sizes.values())).reshape(list(sizes.values()))
    order = [at for at, axis in enumerate(sizes) if axis not in axes]
    order += [at for at, axis in enumerate(sizes) if axis in axes]
    group = math.prod(sizes[axis] for axis in axes)
    rows = places.transpose(order).reshape(-1, group).tolist()
    return tuple(tuple(row) for row in rows)


def _width(name: str) -> int:
    short = name.lower()
    if short.startswith("complex"):
        return 2 * _width(short[8:-1])
    bits = re.search(r"\d+", short.partition("_")[0].lstrip("abcdeghijklmnopqrstuvwxyz"))
    return max(1, int(bits[0]) // 8) if bits else 1
