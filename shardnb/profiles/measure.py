"""From what devices executed to a report with figures for each collective."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from shardnb.cost import find_hardware
from shardnb.profiles.executions import Device, Operations, with_runs
from shardnb.profiles.instructions import communicating
from shardnb.profiles.statistics import OnDevice, Statistics
from shardnb.profiles.timeline import timeline
from shardnb.report.measured import Profile
from shardnb.report.model import Report
from shardnb.texts.hlo import Module

Executions = Mapping[Device, Operations]


def with_measurements(
    report: Report, module: Module, executions: Executions, kind: str = ""
) -> Report:
    """Return a report with what was measured of its program; `module` is the one that ran.

    `kind` is what JAX calls the devices, as far as that is known.
    """
    instructions = communicating(module, report.collectives)
    devices = {
        device: OnDevice(with_runs(operations, instructions.once), instructions)
        for device, operations in sorted(executions.items())
    }
    devices = {device: on for device, on in devices.items() if on.operations.runs}
    if not devices:
        return report
    statistics = Statistics(devices)
    measured = {
        number: statistics.of_collective(number)
        for number in dict.fromkeys(instructions.begins.values())
    }
    collectives = tuple(
        replace(c, measured=measured.get(min((c.id, *c.combined_with)))) for c in report.collectives
    )
    platform = next(iter(devices)).platform
    known = None if platform == "cpu" else find_hardware(kind)
    profile = Profile(
        runs=statistics.runs,
        devices=len(devices),
        hosts=len({device.host for device in devices}),
        platform=platform,
        kind="" if platform == "cpu" else kind,
        hardware=known.name if known else "",
        step_seconds=statistics.step_seconds,
        communication_seconds=statistics.communication_seconds,
        exposed_seconds=statistics.exposed_seconds,
        unmeasured=sum(c.measured is None for c in collectives),
        timeline=timeline(report, statistics),
    )
    return replace(report, collectives=collectives, profile=profile)
