"""Rules on the line of a cell: `params:/PATTERN/=SPEC`, `like` and `logical`."""

from __future__ import annotations

import pytest

from shardnb.magics import options
from shardnb.magics.options import OptionError, parse_cell


@pytest.fixture
def cell(run):
    run("%mesh data=4,model=2")
    run(
        "params = {'up': {'kernel': np.ones((8, 16), np.float32), 'bias': np.ones(16, np.float32)}}"
    )
    run("momentum = {'up': {'kernel': np.ones((8, 16), np.float32)}, 'count': np.ones(())}")
    return run


def test_rules_give_specs_and_the_report_says_what_they_matched(cell):
    shown = cell(
        "%%shard --no-run params:/.*kernel/=P(None, 'model') params:/gamma/=P() momentum=like(params)\n"
        "y = params['up']['kernel'] + momentum['up']['kernel']"
    )
    (report,) = shown.reports
    found = {value["name"]: value["spec"] for value in report["inputs"]}
    assert found["params['up']['kernel']"] == ((), ("model",))
    assert found["momentum['up']['kernel']"] == ((), ("model",))
    notes = "\n".join(report["notes"])
    assert "have" not in notes.splitlines()[0]
    assert "params: 1 array (params['up']['kernel']) has its spec from the rule" in notes
    assert "params: no array has its spec from the rule /gamma/ = P()" in notes
    assert "momentum: 1 array (momentum['up']['kernel']) has the specs of params" in notes


def test_a_part_comes_before_a_rule_and_a_rule_before_the_whole(cell):
    shown = cell(
        "%%shard --no-run params=P('data') params:/kernel/=P(None, 'model') "
        "params['up']['kernel']=P('model')\ny = params['up']['kernel'].sum()"
    )
    found = {value["name"]: value["spec"] for value in shown.reports[0]["inputs"]}
    assert found["params['up']['kernel']"] == (("model",), ())
    assert found["params['up']['bias']"] == (("data",),)


def test_a_slash_in_a_pattern_is_escaped_and_the_order_is_kept():
    line = parse_cell(r"p:/up\/kernel/=P('x') p:/.*/=P() --no-run")
    assert list(line.rules) == [("p", "up/kernel"), ("p", ".*")]
    assert line.placed == ("p",)
    assert line.has(options.NO_RUN)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("p:/(/=P()", r"p:/\(/ is not a regular expression"),
        ("p:/w/=P() p:/w/=P()", "the spec of p:/w/ is given twice"),
        ("p:/w/=", "p:/w/= needs a spec"),
        ("--out p:/w/=P()", "is a rule for an input"),
    ],
)
def test_bad_rules_are_refused(line, message):
    with pytest.raises(OptionError, match=message):
        parse_cell(line)


def test_a_rule_with_another_value_is_an_error_of_the_cell(cell):
    shown = cell("%%shard params:/kernel/='model'\ny = params['up']['kernel'] * 2", fails=True)
    assert "expected a spec for the rule /kernel/ such as P('data')" in shown.err
    shown = cell("%%shard params=like('other')\ny = params['up']['kernel'] * 2", fails=True)
    assert "which is not another argument" in shown.err


def test_a_name_of_the_users_comes_before_like(cell):
    cell("like = P('data') if False else __import__('jax').P('data')")
    shown = cell("%%shard --no-run params=like\ny = params['up']['kernel'] * 2")
    found = {value["name"]: value["spec"] for value in shown.reports[0]["inputs"]}
    assert found["params['up']['kernel']"] == (("data",), ())
