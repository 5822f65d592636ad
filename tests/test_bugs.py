"""A bug is logged, or raised where the tests ask for it; what cannot be shown is no bug."""

from __future__ import annotations

import logging

import pytest

from shardnb.bugs import Inconclusive, contained


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
