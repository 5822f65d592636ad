"""The folder of an `--xla_dump_to`, which may come from anywhere."""

from __future__ import annotations

import os

import pytest

from shardnb.compiler import dump_folders
from shardnb.compiler.dump_folders import programs_of
from shardnb.report import InvalidInput


def write(folder, *names, text="HloModule m\n"):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def names(folder):
    return [program.name for program in programs_of(folder)]


def test_a_program_has_the_platform_that_its_files_name(tmp_path):
    write(
        tmp_path,
        "module_0001.jit_f.cpu_after_optimizations.txt",
        "module_0002.jit_f.sm_9.0_gpu_after_optimizations.txt",
        "module_0003.jit_f.cl_1.after_optimizations.txt",
        "module_0003.jit_f.cl_1.tpu_comp_env.txt",
        "module_0004.SyncTensorsGraph.25.after_optimizations.txt",
    )
    found = {each.name: (each.title, each.platform) for each in programs_of(tmp_path)}
    assert found == {
        "module_0001.jit_f": ("jit_f", "cpu"),
        "module_0002.jit_f": ("jit_f", "gpu"),
        "module_0003.jit_f": ("jit_f", "tpu"),
        "module_0004.SyncTensorsGraph": ("SyncTensorsGraph", ""),
    }


def test_a_program_whose_compile_did_not_end_is_left_out(tmp_path):
    write(tmp_path, "module_0001.jit_f.before_optimizations.txt")
    assert names(tmp_path) == []


def test_processes_and_hosts_are_kept_apart(tmp_path):
    """Each of them numbers its modules from 0."""
    write(
        tmp_path,
        "1796117047110467.module_0001.jit_f.cpu_after_optimizations.txt",
        "1796117047110999.module_0001.jit_f.cpu_after_optimizations.txt",
        "host1/module_0001.jit_f.cpu_after_optimizations.txt",
    )
    assert names(tmp_path) == [
        "1796117047110467.module_0001.jit_f",
        "1796117047110999.module_0001.jit_f",
        "host1/module_0001.jit_f",
    ]


@pytest.mark.parametrize(("other", "known"), [("HloModule m\n", True), ("HloModule n\n", False)])
def test_modules_of_shardy_are_given_to_programs_that_are_surely_theirs(tmp_path, other, known):
    """Shardy's files have no time in their names: a second process writes over the first one's."""
    for time, text in ((1796117047110467, "HloModule m\n"), (1796117047110999, other)):
        name = f"{time}.module_0001.jit_f"
        write(tmp_path, f"{name}.cpu_after_optimizations.txt")
        write(tmp_path, f"{name}.before_optimizations.txt", text=text)
    write(tmp_path, "shardy/module_0001.jit_f/01.before_propagation.mlir", text="module {}")
    for program in programs_of(tmp_path):
        dumps = program.read()
        assert dumps.stated == ("module {}" if known else "")
        assert [problem.startswith("causes and requested") for problem in dumps.problems] == (
            [] if known else [True]
        )


def test_links_are_not_followed(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("a private text")
    folder = tmp_path / "dump"
    folder.mkdir()
    (folder / "module_0001.jit_f.cpu_after_optimizations.txt").symlink_to(secret)
    (folder / "elsewhere").symlink_to(tmp_path)
    assert names(folder) == []


def test_a_pipe_is_refused_without_waiting_for_it(tmp_path):
    os.mkfifo(tmp_path / "module_0001.jit_f.cpu_after_optimizations.txt")
    (program,) = programs_of(tmp_path)
    with pytest.raises(InvalidInput, match="expected a file"):
        program.text()


def test_there_are_limits_to_what_is_read(tmp_path, monkeypatch):
    write(tmp_path, "module_0001.jit_f.cpu_after_optimizations.txt", text="x" * 100)
    (program,) = programs_of(tmp_path)
    monkeypatch.setattr(dump_folders, "_MOST_BYTES", 99)
    with pytest.raises(InvalidInput, match="at most 99 bytes"):
        program.read()
    monkeypatch.setattr(dump_folders, "_MOST_FILES", 0)
    with pytest.raises(InvalidInput, match="more than 0 files"):
        programs_of(tmp_path)
