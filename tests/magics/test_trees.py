"""Arrays in pytrees."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from shardnb.magics.trees import holds, is_array, is_jax_array, leaves_of, only


@jax.tree_util.register_pytree_node_class
class Box:
    def __init__(self, value, label):
        self.value, self.label = value, label

    def tree_flatten(self):
        return (self.value,), self.label

    @classmethod
    def tree_unflatten(cls, label, children):
        return cls(*children, label)


A, B, C = (np.full(2, i, np.float32) for i in range(3))


@pytest.mark.parametrize(
    "value", [A, np.float32(1), 1, "a", None, np.array(["a"]), np.ma.array([1])]
)
def test_an_array_of_numbers_is_an_array(value):
    assert is_array(value) == (value is A)


def test_jax_arrays_shapes_and_small_floats_are_arrays():
    assert is_array(jnp.ones(2))
    assert is_array(jax.random.key(0))
    assert is_array(jax.ShapeDtypeStruct((2,), jnp.float32))
    assert is_array(np.zeros(2, jnp.bfloat16))


@pytest.mark.parametrize("value", [A, (A, 1), [1, A], Box(A, "l"), {"a": {"b": A}}])
def test_a_pytree_holds_an_array(value):
    assert holds(value, is_array)
    assert not holds(value, is_jax_array)


@pytest.mark.parametrize("value", [1, "a", None, (), [1, 2], len, np, Box(1, "l"), {1: 2, "a": 3}])
def test_a_pytree_holds_none(value):
    assert not holds(value, is_array)


def test_a_loop_is_a_leaf():
    loop = [A]
    loop.append(loop)
    assert leaves_of(loop) == [loop]


def test_only_arrays_are_kept_in_their_places():
    tree = {"w": A, "name": "relu", "b": None, "more": [1, B]}
    kept = only(tree, is_array)
    paths = [jax.tree_util.keystr(p) for p, _ in jax.tree_util.tree_leaves_with_path(kept)]
    assert paths == ["['more'][1]", "['w']"]
