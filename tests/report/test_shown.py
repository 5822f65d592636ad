from __future__ import annotations

import subprocess
import sys

import pytest

from shardnb.report import shown


def run(code):
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout


def test_a_report_prints_where_only_its_data_was_imported():
    code = "from shardnb.report import Mesh, Report; print(Report('f', Mesh((), (0,))))"
    assert "No communication." in run(code)


def test_the_data_alone_imports_no_view():
    code = "import sys, shardnb.report; print([n for n in sys.modules if n.startswith('shardnb.')])"
    found = run(code)
    assert "views" not in found
    assert "shardnb.cost" not in found.replace("shardnb.report.cost", "")
    assert "widgets" not in found


def test_what_is_registered_by_name_is_found_when_it_is_asked_for(monkeypatch):
    monkeypatch.setattr(shown, "_ways", {})
    shown.register({"size": "builtins:len"})
    assert shown.by("size", "abc") == 3
    assert shown.by("size", "abcd") == 4


def test_what_nobody_registered_is_said_to_be_missing(monkeypatch):
    monkeypatch.setattr(shown, "_ways", {})
    with pytest.raises(LookupError, match="nothing is registered for 'text'"):
        shown.by("text")
