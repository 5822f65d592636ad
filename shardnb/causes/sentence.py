"""One line that says what a collective moves, for whom, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from shardnb.causes.names import LOOP_CARRY, THE_RESULT
from shardnb.causes.verdict import Verdict
from shardnb.report.model import Collective, Spec
from shardnb.report.spec import spec_text
from shardnb.terms.causes import DETAILS, REASONS, Reason

_CALLED = "the program calls it"
_DERIVED = "autodiff added it for a collective of the program's"
_COMBINES = {
    "add": "adds up",
    "maximum": "takes the maximum of",
    "minimum": "takes the minimum of",
    "multiply": "multiplies",
    "and": "takes the `and` of",
    "or": "takes the `or` of",
    "xor": "takes the `xor` of",
}
"""What a called reduction does, by the opcode that combines two values."""

_SUMS = ("conv", "dot", "einsum", "reduce_sum", "scatter-add", "scatter_add")
"""How the names of operations begin that sum; another reduction may take a maximum."""

_MOVED = {"all-gather": "gathered", "collective-permute": "sent on"}
"""What becomes of the value that is moved; by another kind it is resharded."""


@dataclass(frozen=True)
class Facts:
    """What a sentence is made of.

    `spec` is the producer's sharding, `own` says that the consumer's own result is meant, and
    `other` is the operand that disagrees, which is sharded as `other_spec`. Where the consumer does
    not take that, `met_by` is the operation that takes it and the consumer's result. `stated` is
    the value whose sharding the user wrote, `asked_elsewhere` says that `line` is of what states it
    and not of the consumer, `reduction` is the opcode that combines two devices' values,
    `operation` how the user writes the consumer, and `gradient_of` the parameter whose gradient is
    moved, "" where neither is known.
    """

    producer: str | None = None
    consumer: str | None = None
    spec: Spec | None = None
    own: bool = False
    line: int | None = None
    module: str = ""
    other: str | None = None
    other_spec: Spec | None = None
    stated: str | None = None
    asked_elsewhere: bool = False
    reduction: str = ""
    met_by: str | None = None
    operation: str = ""
    gradient_of: str = ""

    @property
    def moved(self) -> str | None:
        """What is moved, in words."""
        return f"the gradient of {self.gradient_of}" if self.gradient_of else self.producer

    @property
    def takes(self) -> str | None:
        """What takes it, as the user writes that."""
        return self.operation or self.consumer


def sentence(collective: Collective, verdict: Verdict, facts: Facts) -> str:
    """Write the sentence of a collective."""
    axes = f"[{', '.join(collective.axes)}]" if collective.axes else ""
    what = facts.moved or "a value"
    head = f"{collective.kind}{axes} of {what} {_size(collective)}{_target(facts)}"
    if verdict.reason is not None:
        because = _Because(collective, verdict, facts).text(verdict.reason)
    else:
        called = _CALLED if verdict.asked_by == "called" else ""
        because = _DERIVED if verdict.by_autodiff else called
    return f"{head}: {because}." if because else f"{head}."


def _size(collective: Collective) -> str:
    dims = "x".join(map(str, collective.shape)) or "scalar"
    return f"({dims} {collective.dtype}, {_bytes(collective.bytes)})"


def _bytes(count: int) -> str:
    """Write a number of bytes.

    >>> _bytes(262144), _bytes(1536)
    ('256 KiB', '1.5 KiB')
    """
    value, units = float(count), ["B", "KiB", "MiB", "GiB", "TiB"]
    while value >= 1024 and len(units) > 1:
        value /= 1024
        units.pop(0)
    return f"{value:.1f} {units[0]}".replace(".0 ", " ")


def _target(facts: Facts) -> str:
    line = f" at line {facts.line}" if facts.line is not None else ""
    place = "" if facts.asked_elsewhere else line
    place += f" in {facts.module}" if facts.module else ""
    if not facts.own and facts.takes is not None:
        word = "for" if facts.takes.startswith("the ") else "before"
        place = f" {word} {facts.takes}{place}"
    return f"{place}, requested{line}" if facts.asked_elsewhere and line else place


def detail_of(verdict: Verdict, facts: Facts) -> str | None:
    """Say more of a reason: the kind of conflict, the size, what states which sharding."""
    if verdict.stated is not None:
        other = facts.stated not in (None, facts.producer)
        it = "the loop's carry" if verdict.detail == "loop carry" else "it"
        value = facts.stated if other else it
        spec = verdict.stated.spec
        spec_of = spec_text(spec) if spec is not None else "sharded differently"
        return f"{value} must be {spec_of}, because of {verdict.stated.by}"
    if verdict.reason != "uneven":
        return DETAILS[verdict.detail].prose if verdict.detail else None
    if verdict.uneven is None:
        return "its size is not divisible by the devices"
    dim, size, devices, axes, of_result = verdict.uneven
    of = " of the result" if of_result else ""
    by = f"the {devices} devices along {' and '.join(axes)}"
    return f"dimension {dim} ({size}){of} is not divisible by {by}"


@dataclass(frozen=True)
class _Because:
    """The clause after the colon, by reason."""

    collective: Collective
    verdict: Verdict
    facts: Facts

    def text(self, reason: Reason) -> str:
        if self.verdict.detail == "on one device":
            return f"only one device holds it, but {self._consumer} runs on all of them"
        if self.verdict.detail == "in blocks":
            return f"{self._consumer} is computed in steps, on blocks that other devices hold"
        match reason:
            case "unknown":
                return REASONS[reason].clause
            case "partial-sum":
                return self._partial_sum()
            case "conflict":
                so = (
                    "" if self.facts.met_by else f", so {self.facts.moved or 'it'} is {self._moved}"
                )
                then = f"but {self._conflict()}{so}"
            case "output-spec" | "uneven":
                # Of what is one of several, only the reason may be known.
                known = detail_of(self.verdict, self.facts)
                then = f"but {known or 'you wrote another sharding for it'}"
            case "whole-axis":
                then = self._whole()
            case "reshape":
                then = "and a reshape joins or splits dimensions across its shard boundaries"
            case "halo":
                then = f"but {self._consumer} reads elements that other devices hold"
            case _:
                assert_never(reason)
        return f"{self._lies()}, {then}"

    @property
    def _consumer(self) -> str:
        return self.facts.takes or "its consumer"

    @property
    def _moved(self) -> str:
        return _MOVED.get(self.collective.kind, "resharded")

    @property
    def _over(self) -> str:
        return _axes(self.collective.axes or ())

    @property
    def _split_by(self) -> tuple[str, ...]:
        """The axes that split what is moved: a permute may go over others as well.

        One step of what TPU sends over several slices goes over some of them.
        """
        axes = self.collective.axes or ()
        parts = Counter(_name(axis) for axis in self.verdict.axes)
        known = {_name(axis): axis for axis in self.verdict.axes}
        named = [_name(axis) for axis in axes if _name(axis) in known]
        joined = tuple(known[axis] if parts[axis] == 1 else axis for axis in named)
        if len(set(named)) < len(known):
            return self.verdict.axes
        return joined or self.verdict.axes or axes

    @property
    def _also_split_by(self) -> tuple[str, ...]:
        """Those of these axes that split another dimension of the array that it meets."""
        if self.verdict.shared:
            return self.verdict.shared
        known = {_name(axis) for dim in self.facts.other_spec or () for axis in dim}
        return tuple(axis for axis in self._split_by if _name(axis) in known) or self._split_by

    @property
    def _split_over(self) -> str:
        return _axes(self._split_by)

    def _partial_sum(self) -> str:
        if self.verdict.asked_by == "called":
            combines = _COMBINES.get(self.facts.reduction, "combines")
            who = "autodiff" if self.verdict.by_autodiff else "the program"
            return f"{who} {combines} what each device along {self._over} holds"
        what = self.facts.consumer or "the operation"
        if not self.facts.own:
            return f"each device along {self._over} holds a part of the result"
        reduced = f"a dimension sharded over {self._over}"
        if what == "gather":
            looks = f"{self._consumer} looks up entries along {reduced}"
            return f"{looks}, so each device has only some of them"
        if what == "reduce":
            return f"the reduction is over {reduced}, so each device has only a partial result"
        sums = what.startswith(_SUMS)
        does, partial = ("sums", "sum") if sums else ("reduces", "result")
        if self.facts.operation.startswith(("a sum in ", "the sum in ")):
            does = "is"
        return (
            f"{self._consumer} {does} over {reduced}, so each device has only a partial {partial}"
        )

    def _lies(self) -> str:
        dims = self._dims()
        what = self.facts.moved or "the value"
        permute = self.collective.kind == "collective-permute"
        if permute and self.verdict.layout_unknown and self.verdict.reason != "halo":
            # A permute is over the axes of both layouts, and the first one is not known.
            return f"{what} is sharded differently where it is computed"
        together = f"{self._split_over}{f' on {dims}' if dims else ''}"
        return f"{what} is sharded over {self._each() or together}"

    def _each(self) -> str:
        """Say which axes shard which dimension, where several are moved.

        Else an array would be sharded as it must not be
        (`test_each_dimension_that_is_moved_is_said_with_its_axes`).
        """
        spec, dims = self.facts.spec or (), self.verdict.dims
        if len(dims) < 2 or self.verdict.role or dims[-1] >= len(spec):
            return ""
        held = [[axis for axis in spec[dim] if axis in self._split_by] for dim in dims]
        every = sorted(axis for axes in held for axis in axes)
        if not all(held) or every != sorted(self._split_by):
            return ""
        return " and over ".join(
            f"{_axes(tuple(axes))} on dimension {dim}" for axes, dim in zip(held, dims, strict=True)
        )

    def _dims(self) -> str:
        dims = self.verdict.dims
        return (self.verdict.role or _dims(dims)) if dims else ""

    def _whole(self) -> str:
        if self.verdict.detail == "no split form":
            return f"but the partitioner cannot keep {self._consumer} sharded here"
        if self.verdict.full and self.verdict.full != self.verdict.dims:
            return f"but {self._consumer} needs {_dims(self.verdict.full)} in full on each device"
        return f"but {self._consumer} needs it in full on each device"

    def _conflict(self) -> str:
        other = self._other
        returned = f"it with another sharding{self._needed()}"
        if self.facts.consumer and self.facts.consumer not in (LOOP_CARRY, THE_RESULT, "while"):
            returned = "what is computed from it with another sharding"
        later = f", which the result meets in {self.facts.met_by}" if self.facts.met_by else ""
        also = self._also_split_by
        shards = "shard" if len(also) > 1 else "shards"
        axes = _axes(also)
        match self.verdict.detail:
            case "two dimensions":
                of = "" if other.startswith("the indices ") else "another dimension of "
                return f"{axes} also {shards} {of}{other}{later}"
            case "operands disagree":
                return f"{other} {self._state()}{later}"
            case "elsewhere":
                return f"the result has another sharding{self._needed()}"
            case "loop carry":
                return f"the loop carries {returned}"
            case "branches":
                return f"the branches return {returned}"
            case _:
                return "another sharding is needed"

    @property
    def _other(self) -> str:
        """Name what disagrees: two views of one array may have one name (`x - x[:, None]`)."""
        facts = self.facts
        if facts.other is None:
            return "what it meets"
        if facts.other == facts.producer and facts.consumer and not facts.met_by:
            return f"the other operand of {facts.takes}"
        return facts.other

    def _state(self) -> str:
        spec = self.facts.other_spec
        if spec is None:
            return "is sharded differently"
        return f"is sharded as {spec_text(spec)}" if any(spec) else "is replicated"

    def _needed(self) -> str:
        needed = self.verdict.needed
        return f": {spec_text(needed)}" if needed not in (None, self.facts.spec) else ""


def _dims(numbers: tuple[int, ...]) -> str:
    noun = "dimension" if len(numbers) == 1 else "dimensions"
    return f"{noun} {' and '.join(map(str, numbers))}"


def _axes(axes: Sequence[str]) -> str:
    """Write axes, and parts of them, in words.

    >>> _axes(("data:(1)2", "model"))
    'a part of data and model'
    """
    words = (f"a part of {_name(axis)}" if ":" in axis else axis for axis in axes)
    return " and ".join(words) or "the devices"


def _name(axis: str) -> str:
    """Name the axis that a part of one, such as `data:(1)2`, is of."""
    return axis.partition(":")[0]
