"""What the traceback of a call shows: the user's lines, and shardnb's only where it has a bug."""

from __future__ import annotations

import traceback
from pathlib import Path

import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.tracebacks import with_users_frames

PACKAGE = Path(sn.__file__).parent
x = jnp.ones((8, 4))


def ours(error):
    """Return the functions of shardnb's in a traceback, but for the one that hides itself."""
    return [
        frame.f_code.co_name
        for frame, _ in traceback.walk_tb(error.__traceback__)
        if Path(frame.f_code.co_filename).is_relative_to(PACKAGE)
        and "__tracebackhide__" not in frame.f_locals
    ]


def functions(error):
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)]


@pytest.mark.parametrize(
    "call", [sn.explain, sn.plan, sn.explore], ids=["explain", "plan", "explore"]
)
def test_an_error_of_the_users_function_is_shown_at_its_line(call):
    def fails(x):
        return x @ x.T @ jnp.ones(3)

    with pytest.raises(TypeError) as caught:
        call(fails, x, mesh="data=2")
    assert ours(caught.value) == []
    assert "fails" in functions(caught.value)


def test_a_spec_that_does_not_fit_is_shown_at_the_call():
    with pytest.raises(ValueError, match="names the mesh axis 'date'") as caught:
        sn.explain(lambda x: x, x, mesh="data=2", in_specs=(P("date"),))
    assert ours(caught.value) == []


def test_a_bug_of_ours_keeps_its_frames(monkeypatch):
    monkeypatch.setattr("shardnb.findings.assemble.FINDINGS", (None,))
    with pytest.raises(TypeError) as caught:
        sn.explain(jnp.sin, x, mesh="data=2")
    assert "assemble" in functions(caught.value)


def test_a_bug_next_to_the_checks_keeps_its_frames(monkeypatch):
    monkeypatch.setattr("shardnb.compiler.placement.check_spec", None)
    with pytest.raises(TypeError, match="not callable") as caught:
        sn.explain(jnp.sin, x, mesh="data=2", in_specs=(P("data"),))
    assert "_leaf" in functions(caught.value)


def test_the_function_stays_what_it_is():
    @with_users_frames
    def double(x, *, times=2):
        """Double it."""
        return x * times

    assert (double(2, times=3), double.__doc__, double.__name__) == (6, "Double it.", "double")
