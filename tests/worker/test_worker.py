"""The process that compiles: what it gives back is what this one would have made, and it leaves."""

from __future__ import annotations

import inspect
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.bugs import Inconclusive
from shardnb.compiler import build
from shardnb.compiler.compiling import compile_candidate, compile_lowered, optimized_text
from shardnb.jax_compat.executables import split
from shardnb.search.trial import aborts_noted, compile_trial
from shardnb.worker import process
from shardnb.worker.jobs import Compile
from shardnb.worker.process import WORKER, CompilerAborted, Refused
from tests.needs import needs_gpu_compiler, needs_libtpu
from tests.worker.programs import ABORTS, UNREDUCED, request_of, shape

SPECS = (P("data", "model"), P("model"))
X = np.arange(64 * 32, dtype=np.float32).reshape(64, 32) / 1000
W = np.ones((32, 16), np.float32)


def layer(x, w):
    return jnp.tanh(x @ w)


def without_frames(text):
    """A program's text without the numbers of its stack frames, and without the tables of them.

    XLA writes the keys of a configuration in any order, from one compile to the next.
    """
    body = text[text.index("\n\n", text.index("StackFrames")) :] if "StackFrames" in text else text
    return re.sub(r" stack_frame_id=\d+|, backend_config=\{.*\}", "", body)


def both(fn, *args, **options):
    """The same program, compiled here and apart."""
    request = request_of(fn, *args, **options)
    return build(request), build(replace(request, apart=True))


@pytest.mark.parametrize("donated", [None, 0])
def test_a_program_compiled_apart_is_the_one_compiled_here(donated):
    given = {} if donated is None else {"donate_argnums": donated}
    here, apart = both(lambda x, w: (x @ w @ w.T, x * 2), X, W, in_specs=SPECS, **given)
    assert apart.load is not None
    assert here.load is None
    assert without_frames(apart.optimized) == without_frames(here.optimized)
    for name in ("stated", "propagated", "before", "partitioned", "buffers"):
        assert without_frames(getattr(apart.dumps, name)) == without_frames(
            getattr(here.dumps, name)
        )
    assert apart.output_shardings == here.output_shardings
    assert apart.compiled.input_shardings == here.compiled.input_shardings
    assert apart.parameters == here.parameters
    assert apart.compiled.cost_analysis() == here.compiled.cost_analysis()
    mine, theirs = (p.compiled.memory_analysis() for p in (apart, here))
    assert mine.temp_size_in_bytes == theirs.temp_size_in_bytes
    for a, b in zip(apart.run(), here.run(), strict=True):
        np.testing.assert_array_equal(a, b)
        assert a.sharding == b.sharding


def test_the_compilers_warnings_come_with_it():
    def rematerialized(x):
        moved = jax.lax.with_sharding_constraint(x.reshape(8, 8, 4, 8), P("data", None, "model"))
        return jax.lax.with_sharding_constraint(moved.transpose(2, 3, 0, 1), P("model", "data"))

    here, apart = both(rematerialized, shape(64, 32), in_specs=(P("data", "model"),))
    lines = [re.sub(r"^\S+ \S+ +\d+ ", "", p.dumps.warnings) for p in (here, apart)]
    assert lines[0] == lines[1]


def test_callbacks_of_the_users_run_here():
    seen = []

    def told(x):
        jax.debug.callback(lambda value: seen.append(float(value)), x.sum())
        return jax.pure_callback(np.sin, jax.ShapeDtypeStruct((64, 32), jnp.float32), x)

    program = build(replace(request_of(told, X), apart=True))
    np.testing.assert_allclose(program.run(), np.sin(X), rtol=1e-6)
    jax.effects_barrier()
    np.testing.assert_allclose(seen, X.sum(), rtol=1e-5)
    assert seen


