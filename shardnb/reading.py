"""`explain_hlo`: reports on programs that were compiled elsewhere, from HLO or StableHLO text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import jax

from shardnb.compiler import SourceTexts
from shardnb.compiler.dumps import Dumps, read_folder, read_text
from shardnb.compiler.stages import Stage, program_of_stage, stage_of
from shardnb.findings import report_of_program, report_of_text
from shardnb.findings.stablehlo import is_stablehlo, report_of_stablehlo
from shardnb.findings.text_evidence import of_axes
from shardnb.mesh import Grid, parse_mesh
from shardnb.report import InvalidInput, Mesh, Report
from shardnb.report.invalid_input import place
from shardnb.sources.quotable import quotable

# What is neither: a text is given in place of a path. Linux opens no longer path.
_IS_TEXT = re.compile(r"\n|HloModule|^\s*module\b")
_HALF_PAIR = re.compile("[\ud800-\udfff]")
_LONGEST_PATH = 4096
_COUNT = re.compile(r"num_partitions=\d+")


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
    pass the folder, or a module in it as `folder/module_0012.jit_step`. The results of
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
    whole = path.is_dir()
    if not whole and (path.exists() or not path.parent.is_dir() or "module_" not in path.name):
        return None
    modules = read_folder(path if whole else path.parent)
    chosen = [name for name in modules if whole or name == path.name]
    if len(chosen) > 1:
        # A training step is dumped with small programs of one device, such as a random key's.
        split = [name for name in chosen if _COUNT.search(modules[name].optimized[:2000])]
        chosen = split or chosen
    if len(chosen) != 1:
        there = ", ".join(modules) or "none with an optimized program"
        raise InvalidInput(f"expected the name of one module of a dump; the modules are {there}")
    return modules[chosen[0]]


def _text(path: Path) -> str:
    """Return the text of a file."""
    if not path.exists():
        raise InvalidInput("there is no such file, and it is not the text of an HLO module")
    return read_text(path)


def _described(mesh: str | Mesh | jax.sharding.Mesh | None) -> Mesh | None:
    if isinstance(mesh, str):
        return of_axes(parse_mesh(mesh).axes)
    return Grid(mesh).describe() if isinstance(mesh, jax.sharding.Mesh) else mesh
