"""`--fix` looks for edits, `--check` compares with one device."""

from __future__ import annotations

import numpy as np

ARRAYS = """
x = np.arange(256 * 512, dtype=np.float32).reshape(256, 512) / 1e5
W = np.ones((512, 64), np.float32)
"""


def last(ip):
    return ip.magics_manager.registry["ShardMagics"].session.last


def test_edits_are_found_and_the_cell_runs_once(ip, run):
    run("%mesh data=4,model=2")
    run(ARRAYS)
    shown = run("%%shard --fix x=P('model', 'data')\nh = x @ W\nprint('once')")
    assert shown.out.count("once") == 1
    (collective,) = last(ip).collectives
    assert collective.fixes
    assert all(fix.wire_bytes[1] < fix.wire_bytes[0] for fix in collective.fixes)
    assert "Fix: " in str(last(ip))
    np.testing.assert_allclose(ip.user_ns["h"], ip.user_ns["x"] @ ip.user_ns["W"], rtol=1e-4)


def test_a_constraint_in_the_cells_own_lines_is_tried(ip, run):
    run("%mesh data=8")
    run("x = np.ones((64, 64), np.float32)")
    run("%%shard --fix --no-run x=P(None, 'data')\nh = jnp.sort(x * 2)\ny = h.sum(1)")
    report = last(ip)
    edits = [fix.edit for c in report.collectives for fix in c.fixes or ()]
    assert edits


def test_the_result_is_compared_with_one_device(ip, run):
    run("%mesh data=8")
    run(ARRAYS)
    run("%%shard --check x=P('data')\ny = x @ W")
    (outcome,) = last(ip).outcomes
    assert (outcome.option, outcome.passed) == ("check", True)
    assert outcome.words[1].startswith("y float32[256, 64] agrees")
    # Under the verdict, before what is sent.
    assert str(last(ip)).splitlines()[3].startswith("[passed] --check: ")
