"""The hosts of `%mesh --hosts` and `--cluster`: started, taken again, stopped."""

from __future__ import annotations

from shardnb.hosts.engines import Engines, MissingExtra, connected, started
from shardnb.magics import options
from shardnb.magics.cell import CellError
from shardnb.magics.options import MagicLine
from shardnb.views import hosts as words


def wants_hosts(line: MagicLine) -> bool:
    """Whether a `%mesh` line is for hosts."""
    return line.has(options.HOSTS) or line.has(options.CLUSTER)


class Hosts:
    """The engines that run for a notebook: one set, which several meshes may use in turn."""

    def __init__(self) -> None:
        """Begin with none."""
        self.running: Engines | None = None

    def for_mesh(self, line: MagicLine, size: int) -> Engines:
        """Return the engines that a `%mesh` line asks for; those that run where they fit.

        Raises `CellError` where they cannot share the devices of the mesh equally.
        """
        count, profile = _number(line), line.text(options.CLUSTER)
        attached = line.text(options.ON) == "attached"
        if line.text(options.ON) not in (None, "cpu", "attached"):
            raise CellError(words.ONLY_RUNNING_DEVICES)
        if profile is None and attached:
            raise CellError(words.ATTACHED_NEEDS_CLUSTER)
        if count and size % count:
            raise CellError(words.uneven(size, count))
        if (running := self._fitting(profile, count, size)) is not None:
            return running
        self.stop()
        try:
            if profile is None:
                self.running = started(count or 1, size // (count or 1))
            else:
                share = None if attached else (lambda hosts: _share(size, hosts))
                self.running = connected(profile, count, share)
        except (MissingExtra, RuntimeError) as error:
            raise CellError(str(error)) from error
        if len(self.running.devices) != size:
            devices = len(self.running.devices)
            self.stop()
            raise CellError(words.other_number(size, devices))
        return self.running

    def _fitting(self, profile: str | None, count: int | None, size: int) -> Engines | None:
        running = self.running
        if running is None or running.ended or running.states():
            return None
        fits = running.profile == profile and count in (None, running.count)
        return running if fits and len(running.devices) == size else None

    def stop(self) -> None:
        """Stop the engines that were started here, and leave those of a cluster."""
        if self.running is not None:
            self.running.close()
            self.running = None


def _number(line: MagicLine) -> int | None:
    text = line.text(options.HOSTS)
    return None if text is None else int(text)


def _share(size: int, hosts: int) -> int:
    if size % hosts:
        raise CellError(words.uneven(size, hosts))
    return size // hosts
