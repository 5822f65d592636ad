"""Whose lines a stack has, and which of them a collective is shown at."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import pytest

from shardnb.sources.functions import code_of, function_of
from shardnb.sources.source_texts import Sources
from shardnb.texts.hlo import Frame

PACKAGES = "/opt/env/lib/python3.12/site-packages"
JAX = Frame(f"{PACKAGES}/jax/_src/lax/lax.py", 3, "add")
FLAX = Frame(f"{PACKAGES}/flax/linen/linear.py", 271, "Dense.__call__")
LAYER = Frame(f"{PACKAGES}/MaxText/layers/attentions.py", 90, "Attention.__call__")
MAIN = Frame(f"{PACKAGES}/absl/app.py", 316, "run")
RUNPY = Frame("/usr/lib/python3.12/runpy.py", 88, "_run_code")
TRAIN = Frame("/home/me/train.py", 12, "step")


def places(sources, found):
    names = [source.name for source in sources.texts()]
    return [(names[place.source], place.line) for place in found]


@pytest.mark.parametrize(
    ("stack", "shown"),
    [
        pytest.param((JAX, FLAX, LAYER, TRAIN, RUNPY), [("train.py", 12)], id="the user's line"),
        pytest.param((JAX, FLAX, LAYER, MAIN), [("attentions.py", 90)], id="a program installed"),
        pytest.param((JAX, FLAX, MAIN), [("linear.py", 271)], id="a framework alone"),
        pytest.param((JAX, MAIN, RUNPY), [], id="what runs every program"),
        pytest.param((), [], id="no stack"),
    ],
)
def test_a_collective_is_shown_at_the_line_that_says_most(stack, shown):
    sources = Sources()
    assert places(sources, sources.locate_anywhere(stack)) == shown


def test_only_the_users_own_lines_may_be_edited():
    sources = Sources()
    assert sources.locate((JAX, FLAX, LAYER)) == ()
    assert places(sources, sources.locate((LAYER, TRAIN))) == [("train.py", 12)]


# The function inside a callable


def layer(x):
    return x


class Model:
    def __call__(self, x):
        return x

    def step(self, x):
        return x


@pytest.mark.parametrize(
    ("call", "function"),
    [
        (layer, layer),
        (jax.jit(layer), layer),
        (functools.partial(layer, 1), layer),
        (functools.partial(jax.tree_util.Partial(layer, 1)), layer),
        (jax.jit(functools.partial(jax.jit(layer), 1)), layer),
        (Model(), Model.__call__),
        (functools.partial(Model()), Model.__call__),
        (Model().step, Model.step),
    ],
)
def test_the_function_behind_a_call(call, function):
    assert code_of(call) is function.__code__


@pytest.mark.parametrize("value", [len, 3, None, jnp.add])
def test_what_has_no_python_has_no_code(value):
    assert function_of(value) is value
    assert code_of(value) is None
