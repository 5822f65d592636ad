"""A bug is logged, or raised where the tests ask for it; what cannot be shown is not a bug."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.bugs import Inconclusive, contained, refusable
from shardnb.causes import explain as causes
from shardnb.causes.judge import Judge
from shardnb.search.fixes import find_fixes
from shardnb.search.plans.estimate import Estimator
from shardnb.search.plans.field import Field
from shardnb.search.trial import compile_trial
from tests.search.fixing import M8, case_3, edits_of, f32, made


def broken():
    raise KeyError("add.1")


def contain(call):
    with contained("the cause of all-gather.3"):
        call()
        return "shown"
    return "not shown"


@pytest.fixture
def in_a_notebook(monkeypatch):
    monkeypatch.delenv("SHARDNB_STRICT", raising=False)


def test_a_bug_is_raised_where_it_is_strict(caplog):
    with pytest.raises(KeyError):
        contain(broken)
    assert caplog.records == []


@pytest.mark.usefixtures("in_a_notebook")
def test_a_bug_is_logged_in_a_notebook_with_its_traceback_once(caplog):
    def broken_here():
        raise KeyError("add.1")

    assert [contain(broken_here), contain(broken_here)] == ["not shown"] * 2
    first, second = caplog.records
    assert (first.name, first.levelno) == ("shardnb", logging.ERROR)
    expected = "a bug in shardnb: the cause of all-gather.3 is not shown (KeyError: 'add.1')"
    assert first.getMessage() == second.getMessage() == expected
    assert "in broken_here" in caplog.text
    assert second.exc_info is None


@pytest.mark.parametrize("strict", ["0", "1"])
def test_what_cannot_be_shown_is_no_bug(strict, monkeypatch, caplog):
    def unclear():
        raise Inconclusive

    monkeypatch.setenv("SHARDNB_STRICT", strict)
    assert contain(unclear) == "not shown"
    assert contain(lambda: None) == "shown"
    assert caplog.records == []


@pytest.mark.usefixtures("in_a_notebook")
@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_passes(interrupt, caplog):
    def interrupted():
        raise interrupt

    with pytest.raises(interrupt):
        contain(interrupted)
    assert caplog.records == []


def test_whatever_a_candidate_raises_is_no_bug(caplog):
    def refused():
        with refusable():
            broken()

    assert contain(refused) == "not shown"
    assert caplog.records == []


# Where the parts of a report meet


def logged(caplog):
    return [record.getMessage() for record in caplog.records if record.name == "shardnb"]


def injected(*_, **__):
    raise KeyError("injected")


def product():
    specs = P("data", "model"), P("model")
    return sn.explain(jnp.dot, f32(256, 512), f32(512, 1024), mesh="data=4,model=2", in_specs=specs)


def test_a_bug_in_the_judge_fails_a_test(monkeypatch):
    monkeypatch.setattr(Judge, "judge", injected)
    with pytest.raises(KeyError, match="injected"):
        product()


@pytest.mark.usefixtures("in_a_notebook")
def test_a_bug_in_the_judge_leaves_the_reason_unknown(monkeypatch, caplog):
    monkeypatch.setattr(Judge, "judge", injected)
    (collective,) = product().collectives
    assert (collective.kind, collective.asked_by, collective.reason) == (
        "all-reduce",
        None,
        "unknown",
    )
    expected = "a bug in shardnb: the cause of the all-reduce number 0 is not shown"
    assert logged(caplog) == [f"{expected} (KeyError: 'injected')"]


@pytest.mark.usefixtures("in_a_notebook")
def test_a_bug_before_the_judge_leaves_a_report_without_causes(monkeypatch, caplog):
    monkeypatch.setattr(causes, "Judge", injected)
    (collective,) = product().collectives
    assert (collective.kind, collective.axes) == ("all-reduce", ("model",))
    assert (collective.asked_by, collective.reason, collective.why) == (None, None, "")
    assert len(logged(caplog)) == 1


def test_a_bug_in_the_search_for_fixes_fails_a_test(monkeypatch):
    program, report = case_3()
    monkeypatch.setattr("shardnb.search.trial.find_collectives", injected)
    with pytest.raises(KeyError, match="injected"):
        find_fixes(program, report)


@pytest.mark.usefixtures("in_a_notebook")
def test_a_bug_in_looking_at_one_fix_leaves_the_others(monkeypatch, caplog):
    program, report = case_3()
    calls = []

    def first_broken(lowered, mesh, *, whole):
        calls.append(lowered)
        return injected() if len(calls) == 1 else compile_trial(lowered, mesh, whole=whole)

    monkeypatch.setattr("shardnb.search.fixes.search.compile_trial", first_broken)
    (collective,) = find_fixes(program, report, seconds=120).collectives
    assert "a=P('data') b=P(None, 'model')" in edits_of(collective)
    (message,) = logged(caplog)
    assert message.startswith("a bug in shardnb: whether this edit is a fix: ")


@pytest.mark.usefixtures("in_a_notebook")
def test_a_bug_in_the_search_itself_leaves_the_report(monkeypatch, caplog):
    program, report = case_3()
    monkeypatch.setattr("shardnb.search.fixes.search.input_edits", injected)
    (collective,) = find_fixes(program, report).collectives
    assert (collective.reason, collective.fixes) == ("partial-sum", ())
    assert len(logged(caplog)) == 1


@pytest.mark.parametrize("strict", ["0", "1"])
def test_a_function_that_raises_when_it_is_traced_again_is_no_bug(strict, monkeypatch, caplog):
    traced = []

    def once(x):
        traced.append(x)
        if len(traced) > 1:
            raise KeyError("the user's own")
        return x.sum()

    monkeypatch.setenv("SHARDNB_STRICT", strict)
    program, report = made(once, M8, x=(f32(64), P("data")))
    found = find_fixes(program, report)
    assert len(traced) > 1
    (note,) = [note for note in found.notes if note not in report.notes]
    expected = "no edit of the text was tried: tracing it again raised KeyError: "
    assert note.startswith(expected + repr("the user's own"))
    assert logged(caplog) == []


def planned():
    return sn.plan(jnp.dot, f32(256, 512), f32(512, 1024), mesh="model=4", previews=8, compiles=2)


@pytest.mark.parametrize(("owner", "name"), [(Estimator, "carried"), (Field, "compiled")])
def test_a_bug_in_the_search_for_plans_fails_a_test(owner, name, monkeypatch):
    monkeypatch.setattr(owner, name, injected)
    with pytest.raises(KeyError, match="injected"):
        planned()


@pytest.mark.usefixtures("in_a_notebook")
@pytest.mark.parametrize(
    ("owner", "name", "part"),
    [
        (Estimator, "carried", {"what recipes would cost", "what further placements would cost"}),
        (Field, "compiled", {"a plan"}),
    ],
)
def test_a_bug_in_the_search_for_plans_leaves_what_was_found(
    owner, name, part, monkeypatch, caplog
):
    monkeypatch.setattr(owner, name, injected)
    assert len(planned()) >= 1
    bugs = {f"a bug in shardnb: {each} is not shown (KeyError: 'injected')" for each in part}
    assert set(logged(caplog)) == bugs


def test_each_broad_except_says_why():
    silent = []
    for path in Path(sn.__file__).parent.rglob("*.py"):
        lines = path.read_text().splitlines()
        for above, line in zip(["", *lines], lines, strict=False):
            broad = re.search(r"except (Base)?Exception\b|suppress\((Base)?Exception\)", line)
            reason = line.replace("noqa: BLE001", "").partition("#")[2].strip(" -")
            if broad and not reason and not above.lstrip().startswith("#"):
                silent.append(f"{path}: {line}")
    assert silent == []