def test_linear_algebra_and_random_numbers_run_as_they_do_here():
    def fn(x):
        noise = jax.random.normal(jax.random.key(0), (32, 32))
        return jnp.linalg.svd(x[:32] + noise, compute_uv=False)

    here, apart = both(fn, X, in_specs=(P("data"),))
    np.testing.assert_allclose(apart.run(), here.run(), rtol=1e-5)


def test_what_only_this_process_can_partition_is_compiled_here_and_said_so():
    from jax.experimental.custom_partitioning import custom_partitioning

    @custom_partitioning
    def doubled(x):
        return x * 2

    def partition(mesh, args, result):
        return mesh, lambda x: x * 2, args[0].sharding, (args[0].sharding,)

    doubled.def_partition(partition=partition, sharding_rule="i j -> i j")
    program = build(replace(request_of(doubled, X, in_specs=(P("data"),)), apart=True))
    assert program.load is None
    assert any("custom_partitioning" in problem for problem in program.dumps.problems)
    np.testing.assert_array_equal(program.run(), X * 2)


def test_a_lowered_program_of_the_users_is_left_as_it_was():
    sharding = NamedSharding(request_of(layer, X, W).mesh, P("data"))
    lowered = jax.jit(layer, in_shardings=(sharding, None)).lower(X, W)
    before = dict(lowered._lowering.compile_args)
    compile_lowered(lowered, {}, apart=True)
    assert lowered._lowering.compile_args == before
    assert lowered.compile().as_text()


def test_a_small_program_is_compiled_here_and_a_large_one_apart():
    def repeated(layers):
        def fn(x, w):
            for number in range(layers):
                x = jnp.sin(x @ w + number) + jnp.cumsum(x, axis=number % 2)
            return x

        return fn

    asked = []
    original = WORKER.ask
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WORKER, "ask", lambda job: asked.append(job) or original(job))
        for layers in (1, 60):
            request = request_of(repeated(layers), shape(64, 64), shape(64, 64))
            build(request)
    (job,) = asked
    assert job.load is False


@pytest.mark.parametrize(
    "target",
    [pytest.param("v5e:2x4", marks=needs_libtpu), pytest.param("h100:8", marks=needs_gpu_compiler)],
)
def test_a_program_for_devices_that_are_not_here_is_always_compiled_apart(target):
    request = request_of(layer, shape(64, 32), shape(32, 16), on=target, in_specs=SPECS)
    lowered = request.lower(request.trace())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("shardnb.compiler.compiling._compiled_here", None)
        program = build(request)
    here = lowered.compile()
    assert program.load is None
    assert without_frames(program.optimized) == without_frames(here.as_text())
    assert program.output_shardings == here.output_shardings
    assert program.compiled.input_shardings == here.input_shardings
    assert program.compiled.cost_analysis() == here.cost_analysis()
    memory = program.compiled.memory_analysis().temp_size_in_bytes
    assert memory == here.memory_analysis().temp_size_in_bytes
    assert "sdy.sharding" in program.dumps.propagated


# Aborts


def test_an_abort_of_xlas_leaves_the_kernel_alone():
    with pytest.raises(CompilerAborted, match="unreduced axes") as caught:
        sn.explain(*UNREDUCED, **ABORTS)
    assert "SIGABRT" in str(caught.value)
    (note,) = caught.value.__notes__
    said = " ".join(note.split())
    assert "XLA failed while it compiled the program for X=2,Y=2, with a=P(" in said
    assert "b=P('X', 'Y')" in said
    line = inspect.getsourcelines(UNREDUCED[0])[1] + 2
    assert f"It leaves sums unreduced at line {line}." in said
    report = sn.explain(layer, X, W, mesh="data=4,model=2", in_specs=SPECS, isolate=True)
    assert [c.kind for c in report.collectives] == ["all-reduce"]


