"""`explain_hlo`: reports on programs that were compiled elsewhere, from HLO or StableHLO text."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import jax

from shardnb.compiler import SourceTexts
from shardnb.compiler.dump_folders import DumpedProgram, names_a_program, programs_of
from shardnb.compiler.dumps import Dumps, read_text
from shardnb.compiler.stages import Stage, program_of_stage, stage_of
from shardnb.findings import report_of_program, report_of_text
from shardnb.findings.each import explain_each
from shardnb.findings.stablehlo import is_stablehlo, report_of_stablehlo
from shardnb.findings.text_evidence import described
from shardnb.report import InvalidInput, Mesh, Report
from shardnb.report.invalid_input import place
from shardnb.report.programs import Programs
from shardnb.sources.quotable import quotable

# What is neither: a text is given in place of a path. Linux opens no longer path.
_IS_TEXT = re.compile(r"\n|HloModule|^\s*module\b")
_HALF_PAIR = re.compile("[\ud800-\udfff]")
_LONGEST_PATH = 4096
_COUNT = re.compile(r"num_partitions=\d+")
_DEVICES = re.compile(r"\b(?:num_partitions|replica_count)=(\d{1,7})\b")


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
    axes, texts = described(mesh), SourceTexts(may_quote=quotable(sources))
    is_text = isinstance(text_or_path, str) and _IS_TEXT.search(text_or_path) is not None
    if is_text:
        return _report(str(text_or_path), axes, texts)
    path = _path(text_or_path)
    with place(str(path)):
        try:
            dumps = _of_folder(path)
            text = "" if dumps else _text(path)
        except OSError as error:
            raise InvalidInput(f"it cannot be read: {error.strerror}") from error
        if dumps:
            return report_of_text(dumps.optimized, axes, texts, dumps=dumps)
        return _report(text, axes, texts)


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
    with place(str(folder)):
        if not folder.is_dir():
            raise InvalidInput("expected the folder of an --xla_dump_to")
        explain = _Explainer(described(mesh), texts)
        every = [each for each in programs_of(folder) if each.ended >= since]
        programs = explain_each(every, explain, only=only, first=first)
        if explain.mesh is not None and programs.communicating and not explain.fits:
            raise InvalidInput(f"none of its programs is for {explain.mesh.size} devices")
        return programs


@dataclass
class _Explainer:
    """Explains programs of dumps; the mesh names the axes of those that have as many devices."""

    mesh: Mesh | None
    texts: SourceTexts
    fits: bool = False

    def __call__(self, program: DumpedProgram) -> Report:
        """Return the report of a program; raises `InvalidInput`."""
        dumps = program.read()
        fits = self.mesh is None or self.mesh.size == _devices(dumps.optimized)
        self.fits |= fits
        return report_of_text(dumps.optimized, self.mesh if fits else None, self.texts, dumps=dumps)


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
