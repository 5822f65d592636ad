"""The line that says what is going on."""

from __future__ import annotations

import io
import re
import time

import jax
import jax.numpy as jnp
import pytest

import shardnb as sn
from shardnb import progress


@pytest.fixture
def quick(monkeypatch):
    """Draw after 50 ms, and 100 times a second."""
    monkeypatch.setattr(progress, "_SILENT", 0.05)
    monkeypatch.setattr(progress, "_BETWEEN", 0.01)


def drawn(out):
    """The texts that a terminal has shown, one after another."""
    return [part.strip() for part in out.getvalue().split("\r")]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_nothing_is_drawn_before_a_second_has_passed():
    out = io.StringIO()
    with progress.line_on(out) as say:
        say("early")
        time.sleep(0.2)
    assert out.getvalue() == ""


def test_a_line_is_drawn_over_the_one_before_and_gone_afterwards(quick):
    out = io.StringIO()
    with progress.line_on(out) as say:
        for text in ("one", "two"):
            say(text)
            time.sleep(0.1)
    texts = drawn(out)
    assert list(dict.fromkeys(texts)) == ["", "0 s  one", "0 s  two"]
    assert texts[-2:] == ["", ""]


def test_it_is_drawn_while_one_call_takes_long_and_says_for_how_long(quick, monkeypatch):
    out, now = io.StringIO(), [100.0]
    monkeypatch.setattr(progress.time, "perf_counter", lambda: now[0])
    with progress.line_on(out) as say:
        say("compiling")
        now[0] = 112.4
        time.sleep(0.1)
    assert "12 s  compiling" in drawn(out)


def test_what_is_inside_of_another_call_says_so_behind_it(quick):
    out = io.StringIO()
    with progress.bar_on("plan", out) as tell:
        tell("plans compiled", 6, 24)
        with progress.line_on() as say:
            say("compiling 134 KiB of StableHLO")
            time.sleep(0.1)
        time.sleep(0.1)
    bar = "0 s  plan [#####               ] 6 of 24 plans compiled"
    assert f"{bar}  compiling 134 KiB of S" in drawn(out)
    assert bar in drawn(out)


def test_a_line_is_wiped_out_over_its_whole_width(quick):
    out = io.StringIO()
    with progress.line_on(out) as say:
        say("x" * 200)
        time.sleep(0.1)
    _, first, *_, wiped, end = out.getvalue().split("\r")
    assert len(first) == len(wiped) == 79
    assert (wiped.strip(), end) == ("", "")


def test_a_script_whose_standard_error_is_no_terminal_gets_nothing(quick, monkeypatch):
    out = io.StringIO()
    monkeypatch.setattr("sys.stderr", out)
    with progress.line_on() as say:
        say("compiling")
        time.sleep(0.1)
    assert out.getvalue() == ""


def test_what_is_done_for_no_cell_is_not_drawn(quick, monkeypatch):
    out = Terminal()
    monkeypatch.setattr("sys.stderr", out)
    with progress.silent(), progress.line_on() as say:
        say("compiling")
        time.sleep(0.1)
    assert out.getvalue() == ""


def test_under_a_cell_a_line_is_one_output_that_ends_empty(quick, monkeypatch):
    shown = []

    class Publisher:
        def publish(self, *, data, metadata, transient, update):
            shown.append((data["text/plain"], transient["display_id"], update))

    shell = type("Shell", (), {"kernel": 1, "display_pub": Publisher()})
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    with progress.line_on() as say:
        say("half")
        time.sleep(0.1)
    texts, ids, updates = zip(*shown, strict=True)
    assert (texts[0], texts[-1]) == ("0 s  half", "")
    assert len(set(ids)) == 1
    assert updates == (False, *(True,) * (len(shown) - 1))


def test_a_program_says_what_is_traced_and_compiled_and_how_large_it_is(quick, monkeypatch):
    out = Terminal()
    monkeypatch.setattr("sys.stderr", out)

    def step(x):
        time.sleep(0.2)
        return jnp.sin(x) + 1

    sn.explain(step, jax.ShapeDtypeStruct((8,), jnp.float32), mesh="data=4", isolate=True)
    texts = " | ".join(drawn(out))
    assert "0 s  tracing step" in texts
    assert re.search(r"step \(2 equations\)  compiling [\d.]+ KiB of StableHLO", texts)
    assert texts.endswith("|  | ")
