"""Copies of syntax trees."""

from __future__ import annotations

import ast

import pytest

from shardnb.rewrite.syntax_trees import copied

TEXT = "@jit\ndef f(x, *, y=None):\n    return [a for a in x] if x else (x @ y)[..., 1:]  # text\n"


class Refuses:
    def __deepcopy__(self, memo):
        raise AssertionError


@pytest.fixture
def shown_before():
    """What a traceback that IPython shows does to the node that all trees share."""
    shared = ast.parse("x").body[0].value.ctx
    shared.parent = Refuses()
    yield
    del shared.parent


@pytest.mark.usefixtures("shown_before")
def test_a_copy_has_the_fields_and_places_of_a_tree_alone():
    tree = ast.parse(TEXT)
    copy = copied(tree)
    assert ast.dump(copy, include_attributes=True) == ast.dump(tree, include_attributes=True)
    assert not {id(node) for node in ast.walk(tree)} & {id(node) for node in ast.walk(copy)}
    assert not any(hasattr(node, "parent") for node in ast.walk(copy))
