"""Cells that cannot be one program are refused, with their line and form."""

from __future__ import annotations

import ast

import pytest

from shardnb.magics.cell import CellError, cell_of, parted


def refused(text):
    with pytest.raises(CellError) as caught:
        cell_of(ast.parse(text), text.splitlines())
    return str(caught.value)


def test_the_last_expression_is_apart():
    body, last = parted(cell_of(ast.parse("y = x\ny + 1"), []).tree)
    assert len(body.body) == 1
    assert ast.unparse(last) == "y + 1"


def test_a_cell_without_a_last_expression():
    assert parted(cell_of(ast.parse("y = x"), []).tree)[1] is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a = 1\nawait f()", "line 2: `await` outside a function"),
        ("return 3", "line 1: `return`"),
        ("yield 3", "line 1: `yield`"),
        ("x = [i async for i in f()]", "line 1: `async for`"),
        ("async with m: pass", "line 1: `async with`"),
    ],
)
def test_what_belongs_into_a_function_is_refused(text, says):
    assert says in refused(text)


def test_the_same_inside_a_function_is_fine():
    text = "async def f():\n  await g()\n  return 1\nh = lambda: (yield)"
    assert cell_of(ast.parse(text), text.splitlines()).names.assigned == ("f", "h")


def test_what_ipython_made_of_an_escape_is_named_as_the_user_wrote_it():
    tree = ast.parse("a = 1\nif a:\n  get_ipython().system('ls')")
    with pytest.raises(CellError, match=r"line 3: `!ls` is not Python"):
        cell_of(tree, ["a = 1", "if a:", "  !ls"])


def test_a_call_of_the_shell_that_the_user_wrote_is_python():
    text = "get_ipython().system('ls')"
    assert parted(cell_of(ast.parse(text), [text]).tree)[1] is not None
