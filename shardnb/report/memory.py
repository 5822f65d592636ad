"""What each device holds in memory, and what of it is alive at the peak."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from shardnb.report.places import Location
from shardnb.terms.causes import Phase

Use = Literal["argument", "output", "temporary"]


@dataclass(frozen=True)
class Held:
    """Values of one name, shape and line that a device holds at the peak.

    `bytes` is the room that all `count` of them take on one device, with what the device pads;
    `shape` is that of one on one device. `name` is the path of an argument or output, of several
    as `p[*]['w']`, or what the user's line calls the value, else `result of dot_general` by JAX's
    operation. `reused` says that a result is written into this argument, `copied` that it is a copy
    of `name`, `stacked` that it holds `name` of every iteration of a loop, `sliced` that it is the
    slice of the argument `name` that an iteration takes. `collective` is the kind of the collective
    that makes it.
    """

    name: str
    use: Use
    bytes: int
    dtype: str = ""
    shape: tuple[int, ...] = ()
    count: int = 1
    location: Location | None = None
    phase: Phase | None = None
    reused: bool = False
    copied: bool = False
    stacked: bool = False
    sliced: bool = False
    collective: str = ""


@dataclass(frozen=True)
class Peak:
    """What each device holds when most of its memory is in use, by XLA's buffer assignment.

    `held` has the largest first, arguments and outputs too, which are held during the whole run.
    `others` is what the values that are not listed take, `unused` the part of the temporaries'
    memory that no value takes then. All of them add up to `Memory.total`. `location` is the line
    that runs then, and `phase` the pass that it belongs to.
    """

    held: tuple[Held, ...]
    others: int = 0
    unused: int = 0
    location: Location | None = None
    phase: Phase | None = None


@dataclass(frozen=True)
class Memory:
    """Bytes per device, from the compiler's own analysis.

    `aliased` bytes are outputs that reuse a donated input. `constants` is the part of `arguments`
    that the function closes over: `jax.jit` makes these arrays constants on each device. `host` is
    what the program holds in host memory; no other figure includes it. `peak` is what is alive when
    most is in use; None if the compiler did not say when its values are alive.
    """

    arguments: int
    outputs: int
    temporaries: int
    aliased: int = 0
    code: int = 0
    constants: int = 0
    host: int = 0
    peak: Peak | None = None

    @property
    def total(self) -> int:
        """Bytes that each device holds at once: arguments, outputs and temporaries."""
        return self.arguments + self.outputs + self.temporaries - self.aliased