def test_a_candidate_at_which_xla_fails_is_left_out_and_named():
    request = request_of(*UNREDUCED, **ABORTS)
    lowered, notes = request.lower(request.trace()), []
    with pytest.raises(Inconclusive), aborts_noted(notes, "the placement a=P()"):
        compile_trial(lowered, request.grid.describe(), whole=False)
    (note,) = notes
    assert note.startswith("the placement a=P() was left out: XLA fails at it")
    assert "unreduced axes" in note


def test_what_xla_refuses_is_refused_in_its_own_words():
    request = request_of(layer, shape(64, 32), shape(32, 16))
    parts = split(request.lower(request.trace()), {})
    broken = replace(parts.compilation, module=b"no module")
    with pytest.raises(Refused, match="custom op 'no' is unknown"):
        WORKER.ask(Compile(broken))


def test_a_candidate_is_compiled_as_it_would_be_here():
    request = request_of(layer, shape(64, 32), shape(32, 16), in_specs=SPECS)
    lowered = request.lower(request.trace())
    text = lowered.compile().as_text()
    assert without_frames(compile_candidate(lowered).as_text()) == without_frames(text)
    assert "all-reduce" in optimized_text(lowered)


# The process itself


def open_descriptors():
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def processes_of(parent):
    """The processes whose parent is this one, with their states."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            _name, _, rest = (folder / "stat").read_text().rpartition(")")
        except OSError:
            continue
        if rest.split()[1] == str(parent):
            found[int(folder.name)] = rest.split()[0]
    return found


def test_nothing_is_left_after_interrupts_and_aborts():
    build(replace(request_of(layer, X, W), apart=True))
    descriptors, children = open_descriptors(), processes_of(os.getpid())
    request = request_of(*UNREDUCED, **ABORTS)
    lowered = request.lower(request.trace())
    for _ in range(3):
        with pytest.raises(CompilerAborted):
            compile_candidate(lowered)
        build(replace(request_of(layer, X, W), apart=True))
    assert open_descriptors() == descriptors
    assert list(processes_of(os.getpid()).values()).count("Z") == 0
    assert len(processes_of(os.getpid())) == len(children)


def job():
    request = request_of(layer, shape(64, 32), shape(32, 16), in_specs=SPECS)
    return Compile(split(request.lower(request.trace()), {}).compilation)


def test_a_process_that_ended_by_an_earlier_program_is_no_fault_of_this_one(monkeypatch):
    def ends(_):
        process.stop()
        raise EOFError

    WORKER.ask(job())
    process = WORKER._process
    monkeypatch.setattr(process, "ask", ends)
    answer, _ = WORKER.ask(job())
    assert "all-reduce" in answer.text
    assert WORKER._process is not process


def test_what_is_cancelled_as_its_answer_comes_is_no_fault_of_the_next(monkeypatch):
    def cancelled(given):
        answer = answer_of(given)
        WORKER.cancel(threading.get_ident())
        return answer

    answer_of = WORKER._answer
    with monkeypatch.context() as patch:
        patch.setattr(WORKER, "_answer", cancelled)
        WORKER.ask(job())
    assert WORKER._process is None
    WORKER.cancel(threading.get_ident())  # nothing is asked: it ends nothing
    answer, _ = WORKER.ask(job())
    assert "all-reduce" in answer.text


COMPILING = """
    import os, sys, threading, time
    import shardnb
    from shardnb.compiler import build
    from shardnb.worker.process import WORKER
    from tests.worker.programs import deep, request_of, shape
    from dataclasses import replace

    def tell():
        while WORKER._process is None or not WORKER._process.ready:
            time.sleep(0.01)
        print(WORKER._process._popen.pid, flush=True)

    threading.Thread(target=tell, daemon=True).start()
    build(replace(request_of(deep, shape(64, 64)), apart=True))
