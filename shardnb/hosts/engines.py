"""The engines of a mesh, seen from the kernel: started, called all at once, watched, ended."""

from __future__ import annotations

import itertools
import os
import signal
import sys
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self

from shardnb.hosts import process
from shardnb.hosts.local import LocalCluster
from shardnb.interrupts import uninterrupted
from shardnb.jax_compat.error_wordings import without_gloo
from shardnb.progress import line_on
from shardnb.report.types import ErrorReport
from shardnb.views import hosts as words

_LOOK = 0.05  # seconds between two looks at what the engines do
_TO_SEND = 0.2  # seconds in which ipyparallel's thread has sent what it was given
_TO_START = 60.0  # seconds that a busy machine may take to start the engines
# Seconds that an engine may be stopped (SIGSTOP, a debugger) before it counts as hanging.
_STOPPED = 3.0
# Seconds in which the others end after one has failed or all were interrupted; then they are
# killed, which with the rest is over within ten (tests/hosts/test_failures.py).
_GRACE = 5.0


@dataclass(frozen=True)
class Failed:
    """What an engine answers where a call raised an error: its name, and the traceback's lines.

    `stuck` says that devices of this process still run the program.
    """

    name: str
    message: str
    lines: tuple[str, ...] = ()
    explanation: ErrorReport | None = None
    stuck: bool = False


class HostError(RuntimeError):
    """A call failed in engines; `failed` says how, with the user's own frames."""

    def __init__(self, message: str, failed: Failed | None = None) -> None:
        """Keep what is shown in the place of a traceback of this process."""
        super().__init__(message)
        self.failed = failed

    def _render_traceback_(self) -> list[str]:
        lines = () if self.failed is None else self.failed.lines
        return [*lines, f"{type(self).__name__}: {self}"]


class HostsEnded(HostError):
    """The engines were stopped, since one of them died, hung or did not end when interrupted."""


@dataclass
class Engines:
    """Processes that run JAX programs together, by the number of their host.

    `devices` has the host of each device in JAX's order. `released` are keys of arrays that the
    kernel has no name for any more. `ended` says why they are gone.
    """

    client: Any
    targets: list[int]
    where: list[process.Address]
    devices: tuple[int, ...] = ()
    cluster: LocalCluster | None = None
    profile: str | None = None
    released: deque[str] = field(default_factory=deque)
    ended: str = ""
    _sent: dict[int, tuple[weakref.ref[Any], str]] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def next_number(self) -> int:
        """Return a number that no other array or cell of these engines has."""
        return next(self._numbers)

    def key_of(self, array: Any) -> str | None:
        """Return the key of an array of the kernel's that was sent before."""
        known = self._sent.get(id(array))
        return known[1] if known is not None and known[0]() is array else None

    def remember(self, array: Any, key: str) -> None:
        """Remember that an array was sent, for as long as the kernel has it."""

        def gone(_: Any, number: int = id(array)) -> None:
            self._sent.pop(number, None)
            self.released.append(key)

        self._sent[id(array)] = weakref.ref(array, gone), key

    def releasable(self) -> list[str]:
        """Return the keys of arrays that the engines may drop, each once."""
        keys = []
        with suppress(IndexError):
            while True:
                keys.append(self.released.popleft())
        return keys

    @property
    def count(self) -> int:
        """The number of hosts."""
        return len(self.targets)

    def call(self, function: Callable[..., Any], *args: Any, doing: str = "") -> list[Any]:
        """Call a function of an installed module in every engine; gives the results by host.

        What the engines print is shown meanwhile, by host. Raises `HostError` where the call fails
        in one, `HostsEnded` where one dies or hangs, which ends the others, and what interrupts it.
        """
        if self.ended:
            raise HostsEnded(words.gone(self.ended))
        self.end_where_one_died()
        calls = _Calls(self, function, args)
        with line_on() as say:
            try:
                return calls.results(lambda: say(calls.progress(doing)))
            except KeyboardInterrupt:
                uninterrupted(calls.interrupt)
                raise
            finally:
                calls.show_output()
                calls.forget()

    def states(self) -> dict[int, str]:
        """Return the state of engines that do not answer: `dead` or `stopped`."""
        states = {}
        known = set(self.client.ids)
        for host, target in enumerate(self.targets):
            state = _state(self.where[host].pid) if self.cluster else ""
            if target not in known or state == "dead":
                states[host] = "dead"
            elif state:
                states[host] = state
        return states

    def signal(self, number: signal.Signals, hosts: Iterable[int]) -> None:
        """Send a signal to the processes of hosts, as far as these are there."""
        for host in hosts:
            with suppress(Exception):  # it is gone, as its cluster may be
                if self.cluster:
                    os.kill(self.where[host].pid, number)
                else:
                    self.client.send_signal(number, self.targets[host], block=False)

    def end_where_one_died(self) -> None:
        """Raise `HostsEnded`, and end the others, where a process is gone."""
        if dead := [host for host, state in self.states().items() if state == "dead"]:
            self.end(words.ended(words.DIED, dead, self.where))
            raise HostsEnded(self.ended)

    def end(self, why: str) -> None:
        """End every engine at once; the arrays in them are lost, and nothing in the kernel is."""
        if self.ended:
            return
        self.ended = why
        if self.cluster is None:
            self.signal(signal.SIGKILL, range(self.count))
            time.sleep(_TO_SEND)
        self._forget_client()

    def close(self) -> None:
        """Leave the engines: those that were started here end, those of a profile go on."""
        if self.ended:
            return
        if self.cluster is None:
            with suppress(HostError):
                self.call(process.forget_all)
        self.ended = words.CLOSED
        self._forget_client()

    def _forget_client(self) -> None:
        if self.cluster is not None:
            self.cluster.end()
        with suppress(Exception):  # its sockets may be gone already
            self.client.close()

    def __enter__(self) -> Self:
        """Use the engines for a block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Leave them."""
        self.close()


