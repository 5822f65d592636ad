"""One run on each device: when it computed, and when which collective was under way."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from shardnb.profiles.executions import Device
from shardnb.profiles.statistics import OnDevice, Seconds, Spans, Statistics
from shardnb.report.measured import DeviceTimeline
from shardnb.report.model import Report

# Devices, and spans of all of them, that a report keeps: a reader compares a few, and a notebook
# keeps the report. Gaps that no screen shows are closed (test_a_timeline_stays_small).
_DEVICES = 64
_SPANS = 8_000
_PIXELS = 2_000
_DIGITS = 10  # a tenth of a nanosecond


def timeline(report: Report, statistics: Statistics) -> tuple[DeviceTimeline, ...]:
    """Return a run of typical length on each device, as far as a report keeps it.

    Times count from the first operation of the run on the host: the clocks of hosts differ.
    """
    devices = dict(list(statistics.devices.items())[:_DEVICES])
    steps = np.max([each.steps[-statistics.runs :] for each in devices.values()], axis=0)
    typical = int(np.argsort(steps)[(len(steps) - 1) // 2])
    # Runs are counted from the last, as they are paired.
    runs = {d: on.operations.runs - len(steps) + typical for d, on in devices.items()}
    starts = _starts(devices, runs)
    positions = _positions(report, statistics)
    several = len({device.host for device in devices}) > 1
    lines, left = list[DeviceTimeline](), _SPANS
    for device, on in devices.items():
        computing = on.computing.of(on.computing.run == runs[device])
        computing = computing.merged(gap=float(steps[typical]) / _PIXELS)
        sent = on.communicating.of(on.communicating.run == runs[device])
        sent = sent.of(np.arange(min(len(sent.start), _SPANS // 2)))
        left -= len(computing.start) + len(sent.start)
        if left < 0:
            break
        name = f"{device.platform.upper()} {device.number}"
        lines.append(
            DeviceTimeline(
                name=f"{device.host} {name}" if several else name,
                position=positions.get(device),
                computing=_alternating(computing, starts[device.host]),
                communicating=_alternating(sent, starts[device.host]),
                ids=tuple(sent.id.tolist()),
            )
        )
    return tuple(lines)


def _starts(devices: Mapping[Device, OnDevice], runs: Mapping[Device, int]) -> dict[str, float]:
    """Return when the run began on each host."""
    starts: dict[str, float] = {}
    for device, on in devices.items():
        begun = on.operations.start[on.operations.run == runs[device]]
        first = float(begun.min(initial=np.inf))
        starts[device.host] = min(starts.get(device.host, np.inf), first)
    return starts


def _alternating(spans: Spans, since: float) -> tuple[float, ...]:
    both: Seconds = np.column_stack((spans.start, spans.end)).ravel() - since
    return tuple(np.round(np.maximum(both, 0.0), _DIGITS).tolist())


def _positions(report: Report, statistics: Statistics) -> dict[Device, int]:
    """Return the position in the mesh of each device: by their ids, where one host has them all."""
    at = {number: position for position, number in enumerate(report.mesh.device_ids)}
    devices = statistics.devices
    alone = len({device.host for device in devices}) == 1
    if not alone or {device.number for device in devices} != set(at):
        return {}
    return {device: at[device.number] for device in devices}
