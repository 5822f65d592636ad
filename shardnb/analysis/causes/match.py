"""Which collective right after partitioning each member of an optimized collective was."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from shardnb.analysis.causes.align import COLLECTIVES
from shardnb.analysis.causes.graph import Key, key_of
from shardnb.compiler.hlo import Instruction, Module
from shardnb.report.model import Collective

_PASSED = frozenset(("bitcast", "copy", "get-tuple-element", "reshape", "convert"))
_NARROW = ("bf16", "f16")

_Entry = tuple[Instruction, Key]


@dataclass
class Matcher:
    """Finds members by channel, and those of combined collectives by shape, name and order."""

    optimized: Module
    partitioned: Module
    _by_channel: dict[int, list[Instruction]] = field(init=False)
    _final: dict[int, list[Instruction]] = field(init=False)
    _bodies: frozenset[str] = field(init=False)
    _nodes: dict[str, dict[str, Instruction]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Index the collectives of both programs by their channels."""
        self._by_channel = _channels(self.partitioned)
        self._final = _channels(self.optimized)
        self._bodies = frozenset(
            called
            for instruction in self.partitioned.instructions()
            if instruction.opcode == "while"
            for _, called in instruction.called
        )

    @property
    def made(self) -> list[Instruction]:
        """The collectives right after partitioning."""
        return [one for ones in self._by_channel.values() for one in ones]

    def left_its_loop(self, collective: Collective, made: Instruction | None) -> bool:
        """Whether optimisation took a collective out of the loop that it was made in."""
        if made is None or collective.within:
            return False
        return made.computation in self._bodies

    def match(self, collectives: Sequence[Collective]) -> dict[int, Instruction]:
        """Give for each id the instruction right after partitioning, where it is known."""
        found: dict[int, Instruction] = {}
        for group in _groups(collectives):
            first = group[0]
            if first.channel is None:
                continue
            if len(group) > 1:
                found |= self._members(group)
            elif (one := self._single(first)) is not None:
                found[first.id] = one
        return found

    def _single(self, collective: Collective) -> Instruction | None:
        """Give the collective of a channel; those that the program calls may share one."""
        made = self._by_channel.get(collective.channel or 0, ())
        kind = collective.made_as or collective.kind
        ones = [one for one in made if one.opcode.removesuffix("-start") == kind]
        if not ones and len(made) == 1:
            return made[0]  # TPU sends it as another kind
        if len(ones) < 2:
            return ones[0] if ones else None
        name = collective.instruction.partition(" = ")[0].lstrip("%")
        finals = [one for one in self._final[collective.channel or 0] if one.name == name]
        ones = [one for one in ones if finals and _size(one) == _size(finals[0])]
        same = [one for one in ones if one.name == name] or [
            one for one in ones if one.op_name and collective.op_name.endswith(one.op_name)
        ]
        return same[0] if len(same) == 1 else None

    def _members(self, group: list[Collective]) -> dict[int, Instruction]:
        channel = group[0].channel or 0
        final = self._final[channel][0]
        pool = self._pool(group[0], channel)
        names = joined_names(final.op_name)
        keys = self._operand_keys(final)
        found: dict[int, Instruction] = {}
        for at, member in enumerate(group):
            name = names[at] if len(names) == len(group) else ""
            key = keys[at] if at < len(keys) else ("", 0)
            whole = final.arrays[at] if member.made_as else (member.dtype, member.shape)
            alike = [entry for entry in pool[whole[1]] if _may_become(entry[0], whole[0])]
            if alike:
                best = max(alike, key=lambda entry: _score(entry, name, key, whole[0]))
                found[member.id] = best[0]
                pool[whole[1]].remove(best)
        return found

    def _pool(self, first: Collective, channel: int) -> dict[tuple[int, ...], list[_Entry]]:
        """Give by shape the collectives that may have gone into a combined one, in order.

        They are of the kind, and in the computation, of the member whose channel it kept. TPU may
        give a channel of its own to what it makes outside of loops.
        """
        pool: dict[tuple[int, ...], list[_Entry]] = defaultdict(list)
        kept = next(iter(self._by_channel.get(channel, ())), None)
        if kept is None and first.within:
            return pool
        kind = kept.opcode if kept is not None else first.made_as or first.kind
        computation = kept.computation if kept is not None else self.partitioned.entry
        for number, ones in self._by_channel.items():
            if number != channel and number in self._final:
                continue
            for one in ones:
                if one.opcode == kind and one.computation == computation:
                    pool[one.arrays[0][1]].append((one, key_of(one)))
        return pool

    def _operand_keys(self, final: Instruction) -> list[Key]:
        name = final.computation
        if name not in self._nodes:
            self._nodes[name] = {one.name: one for one in self.optimized.computations[name]}
        return [_source_key(operand, self._nodes[name]) for operand in final.operands]


def _channels(module: Module) -> dict[int, list[Instruction]]:
    found: dict[int, list[Instruction]] = defaultdict(list)
    for instruction in module.instructions():
        if instruction.opcode.removesuffix("-start") in COLLECTIVES:
            channel = instruction.integer("channel_id")
            if channel is not None:
                found[channel].append(instruction)
    return found


def _size(instruction: Instruction) -> int:
    return sum(math.prod(shape) for _, shape in instruction.arrays)


def _groups(collectives: Sequence[Collective]) -> list[list[Collective]]:
    groups: dict[tuple[int, ...], list[Collective]] = defaultdict(list)
    for collective in collectives:
        groups[tuple(sorted((collective.id, *collective.combined_with)))].append(collective)
    return list(groups.values())


def _source_key(operand: str, nodes: dict[str, Instruction]) -> Key:
    node = nodes.get(operand.partition("#")[0])
    while node is not None and node.opcode in _PASSED and not key_of(node)[0] and node.operands:
        node = nodes.get(node.operands[0].partition("#")[0])
    return key_of(node) if node is not None else ("", 0)


def _may_become(made: Instruction, dtype: str) -> bool:
    """Whether a collective may have this element type in the end: CPU widens narrow floats."""
    own = made.arrays[0][0]
    return own == dtype or (own in _NARROW and dtype == "f32")


def _score(entry: _Entry, name: str, key: Key, dtype: str) -> int:
    """Weigh a candidate of the right shape: names, lines and the element type tell the rest."""
    made, mine = entry
    named = bool(name) and mine[0].endswith(name)
    return 4 * named + 8 * (mine == key) + (made.arrays[0][0] == dtype)


def joined_names(op_name: str) -> list[str]:
    """Give the names of the members of a combined collective, in order.

    >>> joined_names("jit(f)/(dot_general:transpose(jvp())/reduce_sum)")
    ['dot_general', 'transpose(jvp())/reduce_sum']
    """
    for match in re.finditer(r"(?:^|/)\(", op_name):
        if op_name.endswith(")") and _balanced(op_name[match.end() : -1]):
            return _split(op_name[match.end() : -1])
    return []


def _balanced(text: str) -> bool:
    depth = 0
    for char in text:
        depth += (char == "(") - (char == ")")
        if depth < 0:
            return False
    return depth == 0


def _split(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if char == ":" and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]]
