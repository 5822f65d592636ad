"""`read_profile`: reports on the programs of a trace that was taken anywhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import jax

from shardnb.compiler import SourceTexts
from shardnb.compiler.collector import collector_paused
from shardnb.compiler.dump_folders import DumpedProgram, programs_of
from shardnb.cost import priced
from shardnb.findings.assemble import assemble
from shardnb.findings.each import SENDS, check_first, named
from shardnb.findings.text_evidence import described, evidence_of_text
from shardnb.profiles.executions import Device, Operations, executed_in
from shardnb.profiles.measure import with_measurements
from shardnb.profiles.trace_folder import files_of
from shardnb.profiles.xplane import TracedProgram, names_in, read_file
from shardnb.report import InvalidInput, Mesh, Report, valid
from shardnb.report.invalid_input import place
from shardnb.report.programs import Dumped, Programs
from shardnb.sources.quotable import quotable

_NO_OPERATIONS = (
    "it has no operation of a compiled program: expected a trace taken while the program ran, with "
    "a host tracer level of at least 1 where it ran on CPU devices"
)
_NO_PROGRAMS = (
    "it has none of the programs that ran: they are in the plane /host:metadata unless the trace "
    "was taken with enable_hlo_proto=False"
)


def read_profile(
    path: str | Path,
    mesh: str | Mesh | jax.sharding.Mesh | None = None,
    *,
    dumps: str | Path | None = None,
    only: str | None = None,
    first: int | None = None,
    sources: Sequence[str | Path] = (),
) -> Programs:
    """Report on the programs of a profiler's trace, with the measured time of each collective.

    A trace holds the programs that ran, so it is enough for their collectives, lines and module
    paths. The file or folder may come from any machine: what `jax.profiler.trace` or XProf wrote.

    Args:
        path: the file `HOST.xplane.pb`, or a folder with the files of all hosts. Of several
            sessions the newest is read.
        mesh: names the axes of the programs that have as many devices, as `data=4,model=2`. None:
            those that the programs name.
        dumps: the folder of an `--xla_dump_to` of the same run. The reports then say who asked for
            each collective, and why. None: `path`, if it has such dumps too.
        only: a pattern such as `*train_step*` for the names of the programs.
        first: how many programs are explained at most.
        sources: files and folders of which lines may be shown.

    Returns:
        `Programs`: those with collectives, the one that took most time first. `Report.profile`
        describes a run, and `Collective.measured` has its seconds.

    Raises:
        InvalidInput: the path is not that of a trace, it is damaged, or it has no programs that
        ran; the mesh fits none of the programs; no program has the name.

    >>> import jax, jax.numpy as jnp, tempfile
    >>> program = jax.jit(jnp.tanh).lower(jnp.ones(8)).compile()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with jax.profiler.trace(folder):
    ...         _ = program(jnp.ones(8)).block_until_ready()
    ...     "jit_tanh" in read_profile(folder).silent
    True
    """
    path = Path(path)
    with place(str(path)):
        try:
            files, note = files_of(path)
            programs = _programs(files, path)
        except OSError as error:
            raise InvalidInput(f"it cannot be read: {error.strerror}") from error
        folder = Path(dumps) if dumps is not None else path
        dumped = programs_of(folder) if folder.is_dir() else []
        reader = _Reader(described(mesh), SourceTexts(may_quote=quotable(sources)), dumped, note)
        return reader.read(programs, only=only, first=first)


@dataclass
class _Traced:
    """A program of a trace, and what each device of all hosts executed of it."""

    program: TracedProgram
    kind: str = ""
    executed: dict[Device, Operations] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """A name that no other program of its host has."""
        return f"{self.program.name}({self.program.id})"

    @property
    def title(self) -> str:
        """The program's own name."""
        return self.program.name

    @property
    def seconds(self) -> float:
        """How long the devices executed it, on the one that took longest."""
        each = self.executed.values()
        return max((float((o.end - o.start).sum()) for o in each), default=0.0)

    def text(self) -> str:
        """Return its text."""
        return self._text

    @cached_property
    def _text(self) -> str:
        return self.program.text()


