"""`explain_hlo`: reports on programs that were compiled elsewhere, from HLO or StableHLO text."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path

import jax

from shardnb.compiler import SourceTexts
from shardnb.compiler.dump_folders import DumpedProgram, names_a_program, programs_of
from shardnb.compiler.dumps import Dumps, read_text
from shardnb.compiler.stages import Stage, program_of_stage, stage_of
from shardnb.findings import report_of_program, report_of_text
from shardnb.findings.stablehlo import is_stablehlo, report_of_stablehlo
from shardnb.findings.text_evidence import of_axes
from shardnb.mesh import Grid, parse_mesh
from shardnb.report import InvalidInput, Mesh, Report
from shardnb.report.invalid_input import place
from shardnb.report.programs import Dumped, Programs
from shardnb.sources.quotable import quotable
from shardnb.terms.collectives import KINDS

# What is neither: a text is given in place of a path. Linux opens no longer path.
_IS_TEXT = re.compile(r"\n|HloModule|^\s*module\b")
_HALF_PAIR = re.compile("[\ud800-\udfff]")
_LONGEST_PATH = 4096
_COUNT = re.compile(r"num_partitions=\d+")
_DEVICES = re.compile(r"\b(?:num_partitions|replica_count)=(\d{1,7})\b")
_SENDS = re.compile(rf"\b(?:{'|'.join(KINDS)}|send|recv)(?:-start)?\(")
# Instructions of an optimized program. A sum or a reshard that is called outside of any jit has
# fewer than 20 with its fusions, the smallest training step hundreds
# (test_a_small_program_is_a_line).
LARGE = 50


def explain_hlo(
    text_or_path: str | Path | Stage,
    mesh: str | Mesh | jax.sharding.Mesh | None = None,
    *,
    sources: Sequence[str | Path] = (),
) -> Report:
    """Report on a program from its HLO text, as far as the text shows.

    `text_or_path` is the text of an HLO module or the path of a file that holds one: before or
    after optimization, from CPU, GPU or TPU, from any JAX. StableHLO is read too; it does not have
    the partitioner's collectives yet. `mesh` names the axes, as `data=4,model=2`; without it they
    have the names that the text itself uses, or none. One text does not show who asked for a
    collective, or why. The folder of a dump written with `--xla_dump_hlo_pass_re=spmd|shardy` does:
    pass the folder, or a module in it as `folder/module_0012.jit_step`; `sn.explain_dumps` explains
    each of several. The results of
    `jax.jit(f).lower(x)` and `.compile()` work too.

    A text may name any file of this machine as its source. Lines are shown of cells and modules of
    this session, and of the files and folders in `sources`.

    Raises `sn.InvalidInput`, a `ValueError`, if the file does not exist, if the text is not HLO or
    is truncated, and if the mesh does not have as many devices as the program.

    >>> dump = '''HloModule step, num_partitions=4
    ...
    ... ENTRY main {
    ...   x = f32[8,16]{1,0} parameter(0)
    ...   ROOT sum = f32[8,16]{1,0} all-reduce(x), replica_groups={{0,1},{2,3}}, to_apply=add
    ... }
    ... '''
    >>> [(c.kind, c.axes, c.bytes) for c in explain_hlo(dump, mesh="data=2,model=2").collectives]
    [('all-reduce', ('model',), 512)]
    """
    if not isinstance(text_or_path, str | Path):
        stage = stage_of(text_or_path)
        if stage is None:
            raise TypeError(f"expected HLO text or a path, got the {type(text_or_path).__name__}")
        return report_of_program(program_of_stage(stage, _axes_text(mesh)))
    described, texts = _described(mesh), SourceTexts(may_quote=quotable(sources))
    is_text = isinstance(text_or_path, str) and _IS_TEXT.search(text_or_path) is not None
    if is_text:
        return _report(str(text_or_path), described, texts)
    path = _path(text_or_path)
    with place(str(path)):
        try:
            dumps = _of_folder(path)
            text = "" if dumps else _text(path)
        except OSError as error:
            raise InvalidInput(f"it cannot be read: {error.strerror}") from error
        if dumps:
            return report_of_text(dumps.optimized, described, texts, dumps=dumps)
        return _report(text, described, texts)


def explain_dumps(
    folder: str | Path,
    mesh: str | Mesh | jax.sharding.Mesh | None = None,
    *,
    only: str | None = None,
    first: int | None = None,
    sources: Sequence[str | Path] = (),
) -> Programs:
    """Report on every large program that a run compiled, from the folder that XLA dumped to.

    Run any program over XLA with `XLA_FLAGS="--xla_dump_to=FOLDER --xla_dump_hlo_as_text
    --xla_dump_hlo_pass_re=shardy|spmd-partitioning"`, or use `shardnb run`. The reports say who
    asked for each collective, and why.

    Args:
        folder: the folder, also one that holds the folders of several hosts.
        mesh: names the axes of the programs that have as many devices. None: those that the dumps
            themselves name.
        only: a pattern such as `*train_step*` for the names of the programs. They are explained
            also where they are small, and where they have no collectives.
        first: how many programs are explained at most, in the order of their compiles.
        sources: files and folders of which lines may be shown and read for the names of values.

    Returns:
        `Programs`: `reports` are those of the large programs, and `str` writes them all. A program
        that was compiled several times is explained once.

    Raises:
        InvalidInput: the folder does not exist or is not that of a dump, the mesh fits none of the
        programs, and `first` is not positive. A program whose text is not valid is in `unread`.

    >>> import jax, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     options = {"xla_dump_to": folder, "xla_dump_hlo_as_text": True}
    ...     compiled = jax.jit(lambda x: x + 1).lower(1.0).compile(options)
    ...     explain_dumps(folder).silent
    ('jit__lambda',)
    """
    texts = SourceTexts(may_quote=quotable(sources))
    programs = read_programs(Path(folder), mesh, only=only, first=first, texts=texts)
    if programs.is_empty:
        raise InvalidInput(f"{folder}: there is no program in it that XLA has optimized")
    return programs


def read_programs(
    folder: Path,
    mesh: str | Mesh | jax.sharding.Mesh | None,
    *,
    only: str | None,
    first: int | None,
    texts: SourceTexts,
    since: float = 0,
) -> Programs:
    """Explain the programs of a folder, as `explain_dumps` does, with lines of these `texts`.

    Of a folder that had dumps before, those whose compile ended `since` then are read.
    """
    if first is not None and first < 1:
        raise InvalidInput(f"expected at least 1 program, got {first}")
    with place(str(folder)):
        if not folder.is_dir():
            raise InvalidInput("expected the folder of an --xla_dump_to")
        every = [each for each in programs_of(folder) if each.ended >= since]
        chosen = [each for each in every if only is None or is_named(each.title, only)]
        if every and not chosen:
            titles = ", ".join(dict.fromkeys(each.title for each in every))
            raise InvalidInput(f"none of the programs is named {only}; there are {titles}")
        return _Reader(_described(mesh), texts, by_name=only is not None, first=first).read(chosen)


def is_named(title: str, pattern: str) -> bool:
    """Whether a pattern is the name of a program, which JAX begins with `jit_`.

    >>> is_named("jit_train_step", "train*"), is_named("jit_train_step", "step")
    (True, False)
    """
    return fnmatchcase(title, pattern) or fnmatchcase(title.removeprefix("jit_"), pattern)


@dataclass
class _Reader:
    """Explains programs one after another, until there are enough."""

    mesh: Mesh | None
    texts: SourceTexts
    by_name: bool
    first: int | None
    _large: list[Dumped] = field(default_factory=list)
    _small: list[Dumped] = field(default_factory=list)
    _silent: list[str] = field(default_factory=list)
    _unread: list[tuple[str, str]] = field(default_factory=list)
    _fits: bool = False

    def read(self, programs: Sequence[DumpedProgram]) -> Programs:
        """Explain programs; one of several with the same text, and none after the `first`."""
        alike: dict[str, list[DumpedProgram]] = {}
        for program in programs:
            try:
                alike.setdefault(sha256(program.text().encode()).hexdigest(), []).append(program)
            except InvalidInput as error:
                self._unread.append((program.name, str(error)))
        left = list(alike.values())
        while left and (self.first is None or len(self._large) < self.first):
            program, *others = left.pop(0)
            try:
                self._explain(program, 1 + len(others))
            except InvalidInput as error:
                self._unread.append((program.name, str(error)))
        if self.mesh is not None and (self._large or self._small) and not self._fits:
            raise InvalidInput(f"none of its programs is for {self.mesh.size} devices")
        if not self._large and not left:
            self._large, self._small = self._small[: self.first], []
        return Programs(
            tuple(self._large),
            tuple(self._small),
            tuple(self._silent),
            tuple(self._unread),
            sum(map(len, left)),
        )

    def _explain(self, program: DumpedProgram, compiles: int) -> None:
        text = program.text()
        if not self.by_name and not _SENDS.search(text):
            self._silent += [program.title] * compiles
            return
        fits = self.mesh is not None and self.mesh.size == _devices(text)
        dumps = program.read()
        report = report_of_text(
            dumps.optimized, self.mesh if fits else None, self.texts, dumps=dumps
        )
        self._fits |= fits
        explained = Dumped(report, program.name, compiles)
        if self.by_name or (report.collectives and _is_large(text)):
            self._large.append(explained)
        elif report.collectives:
            self._small.append(explained)
        else:
            self._silent += [program.title] * compiles


def is_wanted(program: DumpedProgram, only: str | None) -> bool:
    """Whether a program has the name that is asked for, or is large and may have collectives."""
    if only is not None:
        return is_named(program.title, only)
    text = program.text()
    return _SENDS.search(text) is not None and _is_large(text)


def _is_large(text: str) -> bool:
    """Whether an optimized program is more than one operation that was called by itself."""
    return text.count(" = ") >= LARGE


def _devices(text: str) -> int:
    return math.prod(int(number) for number in _DEVICES.findall(text.partition("\n")[0]))


def _report(text: str, mesh: Mesh | None, texts: SourceTexts) -> Report:
    if half := _HALF_PAIR.search(text):
        raise InvalidInput(
            f"expected text, got half of a surrogate pair at character {half.start()}"
        )
    if is_stablehlo(text):
        return report_of_stablehlo(text, mesh)
    return report_of_text(text, mesh, texts)


def _axes_text(mesh: str | Mesh | jax.sharding.Mesh | None) -> str | jax.sharding.Mesh | None:
    if isinstance(mesh, Mesh):
        return ",".join(f"{axis.name}={axis.size}" for axis in mesh.axes)
    return mesh


def _path(given: str | Path) -> Path:
    """Return what is given as the path of a file or a folder, if it can be that of one."""
    shown = str(given)
    if not shown or "\0" in shown or len(shown) > _LONGEST_PATH:
        raise InvalidInput(f"expected the text of an HLO module or a path, got {shown[:200]!r}")
    return Path(given)


def _of_folder(path: Path) -> Dumps | None:
    """Return the dumps of the only module in a folder, or of the module named in the path."""
    named = names_a_program(path) and path.parent.is_dir()
    folder = path.is_dir() and not named
    if not folder and not named:
        return None
    programs = programs_of(path if folder else path.parent)
    chosen = [each for each in programs if folder or each.name == path.name]
    if len(chosen) > 1:
        # A training step is dumped with small programs of one device, such as a random key's.
        split = [each for each in chosen if _COUNT.search(each.text()[:2000])]
        chosen = split or chosen
    if len(chosen) != 1:
        there = ", ".join(each.name for each in programs) or "none with an optimized program"
        raise InvalidInput(f"expected the name of one module of a dump; the modules are {there}")
    return chosen[0].read()


def _text(path: Path) -> str:
    """Return the text of a file."""
    if not path.exists():
        raise InvalidInput("there is no such file, and it is not the text of an HLO module")
    return read_text(path)


def _described(mesh: str | Mesh | jax.sharding.Mesh | None) -> Mesh | None:
    if isinstance(mesh, str):
        return of_axes(parse_mesh(mesh).axes)
    return Grid(mesh).describe() if isinstance(mesh, jax.sharding.Mesh) else mesh
