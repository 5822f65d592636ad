"""What a program computes per device, and the seconds of computing and communicating."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Bound = Literal["compute", "memory", "communication"]


@dataclass(frozen=True)
class Work:
    """The work of one device in one call, from the compiler's cost analysis.

    A loop counts as often as it runs. `accessed_bytes` is what every operation reads and writes:
    more than the memory traffic, since values may stay on the chip. `uncounted` is the number of
    custom calls, whose work the compiler does not know.
    """

    flops: float
    accessed_bytes: float
    uncounted: int = 0


@dataclass(frozen=True)
class Cost:
    """Seconds of one call on some hardware, by formulas; `assumptions` are sentences about them.

    `communication_seconds`, and its parts `by_axis` and `by_phase`, count every collective times
    its trips. `compute_seconds` is the work at the peak rate for bf16, a lower bound;
    `memory_seconds` assumes that every operation reads and writes memory, an upper bound. Both are
    None if the work or the hardware's figure is unknown. `peak_flops`, `memory_bandwidth` and
    `memory_size` (bytes) are per device. `links` says which links each axis uses. `assumed` says
    that the program was compiled for other hardware; `unpriced` counts the collectives without
    seconds, `uncounted` the custom calls of unknown work.
    """

    hardware: str
    source: str
    communication_seconds: float
    compute_seconds: float | None = None
    memory_seconds: float | None = None
    by_axis: Mapping[str, float] = field(default_factory=dict)
    by_phase: Mapping[str, float] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    peak_flops: float | None = None
    memory_bandwidth: float | None = None
    assumptions: tuple[str, ...] = ()
    assumed: bool = False
    unpriced: int = 0
    uncounted: int = 0
    memory_size: int | None = None

    @property
    def parts(self) -> dict[Bound, float]:
        """The seconds that are known: compute, memory, communication."""
        found: dict[Bound, float | None] = {
            "compute": self.compute_seconds,
            "memory": self.memory_seconds,
            "communication": self.communication_seconds,
        }
        return {name: seconds for name, seconds in found.items() if seconds is not None}

    @property
    def may_bound(self) -> tuple[Bound, ...]:
        """The parts that may take longest; empty if a part of the step is unknown.

        Compute and communication are compared at full rates. Memory has only an upper bound: if
        that is the largest of the three, memory may take longest, or the larger of the others.
        """
        if len(self.parts) < 3 or self.unpriced or self.uncounted:
            return ()
        compute, memory, communication = self.parts.values()
        longer: Bound = "compute" if compute >= communication else "communication"
        return (longer, "memory") if memory > max(compute, communication) else (longer,)

    @property
    def bound(self) -> Bound | None:
        """The part that takes longest, or None if the bounds do not determine it."""
        return self.may_bound[0] if len(self.may_bound) == 1 else None

    @property
    def seconds(self) -> tuple[float, float]:
        """The bounds of the step: all parts at the same time, or one after the other."""
        return max(self.parts.values()), sum(self.parts.values())