class _Calls:
    """One call in all engines."""

    def __init__(self, engines: Engines, function: Callable[..., Any], args: Sequence[Any]) -> None:
        self.engines = engines
        self.asked = [engines.client[t].apply_async(function, *args) for t in engines.targets]
        self._shown = [[0, 0] for _ in self.asked]
        self._stopped_since: dict[int, float] = {}
        self._since = time.monotonic()

    def waiting(self) -> list[int]:
        """Return the hosts that have not answered."""
        return [host for host, call in enumerate(self.asked) if not call.ready()]

    def progress(self, doing: str) -> str:
        waiting = self.waiting()
        return words.progress(doing, waiting if len(waiting) < len(self.asked) else [])

    def results(self, say: Callable[[], None]) -> list[Any]:
        failed_at = None
        while self.waiting():
            say()
            self.show_output()
            self._end_where_one_is_gone()
            answers = [self._answer(host) for host in range(len(self.asked))]
            if failed_at is None and any(isinstance(answer, Failed) for answer in answers):
                failed_at = time.monotonic()
            if failed_at is not None and time.monotonic() - failed_at > _GRACE:
                self._raise_ended(words.HANGS_AFTER_FAILURE, self.waiting(), answers)
            time.sleep(_LOOK)
        self._end_where_one_is_gone()
        answers = [self._answer(host) for host in range(len(self.asked))]
        failures = {h: answer for h, answer in enumerate(answers) if isinstance(answer, Failed)}
        if failures:
            self._raise_failed(failures)
        return answers

    def _answer(self, host: int) -> Any:
        """Return what an engine answered; None before that."""
        call = self.asked[host]
        if not call.ready():
            return None
        try:
            return call.get(0)
        except KeyboardInterrupt:
            raise
        except Exception as error:  # noqa: BLE001 - whatever was raised there
            name, message = getattr(error, "ename", ""), getattr(error, "evalue", str(error))
            return Failed(name or type(error).__name__, message)

    def _end_where_one_is_gone(self) -> None:
        self.engines.end_where_one_died()
        states, now = self.engines.states(), time.monotonic()
        for host in states:
            self._stopped_since.setdefault(host, now)
        self._stopped_since = {h: t for h, t in self._stopped_since.items() if h in states}
        if hanging := [h for h, since in self._stopped_since.items() if now - since > _STOPPED]:
            self._raise_ended(words.STOPPED, hanging)

    def interrupt(self) -> None:
        """Interrupt all engines, and end them where one does not end what it does."""
        engines = self.engines
        engines.signal(signal.SIGINT, self.waiting())
        until = time.monotonic() + _GRACE
        while self.waiting() and not engines.states() and time.monotonic() < until:
            time.sleep(_LOOK)
        answers = [self._answer(host) for host in range(len(self.asked))]
        stuck = [h for h, a in enumerate(answers) if isinstance(a, Failed) and a.stuck]
        dead = [host for host, state in engines.states().items() if state == "dead"]
        if hosts := dead or self.waiting() or stuck:
            why = words.DIED if dead else words.NOT_INTERRUPTED
            engines.end(words.ended(why, hosts, engines.where))
            sys.stderr.write(engines.ended + "\n")

    def _raise_ended(self, why: str, hosts: list[int], answers: Sequence[Any] = ()) -> None:
        failures = [answer for answer in answers if isinstance(answer, Failed)]
        self.engines.end(words.ended(why, hosts, self.engines.where))
        raise HostsEnded(self.engines.ended, failures[0] if failures else None)

    def _raise_failed(self, failures: dict[int, Failed]) -> None:
        first = next(iter(failures.values()))
        if stuck := [host for host, failure in failures.items() if failure.stuck]:
            self._raise_ended(words.HANGS_AFTER_FAILURE, stuck, list(failures.values()))
        messages: dict[str, list[int]] = {}
        for host, failure in failures.items():
            messages.setdefault(f"{failure.name}: {failure.message}", []).append(host)
        raise HostError(words.failed(messages, self.engines.count), first)

    def forget(self) -> None:
        """Let ipyparallel drop the answers, which it keeps otherwise."""
        with suppress(Exception):  # what has not been answered cannot be dropped
            self.engines.client.purge_local_results(self.asked)

    def show_output(self) -> None:
        """Show what the engines have printed since the last time, each line with its host."""
        for host, call in enumerate(self.asked):
            for which, stream in enumerate((sys.stdout, sys.stderr)):
                text = (call.stdout, call.stderr)[which]
                new = text[self._shown[host][which] :]
                complete = new if not self.waiting() else new[: new.rfind("\n") + 1]
                self._shown[host][which] += len(complete)
                if complete:
                    stream.write(words.by_host(host, without_gloo(complete)))


