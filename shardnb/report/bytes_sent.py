"""The bytes that each device sends for several collectives, of which not every device sends all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from shardnb.terms.collectives import KINDS

if TYPE_CHECKING:
    from shardnb.report.model import Collective, Groups


# A saved report may claim any depth; below this one, branches count as if all were taken.
_DEEPEST = 64


def most_sent(collectives: Sequence[Collective]) -> int:
    """Return the most bytes that one device sends for these per call; the least trips count."""
    alike = {(id(one.groups), KINDS[one.kind].in_pairs) for one in collectives}
    if len(alike) <= 1 and not any(one.branches for one in collectives):
        # A device sends in one group, or pair, of each: thousands of rows are alike in this.
        return sum(one.least_wire_bytes for one in collectives)
    return max(by_device(collectives).values(), default=0)


def by_device(collectives: Sequence[Collective]) -> Counter[int]:
    """Return the bytes that each device sends per call, for the devices in any of the groups.

    Of the branches of a conditional, each device sends what the one does that sends most.
    """
    groups = set({id(one.groups): one.groups for one in collectives}.values())
    devices = {device for several in groups for group in several for device in group}
    # Without groups, each device takes part.
    return _by_device(collectives, 0, devices or {0})


def sends_alike(collectives: Sequence[Collective], devices: int) -> bool:
    """Whether each of the devices sends equally many bytes, as far as the trips are known."""
    sent, grouped = by_device(collectives), all(one.groups for one in collectives)
    return len(set(sent.values())) <= 1 and not (grouped and 0 < len(sent) < devices)


def _by_device(collectives: Iterable[Collective], depth: int, devices: set[int]) -> Counter[int]:
    """Add up those that are `depth` branches deep, and the most of each conditional."""
    total = Counter(dict.fromkeys(devices, 0))
    # Programs of 5,000 collectives have few different groups: each is read once.
    alike: dict[tuple[Groups, bool], list[Collective]] = {}
    conditionals: dict[str, dict[int, list[Collective]]] = {}
    for one in collectives:
        if depth < min(len(one.branches), _DEEPEST):
            conditional, branch = one.branches[depth]
            conditionals.setdefault(conditional, {}).setdefault(branch, []).append(one)
        else:
            key = one.groups, KINDS[one.kind].in_pairs
            alike.setdefault(key, []).append(one)
    for (groups, in_pairs), members in alike.items():
        sent = sum(one.least_wire_bytes for one in members)
        for device in _senders(groups, devices, in_pairs=in_pairs):
            total[device] += sent
    for branches in conditionals.values():
        sums = [_by_device(members, depth + 1, devices) for members in branches.values()]
        for device in devices:
            total[device] += max(each[device] for each in sums)
    return total


def _senders(groups: Groups, devices: set[int], *, in_pairs: bool) -> Iterator[int]:
    """Yield a device as often as it sends: the source of a pair, each member of a group."""
    if not groups:
        yield from devices
    for group in groups:
        if in_pairs and len(set(group)) > 1:
            yield group[0]
        elif not in_pairs and len(group) > 1:
            yield from group
