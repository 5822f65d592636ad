"""Names that a cell reads and assigns, held against what Python does when the cell runs."""

from __future__ import annotations

import ast
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shardnb.magics.scope import names_of


def names(text):
    found = names_of(ast.parse(text))
    return set(found.read), set(found.assigned)


@pytest.mark.parametrize(
    ("text", "read", "assigned"),
    [
        ("y = x @ W", {"x", "W"}, {"y"}),
        ("h = x; y = h", {"x"}, {"h", "y"}),
        ("x += 1", {"x"}, {"x"}),
        ("x[i] += 1", {"x", "i"}, set()),
        ("params['w'] = v", {"params", "v"}, set()),
        ("obj.attr = v", {"obj", "v"}, set()),
        ("a = b = c", {"c"}, {"a", "b"}),
        ("(a, *b), c.d = e", {"e", "c"}, {"a", "b"}),
        ("y: T = x", {"T", "x"}, {"y"}),
        ("del W", set(), {"W"}),
        ("y = [h * k for k in ks if k]", {"h", "ks"}, {"y"}),
        ("y = {k: v for k, v in kvs}", {"kvs"}, {"y"}),
        ("y = sum(i * k for i in a for k in i)", {"sum", "a"}, {"y"}),
        ("y = [(w := v) for v in vs]", {"vs"}, {"w", "y"}),
        ("y = [a for b in [[a for a in c]]]", {"a", "c"}, {"y"}),
        ("y = [lambda: (k, d) for k in ks]", {"d", "ks"}, {"y"}),
        ("y = [v for q[i] in qs for v in q]", {"q", "i", "qs"}, {"y"}),
        ("if (n := m): pass\ny = n", {"m"}, {"n", "y"}),
        ("def f(a): return a @ W", {"W"}, {"f"}),
        ("def f(a=d): return a", {"d"}, {"f"}),
        ("f = lambda a, b=c: a + b + W", {"c", "W"}, {"f"}),
        ("def f():\n  global g\n  g = x", {"x"}, {"f", "g"}),
        ("def f():\n  a = 1\n  def k():\n    nonlocal a\n    a = x\n  return k", {"x"}, {"f"}),
        ("def f():\n  def k(): return W\n  return k", {"W"}, {"f"}),
        ("W = x\ndef f(): return W", {"x"}, {"W", "f"}),
        ("def f(): return W\nW = x", {"x", "W"}, {"f", "W"}),
        ("class A(B):\n  y = x\n  def m(self): return z", {"B", "x", "z"}, {"A"}),
        ("class A:\n  x = x", {"x"}, {"A"}),
        ("@d\ndef f(): pass", {"d"}, {"f"}),
        ("for i, w in ws: s = s + w", {"ws", "s"}, {"i", "w", "s"}),
        ("for x in x: pass", {"x"}, {"x"}),
        ("while c: c = f(c)", {"c", "f"}, {"c"}),
        ("with m() as (a, b): y = a", {"m"}, {"a", "b", "y"}),
        ("import a.b, c as d\nfrom e import f as g\ny = a, d, g", set(), {"a", "d", "g", "y"}),
        ("from m import *\ny = q", {"q"}, {"y"}),
        ("try: y = x\nexcept E as e: y = e\nz = y", {"x", "E", "e"}, {"y", "e", "z"}),
        ("if c: h = a\nelse: h = b\ny = h", {"c", "a", "b"}, {"h", "y"}),
        ("if c: h = a\ny = h", {"c", "a", "h"}, {"h", "y"}),
        ("match v:\n  case {'a': q, **r}: z = q\n  case [s, *t]: pass", {"v"}, {*"qrzst"}),
        ("print(f'{x!r:{w}}')", {"print", "x", "w"}, set()),
        ("def f[T](a: T) -> T: return a", set(), {"f"}),
        ("type L = list[K]", {"list", "K"}, {"L"}),
    ],
)
def test_names(text, read, assigned):
    found = names(text)
    assert found == (read, assigned)


def test_names_come_in_the_order_in_which_they_are_met():
    assert names_of(ast.parse("z = b + a\ny = c")).read == ("b", "a", "c")


# Random cells: what Python looks up, in a namespace where every name exists, was found.

NAMES = st.sampled_from(["a", "b", "c", "d"])
EXPRESSIONS = st.recursive(
    NAMES | st.just("1"),
    lambda inner: st.one_of(
        st.builds("({} + {})".format, inner, inner),
        st.builds("({} if {} else {})".format, inner, inner, inner),
        st.builds("({} and {})".format, inner, inner),
        st.builds("({} := {})".format, NAMES, inner),
        st.builds("[{} for {} in [{}]][0]".format, inner, NAMES, inner),
        st.builds("(lambda {}: {})({})".format, NAMES, inner, inner),
    ),
    max_leaves=6,
)


def indented(body):
    return "\n".join(f"  {line}" for line in body.splitlines())


def blocks(inner):
    body = inner.map(indented)
    return st.one_of(
        st.builds("if {}:\n{}\nelse:\n{}".format, EXPRESSIONS, body, body),
        st.builds("for {} in [{}]:\n{}".format, NAMES, EXPRESSIONS, body),
        st.builds("def {0}_(): \n{1}\n  return 1\n{0}_()".format, NAMES, body),
        st.builds("class A:\n{}".format, body),
        st.builds("try:\n{}\nexcept Exception as {}:\n{}".format, body, NAMES, body),
        st.builds("{}\n{}".format, inner, inner),
    )


STATEMENTS = st.recursive(
    st.one_of(
        st.builds("{} = {}".format, NAMES, EXPRESSIONS),
        st.builds("{} += {}".format, NAMES, EXPRESSIONS),
        st.builds("del {}".format, NAMES),
        st.builds("{}".format, EXPRESSIONS),
    ),
    blocks,
    max_leaves=6,
)


class Recorder(dict):
    """A namespace that notes what is looked up before it is assigned, and what is assigned."""

    def __init__(self):
        super().__init__(dict.fromkeys("abcd", 1))
        self.read, self.assigned = set(), set()

    def __getitem__(self, name):
        if name not in self.assigned:
            self.read.add(name)
        return super().__getitem__(name)

    def __setitem__(self, name, value):
        self.assigned.add(name)
        super().__setitem__(name, value)

    def __delitem__(self, name):
        self.assigned.add(name)
        super().__delitem__(name)


@settings(max_examples=300, deadline=None)
@given(STATEMENTS)
def test_what_python_looks_up_is_among_the_names(text):
    try:
        code = compile(text, "<cell>", "exec")
    except SyntaxError:  # a walrus where Python allows none
        return
    recorder = Recorder()
    with suppress(Exception):
        exec(code, {"__builtins__": __builtins__, **dict.fromkeys("abcd", 1)}, recorder)  # noqa: S102
    read, assigned = names(text)
    assert recorder.read & set("abcd") <= read
    assert recorder.assigned & set("abcd") <= assigned
