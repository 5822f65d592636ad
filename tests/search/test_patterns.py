from __future__ import annotations

from typing import NamedTuple

import jax
import pytest
from jax.sharding import PartitionSpec as P

from shardnb.search.patterns import Pattern, patterns_of
from shardnb.search.plans.space import Space, factorisations
from tests.search.models import f32, transformer_arguments


def names(args, specs=None):
    return [(p.name, len(p.members)) for p in patterns_of(args, specs or {})]


def test_48_layers_are_one_choice():
    params, x = transformer_arguments(layers=48)
    found = names({"params": params, "x": x})
    assert len(found) == 7
    assert ("params[*]['up']", 48) in found


def test_layers_in_a_dict_are_one_choice():
    params = {f"layer_{n}": {"w": f32(8, 8)} for n in range(3)}
    assert names({"p": params}) == [("p['layer_*']['w']", 3)]


def test_two_matrices_of_a_layer_are_two_choices():
    params = [{"w1": f32(8, 8), "w2": f32(8, 8)} for _ in range(2)]
    assert names({"p": params}) == [("p[*]['w1']", 2), ("p[*]['w2']", 2)]


def test_matrices_that_flax_numbers_within_a_layer_are_choices_of_their_own():
    layer = {"Dense_0": {"kernel": f32(8, 8)}, "Dense_1": {"kernel": f32(8, 8)}}
    params = {f"Block_{n}": layer for n in range(3)}
    assert names({"p": params}) == [
        ("p['Block_*']['Dense_0']['kernel']", 3),
        ("p['Block_*']['Dense_1']['kernel']", 3),
    ]


def test_a_list_of_matrices_is_not_one_choice():
    assert len(names({"ws": [f32(8, 8), f32(8, 8)]})) == 2


def test_layers_of_another_shape_are_another_choice():
    params = [{"w": f32(8, 8)}, {"w": f32(8, 16)}, {"w": f32(8, 8)}]
    assert names({"p": params}) == [("p[*]['w']", 2), ("p[*]['w']", 1)]


class State(NamedTuple):
    params: dict
    moments: dict


def test_a_parameter_and_its_moments_move_together_too():
    state = State({"w": f32(8, 8)}, {"w": f32(8, 8)})
    space = Space(patterns_of({"s": state}, {}), (("x", 2),))
    split = ((), ("x",))
    assert (split, split) in set(space.moves(space.start))
    assert (split, ((), ())) in set(space.moves(space.start))


def test_a_spec_that_the_user_gives_is_fixed():
    (found,) = patterns_of({"w": f32(8, 8)}, {"w": P("x")})
    assert (found.fixed, found.free) == ((("x",), ()), False)


def test_small_vectors_stay_whole():
    params = {"w": f32(512, 512), "b": f32(512)}
    free = {p.name for p in patterns_of({"p": params}, {}) if p.free}
    assert free == {"p['w']"}


def test_a_random_key_stays_whole():
    key = jax.eval_shape(lambda: jax.random.key(0))
    assert not patterns_of({"key": key}, {})[0].free


W = Pattern("w", "f32", (6, 8), (0,))


def test_only_what_divides_is_a_placement():
    moves = set(Space((W,), (("x", 4),)).moves((((), ()),)))
    assert moves == {(((), ("x",)),)}


def test_like_axes_give_each_placement_once():
    space = Space((W,), (("x", 2), ("y", 2)))
    assert space.canonical((((), ("y",)),)) == space.canonical((((), ("x",)),))


def test_axes_that_the_program_names_keep_their_names():
    space = Space((W,), (("x", 2), ("y", 2)), symmetric=False)
    assert space.canonical((((), ("y",)),)) != space.canonical((((), ("x",)),))


def test_axes_can_trade_places():
    space = Space((W,), (("x", 2), ("y", 1), ("z", 2)), symmetric=False)
    assert ((("z",), ("x",)),) in set(space.swaps(((("x",), ("z",)),)))


@pytest.mark.parametrize(("count", "shapes"), [(1, 1), (7, 1), (8, 3), (256, 10)])
def test_every_shape_of_a_mesh_is_given_once(count, shapes):
    found = factorisations(count)
    assert len(found) == len(set(found)) == shapes
