"""The folder of an `--xla_dump_to`: which programs it has, and what XLA wrote of each.

A folder may come from anywhere: nothing outside of it is read, so links are left out, and there is
a limit to what is read.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from shardnb.compiler.dumps import Dumps, memory_texts, of_files, read_text
from shardnb.report.invalid_input import InvalidInput

# XLA writes the time before a name with `--xla_dump_include_timestamp`, which keeps apart what
# several processes write into one folder.
_MODULE = re.compile(r"(?:\d+\.)?(module_\d+\.([\w-]+))")
_OPTIMIZED = re.compile(r"[._]after_optimizations\.txt$")
_PLATFORM = re.compile(r"[._](cpu|gpu|tpu)_(?:after_optimizations|comp_env)")
_SHARDY = "shardy"
# A job of a day on many hosts leaves some ten thousand; a whole disk is not the folder of a dump.
_MOST_FILES = 200_000
# Above the texts of the largest models; a larger one would take more memory than a laptop has.
_MOST_BYTES = 1 << 30
_MIXED = (
    "causes and requested shardings may be missing: several programs of this folder have one name, "
    "{}, and Shardy's modules do not say whose they are"
)


@dataclass(frozen=True)
class DumpedProgram:
    """A program of a folder, of which nothing is read before it is asked for.

    `name` tells it from others, such as `module_0012.jit_step`, and `title` is the program's own.
    `problem` says what could be of another program.
    """

    name: str
    title: str
    files: tuple[Path, ...]
    problem: str = ""

    def text(self) -> str:
        """Read the text of the program as the devices run it; raises `InvalidInput`."""
        return read_text(self._optimized, _MOST_BYTES)

    @property
    def is_complete(self) -> bool:
        """Whether XLA wrote the optimized program, which it does at the end of a compile."""
        return any(_OPTIMIZED.search(file.name) for file in self.files)

    @property
    def ended(self) -> float:
        """When its compile ended, as the file system says."""
        return self._optimized.stat().st_mtime

    @property
    def bytes(self) -> int:
        """Bytes of all its files."""
        return sum(file.stat().st_size for file in self.files)

    @property
    def _optimized(self) -> Path:
        return next(file for file in reversed(self.files) if _OPTIMIZED.search(file.name))

    @property
    def platform(self) -> str:
        """What it was compiled for, "" where no file says so."""
        found = (_PLATFORM.search(file.name) for file in self.files)
        return next((match[1] for match in found if match), "")

    def read(self) -> Dumps:
        """Read what XLA wrote of it; raises `InvalidInput` for what is not text."""
        dumps = of_files(self.files, _MOST_BYTES)
        dumps.optimized = self.text()
        dumps.buffers, dumps.live_ranges = memory_texts(self.files, _MOST_BYTES)
        dumps.platform = self.platform
        dumps.problems += [self.problem] if self.problem else []
        return dumps


def names_a_program(path: Path) -> bool:
    """Whether a path is that of a program in a folder, such as `dumps/module_0012.jit_step`.

    JAX makes folders of such names beside XLA's files.
    """
    return _MODULE.match(path.name) is not None and not path.is_file()


def programs_of(folder: Path) -> list[DumpedProgram]:
    """Return the programs in the folder of an `--xla_dump_to`, in the order of their compiles.

    One without its optimized program is left out: its compile did not end. Raises `InvalidInput`
    for a folder that has too many files to be that of a dump.
    """
    groups: dict[tuple[Path, str], list[Path]] = defaultdict(list)
    shardy: dict[tuple[Path, str], list[Path]] = defaultdict(list)
    for file in _files(folder):
        inner, outer = file.parent, file.parent.parent
        if (match := _MODULE.match(inner.name)) and outer.name == _SHARDY:
            shardy[outer.parent, match[1]].append(file)
        elif match := _MODULE.match(file.name):
            groups[inner, match[0]].append(file)
    found = [_program(folder, inside, name, files) for (inside, name), files in groups.items()]
    complete = [program for program in found if program.is_complete]
    return list(_with_shardy(complete, shardy))


def _program(folder: Path, inside: Path, name: str, files: Sequence[Path]) -> DumpedProgram:
    match = _MODULE.match(name)
    title = match[2] if match else name
    return DumpedProgram(str(inside.relative_to(folder) / name), title, tuple(files))


def _files(folder: Path) -> Iterator[Path]:
    """Yield the regular files of a folder in the order of their names; links are not followed."""
    count = 0
    for path, folders, names in os.walk(folder):
        folders.sort()
        count += len(names)
        if count > _MOST_FILES:
            raise InvalidInput(
                f"expected the folder of an --xla_dump_to, got one of more than {_MOST_FILES:,} "
                "files"
            )
        for name in sorted(names):
            file = Path(path, name)
            if not file.is_symlink():
                yield file


def _with_shardy(
    programs: Iterable[DumpedProgram], shardy: dict[tuple[Path, str], list[Path]]
) -> Iterator[DumpedProgram]:
    """Give each program Shardy's modules of it, whose names have no time."""
    alike: dict[tuple[Path, str], list[DumpedProgram]] = defaultdict(list)
    for program in programs:
        match = _MODULE.match(Path(program.name).name)
        alike[program.files[0].parent, match[1] if match else ""].append(program)
    for key, same in alike.items():
        of_all = tuple(shardy.get(key, ()))
        if of_all and len(same) > 1 and len({_start(program) for program in same}) > 1:
            yield from (replace(each, problem=_MIXED.format(key[1])) for each in same)
        else:
            yield from (replace(each, files=each.files + of_all) for each in same)


def _start(program: DumpedProgram) -> str:
    """Return the program before its compile, "" where that was not written."""
    files = [file for file in program.files if file.name.endswith(".before_optimizations.txt")]
    return read_text(files[-1], _MOST_BYTES) if files else ""
