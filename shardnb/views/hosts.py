"""What is said of several hosts: their progress, their output, and how they end."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Protocol

MISSING_EXTRA = "several hosts need ipyparallel: pip install 'shardnb[hosts]'"
CLOSED = "%mesh --hosts 0 stopped them"
DIED = "{hosts} died"
STOPPED = "{hosts} hangs: its process is suspended"
HANGS_AFTER_FAILURE = "{hosts} did not end within 5 s after the program failed on another host"
NOT_INTERRUPTED = "{hosts} did not end within 5 s after the interrupt"
STOPPED_ALL = "no hosts are running"
ONLY_RUNNING_DEVICES = "hosts run cells, so --on is cpu or attached"
ATTACHED_NEEDS_CLUSTER = (
    "--hosts alone starts processes with emulated devices on this machine; for the devices of "
    "several machines add --cluster PROFILE"
)
FETCHING = "fetching"
FETCH_COPIES = "the values are on the hosts: they cannot be had without a copy"
OTHER_HOSTS = "an array is on hosts that have ended: what was only there is lost"
_ENDED = "{why}, so all hosts were stopped. Names in the notebook are as before, but arrays on the "
_ENDED += "hosts are lost: %mesh --hosts starts new ones"


_LISTED = 4  # blocks that are written of an array on a host
_Place = tuple[tuple[int, int], ...]


class _Where(Protocol):
    @property
    def host(self) -> str: ...

    @property
    def pid(self) -> int: ...


def uneven(size: int, count: int) -> str:
    """Say that hosts cannot share the devices of a mesh equally."""
    return f"the {size} devices of the mesh cannot be shared equally by {count} hosts"


def other_number(size: int, devices: int) -> str:
    """Say that the hosts have more or fewer devices than the mesh."""
    return f"the mesh has {size} devices, and the hosts have {devices}"


def on_hosts(devices: Sequence[int]) -> str:
    """Write after a mesh on how many hosts its devices are, given the host of each.

    >>> on_hosts((0, 0, 1, 1))
    ' on 2 hosts'
    """
    count = len(set(devices))
    return f" on {count} host{'' if count == 1 else 's'}" if count else ""


def starting(count: int) -> str:
    """Say that the processes of hosts are started."""
    return f"starting {count} hosts"


def progress(doing: str, waiting: Sequence[int]) -> str:
    """Say what the hosts do, and which of them have not finished, where others have.

    >>> progress("compiling", [1])
    'compiling: waiting for host 1'
    """
    return f"{doing}: waiting for {_listed(waiting)}" if waiting else doing


def by_host(host: int, text: str) -> str:
    r"""Write what a host has printed, each line with its number.

    >>> by_host(1, "loss 0.5\n")
    'host 1: loss 0.5\n'
    """
    return "".join(f"host {host}: {line}\n" for line in text.splitlines())


def failed(messages: Mapping[str, Sequence[int]], count: int) -> str:
    """Write which of so many hosts failed, and with what.

    >>> failed({"ValueError: no": [0, 1]}, 2), failed({"ValueError: no": [1]}, 2)
    ('on every host: ValueError: no', 'on host 1: ValueError: no')
    """
    named = {m: "every host" if len(h) == count > 1 else _listed(h) for m, h in messages.items()}
    return "; ".join(f"on {hosts}: {message}" for message, hosts in named.items())


def _listed(hosts: Sequence[int]) -> str:
    numbers = ", ".join(map(str, hosts))
    return f"host{'s' if len(hosts) > 1 else ''} {numbers}"


def array(
    dtype: str,
    shape: Sequence[int],
    spec: str | None,
    axes: Sequence[tuple[str, int]] | None,
    places: Sequence[Sequence[_Place]],
) -> str:
    """Describe an array on the hosts: its sharding, and the part that each host holds.

    >>> print(array("float32", [8, 4], "P('data',)", [("data", 2)], [[((0, 4), (0, 4))]] * 2))
    float32[8, 4] on 2 hosts, sharded P('data',) over data=2
      host 0: [0:4, 0:4]
      host 1: [0:4, 0:4]
    """
    mesh = ",".join(f"{name}={size}" for name, size in axes or ())
    sharded = f", sharded {spec} over {mesh}" if spec and mesh else ""
    hosts = f"{len(places)} host{'' if len(places) == 1 else 's'}"
    lines = [f"{dtype}[{', '.join(map(str, shape))}] on {hosts}{sharded}"]
    lines += [f"  host {host}: {_held(blocks)}" for host, blocks in enumerate(places)]
    return "\n".join(lines)


def _held(blocks: Sequence[_Place]) -> str:
    """Write what a host holds: the range that its blocks fill, or each block."""
    if not blocks:
        return "nothing"
    around = tuple(
        (min(start for start, _ in parts), max(end for _, end in parts))
        for parts in zip(*blocks, strict=True)
    )
    if sum(map(_size, blocks)) == _size(around):
        return _range(around)
    shown = [_range(block) for block in blocks[:_LISTED]]
    more = len(blocks) - len(shown)
    return ", ".join([*shown, *([f"and {more} more"] if more else [])])


def _size(place: _Place) -> int:
    return math.prod(end - start for start, end in place)


def _range(place: _Place) -> str:
    return f"[{', '.join(f'{start}:{end}' for start, end in place)}]"


def ended(why: str, hosts: Sequence[int], where: Sequence[_Where]) -> str:
    """Say why the hosts were stopped, with the machine and the process of each that is named."""
    named = ", ".join(f"host {h} (process {where[h].pid} on {where[h].host})" for h in hosts)
    return _ENDED.format(why=why.format(hosts=named))


def gone(why: str) -> str:
    """Say that the hosts are gone."""
    return f"the hosts are gone: {why}"


def no_cluster(profile: str, why: str) -> str:
    """Say that no cluster of a profile answers."""
    return (
        f"no cluster of the profile {profile!r} answers; "
        f"ipcluster start --profile={profile} starts one ({' '.join(why.split())})"
    )


def too_few(profile: str, there: int, wanted: int | None) -> str:
    """Say that a cluster has fewer engines than are wanted."""
    engines = f"{there} engine{'' if there == 1 else 's'}"
    return f"expected {wanted or 'some'} engines, but the cluster of {profile!r} has {engines}"


def other_versions(here: object, there: object) -> str:
    """Say that an engine runs other versions."""
    return f"the engines need {here}, as the kernel has; one has {there}"


def not_joined(why: str) -> str:
    """Say that the engines did not become processes of one program."""
    return f"the engines cannot run a program together: {why}"


def compiling(title: str) -> str:
    """Say that all hosts compile a cell."""
    return f"{title}: compiling on every host"


def running(title: str) -> str:
    """Say that all hosts run a cell."""
    return f"{title}: running on every host"


def not_on_hosts(option: str) -> str:
    """Say that an option is not for cells on hosts."""
    return (
        f"{option} cannot be combined with the hosts of %mesh; "
        "with --on cpu the cell is compiled in the kernel"
    )


def cannot_send(name: str, kind: str, why: str) -> str:
    """Say that a value which a cell reads cannot be sent to the hosts.

    >>> cannot_send("batches", "generator", "cannot pickle 'generator' object")
    "the hosts need batches (a generator), which cannot be sent: cannot pickle 'generator' object"
    """
    return f"the hosts need {name} (a {kind}), which cannot be sent: {why}"


def cannot_send_back(why: str) -> str:
    """Say that the kernel cannot have a value which a cell assigns."""
    return f"the cell assigns what the hosts cannot send back: {why}"


@dataclass(frozen=True)
class Difference:
    """The first line in which two programs differ, counted from 1, and that line in each."""

    number: int
    line: str
    other: str

    @classmethod
    def between(cls, text: str, other: str) -> Difference:
        """Find the first difference of two texts that differ."""
        pairs = zip_longest(text.splitlines(), other.splitlines(), fillvalue="")
        for number, (line, against) in enumerate(pairs, 1):
            if line != against:
                return cls(number, line.strip(), against.strip())
        raise ValueError("the texts do not differ")


_STAGES = {"stablehlo": "StableHLO", "optimized": "optimized HLO"}


def differ(same: Sequence[int], other: int, stage: str, difference: Difference) -> str:
    """Say that a host has compiled another program, and where the two differ first."""
    return (
        f"{_listed(same)} and host {other} compiled different programs, so nothing ran. "
        f"Line {difference.number} of the {_STAGES[stage]} is the first that differs: "
        f"`{difference.line}` on {_listed(same)}, `{difference.other}` on host {other}. "
        "All hosts must run the same program: what differs by host, such as jax.process_index(), "
        "may only be in the data"
    )
