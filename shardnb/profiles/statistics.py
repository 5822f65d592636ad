"""What was measured: from the operations that each device executed to figures per collective."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shardnb.profiles.executions import Device, Operations
from shardnb.profiles.instructions import Communicating
from shardnb.report.measured import Measured

# A wait that takes a smaller share of a collective's time found it ended: a device spends some time
# on the instruction itself (test_a_collective_that_nobody_waited_for_took_at_most_its_span).
_WAITED = 0.05

Numbers = NDArray[np.int64]
Seconds = NDArray[np.float64]


@dataclass(frozen=True)
class Spans:
    """Spans of time on one device: of the executions of collectives, or of computation.

    `is_end_known` is False for a collective that may have ended before its span does.
    """

    start: Seconds
    end: Seconds
    run: Numbers
    id: Numbers
    is_end_known: NDArray[np.bool_]

    def of(self, chosen: NDArray[np.bool_] | Numbers) -> Spans:
        """Return some of them, or all in another order."""
        return Spans(
            self.start[chosen],
            self.end[chosen],
            self.run[chosen],
            self.id[chosen],
            self.is_end_known[chosen],
        )

    @property
    def seconds(self) -> Seconds:
        """How long each takes."""
        return self.end - self.start

    def merged(self, gap: float = 0.0) -> Spans:
        """Return spans that do not overlap, and cover as much, or the gaps too; without ids."""
        order = np.argsort(self.start, kind="stable")
        spans = self.of(order)
        if not len(order):
            return spans
        until = np.maximum.accumulate(spans.end)
        first = np.flatnonzero(np.r_[True, spans.start[1:] > until[:-1] + gap])
        return replace(spans.of(first), end=until[np.r_[first[1:] - 1, len(order) - 1]])


@dataclass(frozen=True)
class OnDevice:
    """What one device did: its collectives and its computation."""

    operations: Operations
    instructions: Communicating

    @cached_property
    def _numbers(self) -> tuple[Numbers, Numbers, NDArray[np.bool_]]:
        """The collective that each operation begins and ends (-1: none); whether it computes."""
        names, code = self.operations.names, self.instructions
        begins = np.array([code.begins.get(name, -1) for name in names], dtype=np.int64)
        ends = np.array([code.ends.get(name, -1) for name in names], dtype=np.int64)
        computing = np.array([name in code.computing for name in names], dtype=bool)
        at = self.operations.name
        return begins[at], ends[at], computing[at] & ~self.operations.asynchronous

    @cached_property
    def computing(self) -> Spans:
        """When it computes, each moment once."""
        return self._spans(np.flatnonzero(self._numbers[2])).merged()

    @cached_property
    def communicating(self) -> Spans:
        """Each execution of a collective, in the order of their starts."""
        begins, ends, _ = self._numbers
        parts = [
            self._executions(n, np.flatnonzero(begins == n), np.flatnonzero(ends == n))
            for n in np.unique(begins[begins >= 0]).tolist()
        ]
        parts.append(self._spans(np.zeros(0, dtype=np.int64)))
        each = ((p.start, p.end, p.run, p.id, p.is_end_known) for p in parts)
        columns = zip(*each, strict=True)
        every = Spans(*map(np.concatenate, columns))
        return every.of(np.argsort(every.start, kind="stable"))

    def _spans(self, at: Numbers, number: int = -1) -> Spans:
        operations, all_of = self.operations, len(at)
        return Spans(
            operations.start[at],
            operations.end[at],
            operations.run[at],
            np.full(all_of, number),
            np.full(all_of, fill_value=True),
        )

    def _executions(self, number: int, begins: Numbers, ends: Numbers) -> Spans:
        """Return when a collective ran: by a line of its own, else from its start to its end.

        The end is known where the device had to wait for it, or where nothing waits apart.
        """
        beside = self.operations.asynchronous[begins]
        spans = self._spans(begins[beside] if beside.any() else begins, number)
        start, end = self.operations.start[ends], self.operations.end[ends]
        if not len(ends):
            return replace(spans, is_end_known=np.full(len(spans.start), not beside.any()))
        # The first wait that begins after the start of an execution is for it.
        at = np.minimum(np.searchsorted(start, spans.start), len(end) - 1)
        has_wait = start[at] >= spans.start
        until = np.where(has_wait & ~beside.any(), np.maximum(spans.end, end[at]), spans.end)
        known = has_wait & (end[at] - start[at] >= _WAITED * (until - spans.start))
        return replace(spans, end=until, is_end_known=known)

    def hidden(self, spans: Spans) -> Seconds:
        """Return for each span how long the device computes during it."""
        computing = self.computing
        if not len(computing.start):
            return np.zeros(len(spans.start))
        done = np.r_[0.0, np.cumsum(computing.seconds)]

        def computed_until(time: Seconds) -> Seconds:
            begun = np.searchsorted(computing.start, time, side="right")
            last = np.maximum(begun - 1, 0)
            running = np.minimum(time, computing.end[last]) - computing.start[last]
            return np.where(begun > 0, done[last] + running, 0.0)

        return computed_until(spans.end) - computed_until(spans.start)

    def per_run(self, spans: Spans, seconds: Seconds) -> Seconds:
        """Add up seconds of spans by the runs that they are in."""
        added: Seconds = np.bincount(spans.run, seconds, minlength=self.operations.runs)
        return added

    @cached_property
    def steps(self) -> Seconds:
        """How long each run takes, from its first operation to the end of its last."""
        runs, operations = self.operations.runs, self.operations
        start, end = np.full(runs, np.inf), np.full(runs, -np.inf)
        np.minimum.at(start, operations.run, operations.start)
        np.maximum.at(end, operations.run, operations.end)
        took: Seconds = np.maximum(end - start, 0.0)
        return took


@dataclass(frozen=True)
class Statistics:
    """Figures over all devices; see `report.measured` for what each is."""

    devices: Mapping[Device, OnDevice]

    @cached_property
    def is_paired(self) -> bool:
        """Whether all devices ran the program equally often, so that runs can be compared."""
        return len({device.operations.runs for device in self.devices.values()}) == 1

    @property
    def runs(self) -> int:
        """How often the program ran, on the device that ran it least."""
        return min(device.operations.runs for device in self.devices.values())

    def per_run(self, figures: Sequence[Seconds], of_devices: str) -> float:
        """Return the median over the runs of the median, or the most, over the devices."""
        table = self._table(figures)
        over = table.max(axis=0) if of_devices == "most" else np.median(table, axis=0)
        return float(np.median(over))

    def _table(self, figures: Sequence[Seconds]) -> Seconds:
        """Put figures per run side by side: the last runs of each device, which all have."""
        return np.array([each[len(each) - self.runs :] for each in figures])

    @property
    def step_seconds(self) -> float:
        """The time of a run, on the device that takes longest."""
        return self.per_run([device.steps for device in self.devices.values()], "most")

    @property
    def communication_seconds(self) -> float:
        """How long collectives are under way in a run."""
        figures = []
        for device in self.devices.values():
            spans = device.communicating.merged()
            figures.append(device.per_run(spans, spans.seconds))
        return self.per_run(figures, "median")

    @property
    def exposed_seconds(self) -> float:
        """How long collectives are under way in a run and the device does not compute."""
        figures = []
        for device in self.devices.values():
            spans = device.communicating.merged()
            figures.append(device.per_run(spans, spans.seconds - device.hidden(spans)))
        return self.per_run(figures, "median")

    def of_collective(self, number: int) -> Measured | None:
        """Return the figures of a collective, None where no device has an event of it."""
        parts = []
        for device in self.devices.values():
            spans = device.communicating
            spans = spans.of(spans.id == number)
            if len(spans.start):
                parts.append((spans, device.hidden(spans), device.operations.runs))
        if not parts:
            return None
        total = sum(float(spans.seconds.sum()) for spans, _, _ in parts)
        hidden = sum(float(seconds.sum()) for _, seconds, _ in parts)
        executions = np.median([len(spans.start) / max(runs, 1) for spans, _, runs in parts])
        share = min(hidden / total, 1.0) if total else 0.0
        least, waiting = self._least([spans for spans, _, _ in parts])
        known = np.concatenate([spans.is_end_known for spans, _, _ in parts])
        return Measured(
            least, waiting, share, float(executions), at_most=bool(2 * known.sum() < len(known))
        )

    def _least(self, parts: Sequence[Spans]) -> tuple[float, float | None]:
        """Return the least over the devices and the spread, the median of the executions.

        Without pairs of runs, the device with the least median counts.
        """
        if self.is_paired and len({len(spans.start) for spans in parts}) == 1:
            table = np.array([spans.seconds for spans in parts])
            least, most = table.min(axis=0), table.max(axis=0)
            return float(np.median(least)), float(np.median(most - least))
        return min(float(np.median(spans.seconds)) for spans in parts), None
