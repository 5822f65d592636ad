"""Arrays in pytrees, copies for a trace, and writing back."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from shardnb.magics.trees import Copies, Settling, become, is_array, is_input, leaves_of, only


class Pair(NamedTuple):
    first: object
    second: object


@jax.tree_util.register_pytree_node_class
class Box:
    def __init__(self, value, label):
        self.value, self.label = value, label

    def tree_flatten(self):
        return (self.value,), self.label

    @classmethod
    def tree_unflatten(cls, label, children):
        return cls(*children, label)


@jax.tree_util.register_pytree_node_class
class Slotted:
    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value

    def tree_flatten(self):
        return (self.value,), None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)

    def __getattr__(self, name):  # answers for everything, as proxies do
        return 0


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


@pytest.mark.parametrize("value", [[], {}, [1], A, (A, 1), Box(A, "l"), {"a": {"b": A}}])
def test_what_has_arrays_or_may_get_some_is_an_input(value):
    assert is_input(value)


@pytest.mark.parametrize("value", [1, "a", None, (), (1, 2), len, np, Box(1, "l"), {1: 2, "a": 3}])
def test_what_has_none_is_no_input(value):
    assert not is_input(value)


def test_only_arrays_are_kept_in_their_places():
    tree = {"w": A, "name": "relu", "b": None, "more": [1, B]}
    kept = only(tree, is_array)
    paths = [jax.tree_util.keystr(p) for p, _ in jax.tree_util.tree_leaves_with_path(kept)]
    assert paths == ["['more'][1]", "['w']"]


def copied(tree, *arrays):
    copies = Copies()
    return copies, copies.copy(tree, iter(arrays))


def test_a_copy_has_the_replacements_and_the_static_rest():
    _, copy = copied({"w": A, "n": 3}, B)
    assert copy == {"w": B, "n": 3} or copy["w"] is B


def test_a_copy_keeps_the_order_of_keys():
    assert list(copied({"w": A, "b": B}, B, A)[1]) == ["w", "b"]


def test_a_container_that_is_shared_stays_shared():
    inner = {"w": A}
    _, copy = copied([inner, inner], B, C)
    assert copy[0] is copy[1]


def settled(tree, arrays, change):
    copies, copy = copied(tree, *arrays)
    change(copy)
    return Settling(copies, lambda leaf: leaf).settle(copy)


@pytest.mark.parametrize(
    "tree",
    [
        {"w": A, "b": B},
        [A, B],
        OrderedDict(w=A, b=B),
        defaultdict(list, w=A, b=B),
        (A, [B]),
        Pair(A, {"x": B}),
        Box([A, B], "l"),
    ],
)
def test_what_is_unchanged_is_the_users_own_object(tree):
    leaves = leaves_of(tree)
    copies, copy = copied(tree, *leaves)
    assert copy is not tree
    assert Settling(copies, lambda leaf: leaf).settle(copy) is tree


def test_a_changed_dictionary_is_changed_in_place():
    tree = {"w": A, "b": B}

    def change(copy):
        copy["w"] = C
        copy["new"] = 3
        del copy["b"]

    assert settled(tree, (B, A), change) is tree
    assert tree == {"w": C, "new": 3}


def test_a_changed_list_is_changed_in_place():
    tree = [A]
    assert settled(tree, (A,), lambda copy: copy.append(B)) is tree
    assert [id(v) for v in tree] == [id(A), id(B)]


def test_a_changed_list_inside_a_tuple_is_changed_in_place():
    tree = (1, [A])
    assert settled(tree, (A,), lambda copy: copy[1].append(B)) is tree
    assert len(tree[1]) == 2


def test_an_object_takes_its_new_attributes_and_static_fields():
    tree = Box(A, "l")

    def change(copy):
        copy.value, copy.label = B, "m"

    assert settled(tree, (A,), change) is tree
    assert (tree.value is B, tree.label) == (True, "m")


def test_an_object_with_slots_is_changed_in_place():
    tree = Slotted(A)

    def change(copy):
        copy.value = B

    assert settled(tree, (A,), change) is tree
    assert tree.value is B


def test_what_cannot_change_in_place_is_replaced():
    old, new = Pair(A, 1), Pair(B, 2)
    assert become(old, new) is new
