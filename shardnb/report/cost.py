"""What a program computes on one device, and what that and its exchanges take on a hardware."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Bound = Literal["compute", "memory", "communication"]


@dataclass(frozen=True)
class Work:
    """What one device does in one call, as the compiler's cost analysis counts it.

    Loops count as often as they run. `accessed_bytes` is what every operation reads and writes:
    more than goes to memory where the chip keeps values to itself. `uncounted` is the number of
    custom calls, of whose work the compiler knows nothing.
    """

    flops: float
    accessed_bytes: float
    uncounted: int = 0


@dataclass(frozen=True)
class Cost:
    """Seconds of one call on a hardware, by formulas whose assumptions it holds as sentences.

    `communication_seconds`, and `by_axis` and `by_phase` with its parts, hold every collective
    times its trips. `compute_seconds` is the work at the peak for bf16, a lower bound;
    `memory_seconds` lets every operation read and write memory, an upper bound. Both are None where
    the work or the hardware's figure is not known. `peak_flops` and `memory_bandwidth` are one
    device's. `links` says by axis what its exchanges ride on. `assumed` says that the program was
    compiled for another hardware; `unpriced` counts the collectives without seconds, `uncounted`
    the custom calls of whose work nothing is known.
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

    @property
    def parts(self) -> dict[Bound, float]:
        """The seconds that are known, by what they are spent on."""
        found: dict[Bound, float | None] = {
            "compute": self.compute_seconds,
            "memory": self.memory_seconds,
            "communication": self.communication_seconds,
        }
        return {name: seconds for name, seconds in found.items() if seconds is not None}

    @property
    def may_bound(self) -> tuple[Bound, ...]:
        """What may take longest; empty where a part of the step is not known.

        Compute and communication are compared at full rates. Memory has an upper bound only: where
        that is the largest of the three, memory may take longest, or the larger of the others.
        """
        if len(self.parts) < 3 or self.unpriced or self.uncounted:
            return ()
        compute, memory, communication = self.parts.values()
        longer: Bound = "compute" if compute >= communication else "communication"
        return (longer, "memory") if memory > max(compute, communication) else (longer,)

    @property
    def bound(self) -> Bound | None:
        """What takes longest, or None where the parts, or their bounds, do not determine it."""
        return self.may_bound[0] if len(self.may_bound) == 1 else None

    @property
    def seconds(self) -> tuple[float, float]:
        """The step's least and most: all of it at the same time, and one after the other."""
        return max(self.parts.values()), sum(self.parts.values())
