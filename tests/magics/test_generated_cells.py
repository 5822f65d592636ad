"""Generated cells leave what a plain run leaves, or are refused before anything changes."""

from __future__ import annotations

import contextlib
import io
import random

import jax
import numpy as np
import pytest

from shardnb.compiler.collector import collector_paused
from shardnb.magics.binding import Binding
from shardnb.magics.cell import CellError
from shardnb.magics.options import CELL_OPTIONS, parse
from tests.magics.described import described, numpy_state
from tests.magics.generated import REFUSED, generated


def run_plain(setup, cell):
    namespace = {"__name__": "__main__"}
    exec(setup, namespace)  # noqa: S102
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(cell, "<plain>", "exec"), namespace)  # noqa: S102
    return described(namespace), out.getvalue()


def run_sharded(ip, setup, cell, kinds):
    """Run a cell as `%%shard` does, without XLA's dumps and without a report."""
    session = ip.magics_manager.registry["ShardMagics"].session
    names = set(ip.user_ns)
    exec(setup, ip.user_ns)  # noqa: S102
    keys = set(ip.user_ns) - names
    before = None if kinds.isdisjoint(REFUSED) else described(_copied(setup))
    with contextlib.redirect_stdout(io.StringIO()) as out:
        try:
            prepared = session.prepared(
                session.cell_text("", cell), parse("", CELL_OPTIONS), run=True
            )
            with collector_paused():
                traced = prepared.request.trace()
            prepared.function.refuse_leaks()
            binding = Binding(ip.user_ns, prepared.function.recording)
            leaves = jax.tree_util.tree_leaves(list(prepared.request.arguments.values()))
            with binding.begun():
                values = jax.core.eval_jaxpr(traced.jaxpr.jaxpr, traced.jaxpr.consts, *leaves)
                structure = jax.tree_util.tree_structure(traced.out_info)
                binding.finish(structure.unflatten(values))
        except CellError as error:
            refused = str(error)
            traced = prepared = None
            after = described({n: v for n, v in ip.user_ns.items() if n in keys})
            return (after, before), refused
    space = {n: v for n, v in ip.user_ns.items() if n not in names or n in keys}
    return described(space), out.getvalue()


def _copied(setup):
    namespace = {"__name__": "__main__"}
    exec(setup, namespace)  # noqa: S102
    return namespace


@contextlib.contextmanager
def random_states_kept():
    states = random.getstate(), numpy_state()
    yield
    random.setstate(states[0])
    np.random.set_state(states[1])  # noqa: NPY002  the one of the process


@pytest.fixture
def shard(ip):
    ip.run_line_magic("mesh", "data=2")
    names = dict(ip.user_ns)

    def run(setup, cell, kinds):
        for name in [name for name in ip.user_ns if name not in names]:
            del ip.user_ns[name]
        return run_sharded(ip, setup, cell, kinds)

    return run


@pytest.mark.parametrize("part", range(6))
def test_a_generated_cell_leaves_what_a_plain_run_leaves(shard, part):
    refusals = compared = 0
    for seed in range(part * 90, part * 90 + 90):
        setup, cell, kinds = generated(seed)
        with random_states_kept():
            try:
                expected = run_plain(setup, cell)
            except Exception:  # noqa: BLE001, S112  the generated cell is not a valid program
                continue
            given = shard(setup, cell, kinds)
        if isinstance(given[0], tuple):
            refusals += 1
            assert kinds & REFUSED, (seed, cell, given[1])
            assert given[0][0] == given[0][1], (seed, cell)
        else:
            assert given == expected, (seed, cell)
            compared += 1
    assert refusals < 10
    assert compared > 75
