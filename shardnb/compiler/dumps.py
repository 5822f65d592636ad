"""The dumps that XLA writes while it partitions: programs, Shardy's modules, warnings."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile

from shardnb.interrupts import held
from shardnb.jax_compat import mlir
from shardnb.jax_compat.parts import NotAvailable
from shardnb.jax_compat.process_lock import PROCESS_LOCK
from shardnb.jax_compat.xla import OWN_FOLDER
from shardnb.report.invalid_input import InvalidInput
from shardnb.terms.xla_dumps import PASSES
from shardnb.texts import shardy
from shardnb.texts.shardy_results import Propagated, Stated, read_propagated, read_stated

_BUFFERS = "after_optimizations-buffer-assignment.txt"
_LIVE_RANGES = "after_optimizations-live-range.txt"


@dataclass
class Dumps:
    """The evidence of one compile; a text is "" if XLA did not write it.

    `before` and `partitioned` are HLO right before and right after the partitioner, `stated` and
    `propagated` Shardy's modules before and after propagation, `warnings` what the compiler
    wrote to file descriptor 2. `optimized` is the HLO at the end of a program that does not fit
    into memory or was compiled elsewhere; `buffers` is what each allocation of memory holds, and
    `live_ranges` when. `platform` is what it was compiled for, where a folder says so. `problems`
    says why a module could not be read, after the first attempt.
    """

    before: str = ""
    partitioned: str = ""
    stated: str = ""
    propagated: str = ""
    warnings: str = ""
    optimized: str = ""
    buffers: str = ""
    live_ranges: str = ""
    platform: str = ""
    problems: list[str] = field(default_factory=list, compare=False)

    @cached_property
    def parsed_stated(self) -> mlir.Module:
        """`stated` as MLIR; raises `ValueError` if this jaxlib cannot parse it."""
        return mlir.Module(self.stated)

    @cached_property
    def parsed_propagated(self) -> mlir.Module:
        """`propagated` as MLIR; raises `ValueError` if this jaxlib cannot parse it."""
        return mlir.Module(self.propagated)

    @cached_property
    def stated_module(self) -> shardy.Module:
        """Shardy's module before propagation, empty if XLA did not write it."""
        return self._read("stated", shardy.read, shardy.Module())

    @cached_property
    def before_propagation(self) -> Stated:
        """The results and the constraints of Shardy's module before propagation."""
        return self._read("stated", read_stated, Stated())

    @cached_property
    def after_propagation(self) -> Propagated:
        """The results and the rules of Shardy's module after propagation."""
        return self._read("propagated", read_propagated, Propagated())

    def _read[T](self, name: str, reader: Callable[[mlir.Module], T], none: T) -> T:
        """Read a module; if it cannot be read it counts as empty, and `problems` says so."""
        try:
            return reader(getattr(self, f"parsed_{name}")) if getattr(self, name) else none
        except (ValueError, NotAvailable) as error:
            self.problems.append(f"causes and requested shardings may be missing: {error}")
            return none


@dataclass
class Recorder:
    """Collects the dumps of the compile that runs with `options`."""

    folder: Path
    options: dict[str, str | bool] = field(init=False)
    dumps: Dumps = field(default_factory=Dumps)

    def __post_init__(self) -> None:
        """Prepare the compiler options that make XLA write."""
        self.options = {
            "xla_dump_to": str(self.folder),
            "xla_dump_hlo_pass_re": PASSES,
            "xla_dump_hlo_as_text": True,
            "xla_dump_buffer_assignment_analysis": True,  # the live ranges
        }

    def read(self) -> None:
        """Read the dumps into `dumps`."""
        files = sorted(self.folder.rglob("*"))
        self.dumps = of_files(files)
        self.dumps.optimized = _last(files, ".oom_intermediate_module.txt")
        self.dumps.buffers, self.dumps.live_ranges = memory_texts(files)


def of_files(files: Sequence[Path], most: int | None = None) -> Dumps:
    """Read what XLA wrote of one program while it partitioned it, each file of `most` bytes."""

    def last(*parts: str) -> str:
        return _last(files, *parts, most=most)

    return Dumps(
        before=last(".before_spmd-partitioning", ".before_tpu-spmd-partitioning"),
        partitioned=last(".after_spmd-partitioning", ".after_tpu-spmd-partitioning"),
        stated=last("before_propagation.mlir"),
        propagated=last("after_propagation.mlir"),
    )


def memory_texts(files: Sequence[Path], most: int | None = None) -> tuple[str, str]:
    """Read what each allocation of memory holds, and when its values are alive."""
    return _last(files, _BUFFERS, most=most), _last(files, _LIVE_RANGES, most=most)


def _last(files: Sequence[Path], *parts: str, most: int | None = None) -> str:
    found = [file for file in files if any(part in file.name for part in parts)]
    return read_text(found[-1], most) if found else ""


def read_text(file: Path, most: int | None = None) -> str:
    """Read a file of text; raises `InvalidInput` for what is not one, such as a FIFO.

    One of more than `most` bytes is not read either.
    """
    if not file.is_file():
        raise InvalidInput(f"{file.name}: expected a file")
    try:
        if most is not None and file.stat().st_size > most:
            raise InvalidInput(f"{file.name}: expected at most {most:,} bytes of text")
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{file.name}: expected text: write the dump with --xla_dump_hlo_as_text"
        ) from error
    except OSError as error:
        raise InvalidInput(f"{file.name}: it cannot be read: {error.strerror}") from error


@contextmanager
def recording() -> Iterator[Recorder]:
    """Yield a recorder; on exit its dumps are read and the files are removed."""
    folder = held(lambda: TemporaryDirectory(prefix=OWN_FOLDER), TemporaryDirectory[str].cleanup)
    with folder as made:
        recorder = Recorder(Path(made.name))
        yield recorder
        recorder.read()


@contextmanager
def captured_fd2() -> Iterator[list[str]]:
    """Capture what C++ writes to file descriptor 2, and restore the descriptor afterwards.

    If the block raises, the text is passed on, so that nothing is lost. One thread at a time: two
    would restore each other's descriptor.
    """
    caught, done = [""], False
    redirected: _Redirected | None = None
    with PROCESS_LOCK:
        sys.stderr.flush()
        try:
            with held(_Redirected, _Redirected.end) as redirected:
                yield caught
                done = True
        finally:
            caught[0] = redirected.end() if redirected is not None else ""
            if not done:
                pass_on(caught[0])


class _Redirected:
    """Descriptor 2 leads to a file, until the end."""

    def __init__(self) -> None:
        """Redirect it."""
        self._file, self._text = TemporaryFile(), ""  # noqa: SIM115 - closed by `end`
        self._saved: int | None = os.dup(2)
        os.dup2(self._file.fileno(), 2)

    def end(self) -> str:
        """Restore it, and return what was written meanwhile; the second time, too."""
        if self._saved is not None:
            os.dup2(self._saved, 2)
            os.close(self._saved)
            self._saved = None
            with self._file as file:
                file.seek(0)
                self._text = file.read().decode(errors="replace")
        return self._text


def pass_on(text: str) -> None:
    """Write text to file descriptor 2, where it would have gone."""
    if text:
        os.write(2, text.encode())