"""


def test_the_process_ends_with_a_kernel_that_is_killed_while_it_compiles():
    command = [sys.executable, "-c", textwrap.dedent(COMPILING)]
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": root}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as kernel:
        worker = int(kernel.stdout.readline())
        time.sleep(0.5)
        assert Path(f"/proc/{worker}").exists()
        kernel.send_signal(signal.SIGKILL)
        kernel.wait()
    end = time.monotonic() + 10
    while Path(f"/proc/{worker}").exists() and time.monotonic() < end:
        time.sleep(0.05)
    assert not Path(f"/proc/{worker}").exists()


def test_it_runs_no_code_of_the_folder_that_the_user_works_in(tmp_path):
    (tmp_path / "queue.py").write_text("open('ran', 'w')\n")
    (tmp_path / "main.py").write_text(
        "import sys\n"
        f"sys.path.append({str(Path(__file__).parents[2])!r})\n"
        "open('started', 'a').write('once ')\n"
        "import shardnb as sn, jax, jax.numpy as jnp\n"
        "x = jax.ShapeDtypeStruct((8, 8), jnp.float32)\n"
        "print(sn.explain(jnp.tanh, x, mesh='data=4', isolate=True).title)\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "main.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "started").read_text() == "once "
    assert not (tmp_path / "ran").exists()


def test_the_process_does_not_wait_for_jax_where_xla_alone_compiles():
    """JAX's import takes a second and more; XLA's a fifth of that."""
    compiled = (
        "from shardnb.jax_compat import compilation, parts\n"
        "module = b'module @m { func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> "
        "{ %y = stablehlo.add %x, %x : tensor<4xf32>\\n return %y : tensor<4xf32> } }'\n"
        "options = parts.COMPILE_OPTIONS.get()().SerializeAsString()\n"
        "made = compilation.compiled(compilation.Compilation(module, options, (0,)), load=True)\n"
        "assert 'add(' in made.text and made.serialized\n"
        "import sys, shardnb.worker.__main__\n"
        "print('jax' in sys.modules)"
    )
    given = [sys.executable, "-c", compiled]
    shown = subprocess.run(given, check=False, capture_output=True, text=True)
    assert shown.stdout.strip() == "False", shown.stderr


def test_a_process_that_does_not_start_leaves_the_compile_to_this_one(monkeypatch):
    WORKER.end()
    monkeypatch.setattr(process, "_START", "import sys; sys.exit('no module named jax')")
    program = build(replace(request_of(layer, X, W), apart=True))
    assert program.load is None
    (problem,) = program.dumps.problems
    assert "no module named jax" in problem
    assert "all-reduce" not in program.optimized


# Searches


@pytest.fixture
def failing(monkeypatch):
    """XLA fails at the first candidate that a search compiles."""
    tried = []

    def first_fails(lowered, mesh, *, whole):
        tried.append(lowered)
        if len(tried) == 1:
            raise CompilerAborted("SIGABRT", "Check failed: 1 == 2")
        return compile_trial(lowered, mesh, whole=whole)

    for search in ("plans.field", "fixes.search"):
        monkeypatch.setattr(f"shardnb.search.{search}.compile_trial", first_fails)


def test_a_plan_at_which_xla_fails_is_left_out_with_a_note(failing):
    shapes = shape(64, 32), shape(32, 16)
    plans = sn.plan(layer, *shapes, mesh="data=4", previews=20, compiles=3)
    (note,) = [note for note in plans.notes if "XLA fails" in note]
    assert re.match(r"the placement x=P\(.*\), w=P\(.*\) on data=4 was left out", note)
    assert note.endswith("(Check failed: 1 == 2)")
    assert plans.best is not None


def test_an_edit_at_which_xla_fails_is_left_out_with_a_note(failing):
    specs = (P(None, "data"), P("data"))
    report = sn.explain(
        layer, shape(64, 32), shape(32, 16), mesh="data=4", in_specs=specs, fixes=100
    )
    (note,) = [note for note in report.notes if "XLA fails" in note]
    assert note.startswith("the edit ")
    assert report.collectives[0].fixes
