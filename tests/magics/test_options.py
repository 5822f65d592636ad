"""The lines of the magics, without IPython."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardnb.magics.options import CELL_OPTIONS, FORBID, MESH, MESH_OPTIONS, OptionError, parse


def read(line):
    return parse(line, CELL_OPTIONS)


def message(line):
    with pytest.raises(OptionError) as caught:
        read(line)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_specs_with_and_without_blanks_before_and_behind_out():
    line = read("x=P('data', 'model')   W = P('model',None) --out y=P('data') --no-run")
    assert line.specs == {"x": "P('data', 'model')", "W": "P('model',None)"}
    assert line.out == {"y": "P('data')"}
    assert line.values == {"no-run": True}


def test_out_ends_at_the_next_option():
    line = read("--out y=P('data') z=P() --view brief x=P()")
    assert (set(line.out), set(line.specs)) == ({"y", "z"}, {"x"})


def test_out_may_stand_first():
    assert read("--out y=P()").out == {"y": "P()"}


@pytest.mark.parametrize(
    "spec",
    [
        "{'w': P('data'), 'b': None}",
        "P('data') if n == 3 else P()",
        "jax.tree.map(lambda a: P('data', *[None] * (a.ndim - 1)), params)",
        "NamedSharding(mesh, P(('data', 'model'), None))",
        "P('--no-run', 'y=3')",
        'P("it\'s")',
        "P('#')",
        "f(n=3, m = 4)",
    ],
)
def test_a_spec_is_any_expression(spec):
    line = read(f"x={spec} y = {spec} --no-run")
    assert line.specs == {"x": spec, "y": spec}
    assert line.values == {"no-run": True}


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["x", "W", "params", "_a1", "größe"]),
            st.sampled_from(["P()", "P('a', None)", "{'k': P( )}", "(P(), [P('a')])", "a == b"]),
            st.sampled_from(["=", " =", "= ", " = "]),
            st.sampled_from([" ", "   ", "\t"]),
        ),
        unique_by=lambda item: item[0],
    ),
    st.sampled_from(["", "--no-run ", "--mesh data=4,model=2 ", "--view=none "]),
)
def test_every_spec_is_found_whatever_the_blanks(items, before):
    text = before + "".join(f"{name}{sign}{spec}{gap}" for name, spec, sign, gap in items)
    assert read(text).specs == {name: spec for name, spec, _, _ in items}


@given(st.text(alphabet="xyP()[]{}'\",=-# \\\t1.:abcdefg", max_size=40))
def test_any_line_is_read_or_refused(text):
    with suppress(OptionError):
        read(text)


@pytest.mark.parametrize(
    "text",
    [
        "data=4,model=2",
        "data=4:explicit,model=2:manual",
        "data=4, model=2",
        "my_mesh",
        "jax.make_mesh((4, 2), ('data', 'model'))",
    ],
)
def test_a_mesh_is_a_text_or_an_expression(text):
    line = read(f"--mesh {text} x=P('data')")
    assert line.text(MESH) == text
    assert line.specs == {"x": "P('data')"}


def test_values_may_be_quoted_or_follow_an_equals_sign():
    assert read("--mesh='data=4' --on \"v5e:2x4\"").values == {"mesh": "data=4", "on": "v5e:2x4"}


def test_what_is_forbidden_is_a_list():
    assert read("--forbid inferred,all-gather").words(FORBID) == ("inferred", "all-gather")


def test_a_comment_ends_a_line():
    assert read("x=P('data')  # the batch").specs == {"x": "P('data')"}


def test_commas_between_specs_do_no_harm():
    assert read("x=P('data'), W=P()").specs == {"x": "P('data')", "W": "P()"}


def test_a_call_stands_before_everything():
    line = read("f(x, n=3, w = W) --view brief x=P('data')")
    assert (line.first, line.specs) == ("f(x, n=3, w = W)", {"x": "P('data')"})


def test_a_mesh_with_blanks_is_the_first_of_a_line_without_specs():
    line = parse("data=4, model=2:explicit --on cpu", MESH_OPTIONS, specs=False)
    assert (line.first, line.values) == ("data=4, model=2:explicit", {"on": "cpu"})


def test_parts_of_a_name_have_specs_of_their_own():
    line = parse(
        "x=P() m[\"w\"].mu=P('data') --fix s[*].nu = P(None, 'model') --out y=P()", CELL_OPTIONS
    )
    assert line.parts == {"m['w'].mu": "P('data')", "s[*].nu": "P(None, 'model')"}
    assert (line.specs, line.out) == ({"x": "P()"}, {"y": "P()"})
    assert line.placed == ("x", "m", "s")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("--vieww full", "there is no option --vieww; did you mean --view?"),
        ("--zzz", "there is no option --zzz; the options are --mesh, --axes, --on, --hardware"),
        ("--mesh", "--mesh needs a value: --mesh data=4,model=2"),
        ("--mesh --no-run", "--mesh needs a value"),
        (
            "--axes automatic",
            "--axes: 'automatic' is not an axis type; the types are auto, explicit",
        ),
        ("--view wide", "--view: 'wide' is not a view; the views are full, brief, none"),
        (
            "--forbid gather",
            "--forbid: 'gather' cannot be forbidden; the choices are called, requested",
        ),
        ("--save 3", "--save: '3' is not a Python name"),
        ("--no-run --no-run", "--no-run is given twice"),
        ("x=P() x=P()", "the spec of x is given twice"),
        ("x=", "x= needs a spec, such as x=P('data')"),
        ("x=P('data'", "the spec x=P('data' is not a Python expression: '(' was never closed"),
        ("x=P() 3", "the spec x=P() 3 is not a Python expression"),
        ("m['w'].mu=P() m[\"w\"].mu=P()", "the spec of m['w'].mu is given twice"),
        ("m[3 4]=P()", "m[3 4] is not the path of an array"),
        ("--out s[0]=P()", "s[0]=P() is a spec for a part of s, but after --out"),
        ("--no-run P('data')", "\"P('data')\" is neither an option nor a spec such as x=P('data')"),
    ],
)
def test_an_error_names_the_thing_and_the_form(line, says):
    assert says in message(line)


@pytest.mark.parametrize(
    "line",
    [
        "--watch --no-run",
        "--watch --fix",
        "--check --watch",
        "--compare auto,explicit --watch",
        "--no-run --check",
        "--compare auto,explicit --check",
        "--fix --compare auto,explicit",
    ],
)
def test_options_that_cannot_act_together_are_refused(line):
    assert "cannot be combined with" in message(line)


def test_a_keyword_is_no_name_of_a_report():
    assert "'class' is not a Python name" in message("--save class")
