"""What a profiler measured of a program: of each collective, of a run, and when in one run."""

from __future__ import annotations

from dataclasses import dataclass

RUNS = 5
"""Runs that are measured unless the user says how many: two outliers do not move their median."""
MOST_RUNS = 1000


@dataclass(frozen=True)
class Measured:
    """What the profiler measured of one collective; combined collectives share one message.

    The time of a collective on a device includes waiting for the others, so the device that took
    least is nearest to the transfer: `seconds` is the median, over all executions, of the least
    over the devices. `waiting` is the median of the most less the least, None if the runs of the
    devices cannot be paired. `hidden` is the share (0 to 1) of its time during which the device
    computes, and `executions` how often one device executes it per run: less than once where not
    every run takes its branch. `at_most` says that it is asynchronous, and the devices did not have
    to wait for its end: the transfer ended at some time before.
    """

    seconds: float
    waiting: float | None = None
    hidden: float = 0.0
    executions: float = 1.0
    at_most: bool = False

    @property
    def seconds_per_run(self) -> float:
        """Seconds of all executions of a run."""
        return self.seconds * self.executions


@dataclass(frozen=True)
class DeviceTimeline:
    """When one device computed and communicated, in seconds since the first device began.

    Starts and ends alternate in `computing`, and in `communicating`, whose n-th span is of the
    collective `ids[n]`. `position` is that of the device in the mesh, None if the trace does not
    show it.
    """

    name: str
    position: int | None = None
    computing: tuple[float, ...] = ()
    communicating: tuple[float, ...] = ()
    ids: tuple[int, ...] = ()


@dataclass(frozen=True)
class Profile:
    """What the profiler measured of a program in `runs` runs on `devices` devices of `hosts` hosts.

    Each figure is the median over the runs. `step_seconds` is the time from the first to the last
    operation of a run, on the device that takes longest. `communication_seconds` is how long
    collectives are under way in a run, and `exposed_seconds` the part of it during which the device
    does not compute, each the median over the devices. `platform` is `cpu`, `gpu` or `tpu`, and
    `kind` the name of the devices where it is known, with `hardware`, what `Cost.hardware` calls
    them. `unmeasured` counts collectives of which the trace has no event. `timeline` shows one run
    of typical length, for a limited number of devices.
    """

    runs: int
    devices: int
    step_seconds: float
    communication_seconds: float
    exposed_seconds: float
    hosts: int = 1
    platform: str = "cpu"
    kind: str = ""
    hardware: str = ""
    unmeasured: int = 0
    timeline: tuple[DeviceTimeline, ...] = ()

    @property
    def of_accelerators(self) -> bool:
        """Whether the times are those of GPUs or TPUs; CPU devices share one processor."""
        return self.platform != "cpu"
