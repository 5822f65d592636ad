"""A large program is read while another process still makes machine code of it."""

from __future__ import annotations

import json
import re
import threading
import time

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb import engine
from shardnb.compiler import build
from shardnb.compiler.dumps import recording
from shardnb.compiler.program import Program
from shardnb.findings import read_ahead
from shardnb.worker.process import WORKER, Cancelled
from tests.worker.programs import request_of, shape

SHAPES = shape(64, 32), shape(32, 16)
SPECS = (P("data", "model"), P("model"))
_RUN = re.compile(r"stack_frame_id=\d+")


def step(x, w):
    return jax.grad(lambda x, w: jnp.tanh(x @ w).sum(), argnums=(0, 1))(x, w)


def rematerialized(x):
    moved = jax.lax.with_sharding_constraint(x.reshape(8, 8, 4, 8), P("data", None, "model"))
    return jax.lax.with_sharding_constraint(moved.transpose(2, 3, 0, 1), P("model", "data"))


@pytest.fixture
def slow(monkeypatch):
    """XLA's answer comes late, as that of a large program does."""
    asked = WORKER.ask

    def ask(job):
        answer = asked(job)
        time.sleep(0.5)
        return answer

    monkeypatch.setattr(WORKER, "ask", ask)


@pytest.fixture
def read(monkeypatch):
    """The programs that were read while they were compiled."""
    programs: list[Program] = []

    def reading(program):
        assert program.compiled is None
        programs.append(program)
        return read_ahead(program)

    monkeypatch.setattr(engine, "read_ahead", reading)
    return programs


def plain(report):
    """A report without its times, and without the numbers that XLA gives to stacks of frames."""
    saved = json.loads(_RUN.sub("", report.to_json(texts=False)))
    del saved["run"]
    return saved


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize(
    ("fn", "shapes", "specs"),
    [(step, SHAPES, SPECS), (rematerialized, SHAPES[:1], (P("data", "model"),))],
)
def test_what_was_read_meanwhile_says_what_a_report_without_it_says(read, fn, shapes, specs):
    """Of the second one XLA's warnings come at the end only, and they say why it is gathered."""
    options = {"mesh": "data=4,model=2", "in_specs": specs}
    ahead = sn.explain(fn, *shapes, isolate=True, **options)
    assert len(read) == 1
    here = sn.explain(fn, *shapes, **options)
    assert len(read) == 1
    assert ahead.collectives
    assert plain(ahead) == plain(here)


def test_a_compile_that_ends_sooner_is_read_afterwards(read, monkeypatch):
    monkeypatch.setattr("shardnb.compiler.dumps.Recorder.read_before_machine_code", lambda _: False)
    report = sn.explain(step, *SHAPES, mesh="data=4,model=2", in_specs=SPECS, isolate=True)
    assert report.collectives
    assert not read


@pytest.mark.usefixtures("slow")
def test_an_error_meanwhile_is_raised_where_the_compiled_program_is_read(monkeypatch):
    calls = []

    def wrong(program):
        calls.append(program)
        raise KeyError("a bug")

    monkeypatch.setattr(engine, "read_ahead", wrong)
    report = sn.explain(step, *SHAPES, mesh="data=4,model=2", in_specs=SPECS, isolate=True)
    assert len(calls) == 1
    assert report.collectives


def test_an_interrupt_meanwhile_ends_the_compile(monkeypatch):
    ends, asked = [], WORKER.ask

    def ask(job):
        try:
            return asked(job)
        except Cancelled as error:
            ends.append(error)
            raise

    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(WORKER, "ask", ask)
    before = threading.active_count()
    request = request_of(slow_to_compile, shape(64, 64), in_specs=(P("data"),))
    with pytest.raises(KeyboardInterrupt):
        build(request, read=interrupted)
    assert len(ends) == 1
    assert threading.active_count() == before
    assert build(request_of(step, *SHAPES, in_specs=SPECS)).compiled is not None


def slow_to_compile(x):
    for i in range(60):
        x = jnp.sin(x @ jnp.ones((64, 64), x.dtype)[:, ::-1] * i) + jnp.cumsum(x, axis=i % 2)
    return x


@pytest.mark.parametrize("last", ["memory-usage-report", "buffer-assignment-values"])
def test_a_program_that_is_being_written_is_not_read(last):
    """JAX 0.11 writes the report of its memory last, 0.12 the list of values."""
    whole = "HloModule jit_f\n\nENTRY %main (x: f32[8]) -> f32[8] {\n  ROOT %x = f32[8] parameter(0)\n}\n\n"
    others = {"memory-usage-report", "buffer-assignment-values"} - {last}
    with recording() as recorder:
        start = "module_0001.jit_f.cpu_after_optimizations"
        names = ["", "-buffer-assignment", "-live-range", *(f"-{other}" for other in others)]
        for name in names:
            assert not recorder.read_before_machine_code()
            (recorder.folder / f"{start}{name}.txt").write_text(whole)
        assert not recorder.read_before_machine_code()
        (recorder.folder / f"{start}-{last}.txt").touch()
        assert recorder.read_before_machine_code()
        assert recorder.dumps.optimized == whole
        assert recorder.dumps.live_ranges == whole
