"""`shardnb run`: somebody's program in a child process, whose behaviour stays as it is."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from shardnb import cli
from shardnb.commands import script

TRAIN = """\
import os
import sys

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


def placed(shape, *spec):
    return jax.device_put(jnp.ones(shape), NamedSharding(mesh, P(*spec)))


@jax.jit
def train_step(w, x):
    h = x
    for _ in range(12):
        h = jnp.tanh(h @ w) + jnp.sin(h) * jnp.cos(h)
    return h.sum()


print(train_step(placed((16, 16), "model"), placed((32, 16), "data")))
print("last words", file=sys.stderr)
sys.exit(int(sys.argv[1]))
"""


def run(*words, **options):
    """Run the command line in a process of its own, with the tree under test."""
    command = [sys.executable, "-m", "shardnb.cli", "run", *map(str, words)]
    options = {"capture_output": True, "text": True, "timeout": 120, **options}
    return subprocess.run(command, check=False, **options)


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Write a program without JAX; gives its path."""

    def write(text):
        path = tmp_path / "program.py"
        path.write_text(text)
        return path

    return write


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A training script that was run with its dumps kept: the folder, and what came of it."""
    folder = tmp_path_factory.mktemp("trained")
    (folder / "train.py").write_text(TRAIN)
    return folder, run("--keep", folder / "dumps", folder / "train.py", 3)


def test_output_and_status_are_the_programs_and_the_report_is_on_standard_error(trained):
    _, done = trained
    assert done.returncode == 3
    assert len(done.stdout.splitlines()) == 1  # the printed sum alone
    assert done.stderr.index("last words") < done.stderr.index("Program jit_train_step")


def test_the_report_says_why_at_the_scripts_lines(trained):
    _, done = trained
    text = " ".join(done.stderr.split())
    assert "mesh data=4 x model=2 (Auto) 8 devices" in text
    # The rows of w are sharded over model, so each product but the first leaves a partial sum.
    row = "h = jnp.tanh(h @ w) + jnp.sin(h) * jnp.cos(h), line 22 of train.py 11 5.5 KiB"
    assert f"all-reduce[model] {row} completes a partial sum" in text
    assert "returned sum (loss or metric), line 23 of train.py" in text


def test_kept_dumps_are_read_to_the_same_reports(trained, capsys):
    folder, done = trained
    assert cli.main(["read", str(folder / "dumps"), "--sources", str(folder)]) == 0
    assert capsys.readouterr().out.strip() in done.stderr
    assert cli.main(["read", str(folder / "dumps"), "--json", "--only", "train_*"]) == 0
    (report,) = json.loads(capsys.readouterr().out)
    assert report["title"] == "jit_train_step"


def test_forbid_judges_what_the_program_compiled(trained, capsys):
    folder, _ = trained
    assert cli.main(["read", str(folder / "dumps"), "--forbid", "all-gather"]) == 0
    assert cli.main(["read", str(folder / "dumps"), "--forbid", "all-reduce"]) == 1
    assert "all-reduce[data] at line 23 in jit_train_step is forbidden" in capsys.readouterr().err


def test_a_program_is_stopped_when_it_is_compiled(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(TRAIN.replace("sys.exit(", "import time; time.sleep(600); sys.exit("))
    report = tmp_path / "report.json"
    start = time.monotonic()
    words = ("--stop-when-compiled", "--hardware", "h100:2x4", "--json", "-o", report)
    done = run(*words, path, 3)
    assert time.monotonic() - start < 100
    assert done.returncode == 0
    assert "stopping the program" in done.stderr
    (step,) = json.loads(report.read_text())
    assert (step["title"], step["cost"]["hardware"]) == ("jit_train_step", "NVIDIA H100 SXM")


def test_hardware_that_is_not_known_is_refused_before_the_program_runs(program):
    done = run("--hardware", "h1000", program("print(1)"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "--hardware: unknown hardware 'h1000'" in done.stderr


def test_a_program_that_does_not_fit_the_hardware_is_reported_without_seconds(trained, capsys):
    folder, _ = trained
    argv = ["read", str(folder / "dumps"), "--json", "--hardware", "h100:2x8"]
    assert cli.main(argv) == 0
    (report,) = json.loads(capsys.readouterr().out)
    assert "cost" not in report
    assert "--hardware: the mesh has 8 devices, and 1 x 2 x 8 GPUs are 16" in report["notes"][-1]


def test_what_the_program_reads_and_its_arguments_are_passed_on(program):
    path = program("import sys; print(sys.argv[1:], sys.stdin.read())")
    done = run(path, "--first", "x y", input="typed")
    assert done.stdout == "['--first', 'x y'] typed\n"
    assert "No program was compiled." in done.stderr
    assert done.returncode == 0


def test_a_module_is_run_with_its_arguments(program, tmp_path):
    program("import sys; print(__name__, sys.argv[1:])")
    done = run("-m", "program", "--keep", "x", cwd=tmp_path, env={**os.environ, **_here()})
    assert done.stdout == "__main__ ['--keep', 'x']\n"


def _here():
    """Where a child that starts in another folder finds the tree under test."""
    root = str(Path(cli.__file__).parents[1])
    return {"PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])}


def test_another_program_is_run_by_its_name(tmp_path):
    assert script.command_of(["true", "x"], [])[1:] == ["x"]
    assert script.command_of(["--", "env"], [])[0].endswith("/env")
    (tmp_path / "x.py").write_text("")
    (tmp_path / "x.py").chmod(0o755)
    path = str(tmp_path / "x.py")
    assert script.command_of([path], []) == [sys.executable, path]


def test_a_guard_that_explained_nothing_fails(program):
    done = run("--forbid", "inferred", program("print(1)"))
    assert (done.returncode, done.stdout) == (4, "1\n")
    assert "no program was explained" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_signals_are_passed_on(program, number):
    path = program(
        "import signal, sys, time\n"
        f"signal.signal({int(number)}, lambda *_: sys.exit(7))\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)\n"
    )
    command = [sys.executable, "-m", "shardnb.cli", "run", str(path)]
    # In a session of its own: no terminal sends the signal to both.
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    ) as child:
        assert child.stdout.readline() == b"ready\n"
        child.send_signal(number)
        assert child.wait(60) == 7


def test_a_program_that_a_signal_ends_has_the_status_of_a_shell(program):
    done = run(program("import os, signal; os.kill(os.getpid(), signal.SIGKILL)"))
    assert done.returncode == 128 + signal.SIGKILL


def test_flags_of_the_user_stay_and_passes_are_joined(monkeypatch, tmp_path):
    monkeypatch.setenv("XLA_FLAGS", "--xla_a=1 --xla_dump_hlo_pass_re=fusion")
    flags = script.environment(Path("/dumps"), tmp_path)["XLA_FLAGS"]
    assert flags.startswith("--xla_a=1 --xla_dump_hlo_pass_re=fusion ")
    assert "--xla_dump_to='/dumps'" in flags
    assert "--xla_dump_hlo_pass_re=fusion|shardy|spmd-partitioning" in flags


def test_flags_in_a_file_stay(monkeypatch, tmp_path):
    (tmp_path / "flags").write_text("--xla_a=1\n--xla_b=2\n")
    monkeypatch.setenv("XLA_FLAGS", str(tmp_path / "flags"))
    assert script.environment(Path("/d"), tmp_path)["XLA_FLAGS"].startswith("--xla_a=1 --xla_b=2 ")


def test_a_folder_that_the_user_dumps_to_is_used_and_kept(monkeypatch, tmp_path):
    monkeypatch.setenv("XLA_FLAGS", f"--xla_dump_to={tmp_path / 'theirs'}")
    with script.dump_folder(None) as folder:
        assert folder == tmp_path / "theirs"
    assert folder.is_dir()
    with pytest.raises(script.CommandError, match="drop --keep"), script.dump_folder(tmp_path):
        pass


def test_a_temporary_folder_is_removed(monkeypatch):
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    with script.dump_folder(None) as folder:
        (folder / "x").write_text("")
    assert not folder.exists()


def test_the_flags_stay_where_the_program_sets_its_own_and_the_users_hook_runs(program, tmp_path):
    (tmp_path / "hooks").mkdir()
    (tmp_path / "hooks" / "sitecustomize.py").write_text("print('the hook of the user')")
    path = program(
        "import os\n"
        "os.environ['XLA_FLAGS'] = '--xla_a=1'\n"
        "print(os.environ['XLA_FLAGS'].count('--xla_dump_to'))\n"
        "os.environ['XLA_FLAGS'] += ' --xla_b=1'\n"
        "print(os.environ['XLA_FLAGS'].count('--xla_dump_to'))\n"
        "os.environ.pop('XLA_FLAGS')\n"
        "print(os.environ['XLA_FLAGS'].count('--xla_dump_to'))\n"
    )
    paths = [*_here().values(), str(tmp_path / "hooks")]
    done = run(path, env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)})
    lines = done.stdout.splitlines()
    # The hook runs in shardnb's own process as well.
    assert [line for line in lines if line != "the hook of the user"] == ["1"] * 3
    assert lines.count("the hook of the user") == 2


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ([], "expected a script or -m MODULE, as in `shardnb run train.py`"),
        (["nowhere.py"], "there is no script nowhere.py, and no program of that name either"),
        (["--first", "0", "x.py"], "expected --first of at least 1, got 0"),
        (["--mesh", "data", "x.py"], "data"),
    ],
)
def test_bad_input_is_refused_before_anything_runs(words, line, capsys):
    assert cli.main(["run", *words]) == 2
    assert line in capsys.readouterr().err
