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
    custom calls, whose work the compiler does not know. `least_bytes` is what certainly passes
    through memory: arguments and results that are read and written in full.
    """

    flops: float
    accessed_bytes: float
    uncounted: int = 0
    least_bytes: float = 0.0


@dataclass(frozen=True)
class Cost:
    """Seconds of one call on some hardware, by formulas; `assumptions` are sentences about them.

    `communication_seconds`, and its parts `by_axis` and `by_phase`, count every collective times
    its trips. `compute_seconds` is the work at the peak rate for bf16, a lower bound;
    `memory_seconds` assumes that every operation reads and writes memory, an upper bound, and
    `memory_least_seconds` counts only `Work.least_bytes`. They are
    None if the work or the hardware's figure is unknown. `peak_flops`, `memory_bandwidth` and
    `memory_size` (bytes) are per device. `links` says which links each axis uses, and `crossing`,
    of those that reach other hosts or slices, the bytes that one device sends per run within them
    and between them. `assumed` says that the program was compiled for other hardware; `unpriced`
    counts the collectives without seconds, `uncounted` the custom calls of unknown work.
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
    memory_least_seconds: float | None = None
    crossing: Mapping[str, tuple[int, int]] = field(default_factory=dict)

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

        Least is compared with least: compute at the peak rate, communication by formula, and memory
        by what certainly passes through it. Memory may take up to its upper bound: where only that
        is the largest of the three, memory may take longest, or the larger of the others.
        """
        if len(self.parts) < 3 or self.unpriced or self.uncounted:
            return ()
        compute, memory, communication = self.parts.values()
        longer: Bound = "compute" if compute >= communication else "communication"
        other = max(compute, communication)
        if (self.memory_least_seconds or 0.0) > other:
            return ("memory",)
        return (longer, "memory") if memory > other else (longer,)

    @property
    def bound(self) -> Bound | None:
        """The part that takes longest, or None if the bounds do not determine it."""
        return self.may_bound[0] if len(self.may_bound) == 1 else None

    @property
    def step_seconds(self) -> float:
        """What plans are compared by: the longer of computing and memory, then communication.

        All three at their least, and what is unknown as 0.
        """
        longer = max(self.compute_seconds or 0.0, self.memory_least_seconds or 0.0)
        return longer + self.communication_seconds

    @property
    def seconds(self) -> tuple[float, float]:
        """The bounds of the step: all parts at the same time, or one after the other.

        The first takes memory at its least, the second at its most.
        """
        least = {**self.parts, "memory": self.memory_least_seconds or 0.0}
        return max(least.values()), sum(self.parts.values())