def _state(pid: int) -> str:
    """Say what is wrong with a process of this machine: `dead`, `stopped`, or nothing."""
    import psutil

    try:
        status = psutil.Process(pid).status()
    except psutil.Error:
        return "dead"
    if status == psutil.STATUS_ZOMBIE:
        return "dead"
    return "stopped" if status == psutil.STATUS_STOPPED else ""


def started(count: int, devices: int) -> Engines:
    """Start engines on this machine, each with so many emulated CPU devices.

    Raises `MissingExtra` without ipyparallel, and `RuntimeError` where they do not start.
    """
    ipyparallel = _ipyparallel()
    cluster = LocalCluster(count)
    try:
        with line_on() as say:
            say(words.starting(count))
            client = ipyparallel.Client(cluster.file(), timeout=_TO_START)
            client.wait_for_engines(count, timeout=_TO_START, interactive=False)
            return _joined(Engines(client, sorted(client.ids), [], cluster=cluster), devices)
    except BaseException:  # an interrupt, too, leaves no process
        uninterrupted(cluster.end)
        raise


def connected(profile: str, count: int | None, devices: Callable[[int], int] | None) -> Engines:
    """Connect to the engines of a cluster that runs, by its profile; `count` of them, or all.

    `devices` gives how many CPU devices each engine emulates; None uses those that it has.
    """
    ipyparallel = _ipyparallel()
    try:
        client = ipyparallel.Client(profile=profile)
    except (OSError, TimeoutError, ipyparallel.error.TimeoutError) as error:
        raise RuntimeError(words.no_cluster(profile, str(error))) from error
    targets = sorted(client.ids)[:count]
    if not targets or len(targets) < (count or 1):
        client.close()
        raise RuntimeError(words.too_few(profile, len(targets), count))
    engines = Engines(client, targets, [], profile=profile)
    try:
        return _joined(engines, None if devices is None else devices(len(targets)))
    except BaseException:  # an interrupt, too, leaves no socket
        client.close()
        raise


def _joined(engines: Engines, devices: int | None) -> Engines:
    local = engines.cluster is not None
    views = [engines.client[target] for target in engines.targets]
    engines.where = _gathered([view.apply_async(process.address, local=local) for view in views])
    here = process.Versions.here()
    for where in engines.where:
        if where.versions != here:
            raise RuntimeError(words.other_versions(here, where.versions))
    first = engines.where[0]
    same_machine = len({where.host for where in engines.where}) == 1
    coordinator = f"{'127.0.0.1' if same_machine else first.ip}:{first.port}"
    joined = [
        view.apply_async(process.join, coordinator, engines.count, number, devices)
        for number, view in enumerate(views)
    ]
    engines.devices = tuple(_gathered(joined)[0])
    return engines


def _gathered(calls: Sequence[Any]) -> list[Any]:
    """Wait for what the engines answer; raises `RuntimeError` with what one raised."""
    try:
        return [call.get(_TO_START) for call in calls]
    except Exception as error:  # whatever was raised there, as ipyparallel gives it
        raise RuntimeError(words.not_joined(str(error))) from error


def _ipyparallel() -> Any:
    try:
        import ipyparallel
    except ImportError as error:
        raise MissingExtra(words.MISSING_EXTRA) from error
    return ipyparallel


class MissingExtra(ValueError):
    """ipyparallel is not installed; the message names the extra."""