def _programs(files: Iterable[Path], root: Path) -> list[_Traced]:
    """Return the programs that ran, the same program of several hosts once; longest first."""
    found: dict[tuple[str, int], _Traced] = {}
    any_ran = False
    for path in files:
        with nullcontext() if path == root else place(path.name):
            file = read_file(path)
            executed = executed_in(file)
        any_ran |= bool(executed)
        kind = next((plane.kind for plane in file.planes if plane.device), "")
        known = {program.id: program for program in file.programs}
        compiles = Counter[str]()
        for key, devices in sorted(executed.items()):
            if (program := known.get(key.id)) is not None:
                # What a host compiled twice is two programs there, in the order of their ids.
                same = _fingerprint(program)
                alike = found.setdefault((same, compiles[same]), _Traced(program, kind))
                alike.executed.update(devices)
                compiles[same] += 1
    if not any_ran:
        raise InvalidInput(_NO_OPERATIONS)
    if not found:
        raise InvalidInput(_NO_PROGRAMS)
    return sorted(found.values(), key=lambda traced: -traced.seconds)


def _fingerprint(program: TracedProgram) -> str:
    """Return what is the same on each host: a program's id, which its proto has too, is not."""
    return f"{program.name} {names_in(program.text())}"


@dataclass(frozen=True)
class _Reader:
    """Explains the programs of a trace; the mesh names the axes of those with as many devices."""

    mesh: Mesh | None
    texts: SourceTexts
    dumped: Sequence[DumpedProgram]
    note: str = ""

    def read(self, programs: Sequence[_Traced], *, only: str | None, first: int | None) -> Programs:
        """Explain programs, those that took longest first; raises `InvalidInput`."""
        check_first(first)
        explained, silent, unread = list[Dumped](), list[str](), list[tuple[str, str]]()
        left, fits = 0, self.mesh is None
        for program in named(programs, only):
            if only is None and not SENDS.search(program.text()):
                silent.append(program.title)
            elif first is not None and len(explained) >= first:
                left += 1
            else:
                try:
                    report = self._report(program)
                except InvalidInput as error:
                    unread.append((program.name, str(error)))
                    continue
                explained.append(Dumped(report, program.name))
                fits |= self.mesh is not None and report.mesh.shape == self.mesh.shape
        if self.mesh is not None and explained and not fits:
            raise InvalidInput(f"none of its programs is for {self.mesh.size} devices")
        return Programs(tuple(explained), (), tuple(silent), tuple(unread), left)

    def _report(self, traced: _Traced) -> Report:
        """Return the report of a program; raises `InvalidInput`."""
        text, ids = traced.text(), traced.program.device_ids
        dump = self._dump(traced)
        dumps = None if dump is None else dump.read()
        text = text if dumps is None else dumps.optimized
        fits = self.mesh is not None and self.mesh.size == traced.program.devices
        with collector_paused():
            evidence = evidence_of_text(text, self.mesh if fits else None, self.texts, dumps=dumps)
            report = valid.check(assemble(evidence))
        platform = next(iter(traced.executed)).platform
        kind = traced.kind or ("cpu" if platform == "cpu" else report.mesh.kind)
        target = "cpu" if platform == "cpu" else "attached"
        on = replace(report.mesh, platform=platform, kind=kind, target=target)
        if len(ids) == on.size:
            on = replace(on, device_ids=ids)
        notes = (*((self.note,) if self.note else ()), *report.notes)
        report = priced(replace(report, mesh=on, notes=notes))
        return with_measurements(report, evidence.module, traced.executed, traced.kind)

    def _dump(self, traced: _Traced) -> DumpedProgram | None:
        """Return the dump of a program: one of its name, with instructions of the same names."""
        alike = [each for each in self.dumped if each.title == traced.title]
        names = names_in(traced.text()) if alike else ""
        return next((each for each in reversed(alike) if names_in(each.text()) == names), None)
