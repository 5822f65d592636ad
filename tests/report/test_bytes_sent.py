"""What each device sends, where not every device sends all."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.report.bytes_sent import by_device, most_sent, sends_alike
from shardnb.report.model import Collective

MESH = "data=4,model=2"
ALL = (tuple(range(4)),)


def sent(kind="all-reduce", groups=ALL, wire_bytes=1, **fields):
    return Collective(0, kind, None, groups, "f32", (1,), wire_bytes, **fields)


def permute(*pairs, wire_bytes=1):
    return sent("collective-permute", pairs, wire_bytes)


def floats(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def test_the_source_of_a_pair_sends():
    there, back = permute((0, 1), (2, 3), wire_bytes=96), permute((1, 0), (3, 2), wire_bytes=96)
    assert by_device([there, back]) == dict.fromkeys(range(4), 96)
    assert by_device([permute((6, 4), (5, 5))]) == {4: 0, 5: 0, 6: 1}


def test_a_device_sends_in_each_of_its_pairs_and_groups():
    assert by_device([permute((0, 1), (0, 2)), sent(groups=((0, 1), (2,)))]) == {0: 3, 1: 1, 2: 0}


def test_without_groups_each_device_sends():
    assert most_sent([sent(groups=()), sent(groups=(), trips=3)]) == 4
    assert by_device([sent(groups=()), permute((6, 4))]) == {4: 1, 6: 2}
    assert most_sent([]) == 0


def test_of_branches_the_one_counts_that_sends_most():
    first, second = (("c", 0),), (("c", 1),)
    several = [
        sent(wire_bytes=8),
        sent(wire_bytes=5, branches=first),
        sent(wire_bytes=4, branches=second),
        sent(wire_bytes=3, branches=(*second, ("d", 0))),
        sent(wire_bytes=2, branches=(*second, ("d", 1))),
        sent(wire_bytes=1, branches=(("e", 0),)),
    ]
    # max(5, 4 + max(3, 2)) = 7
    assert most_sent(several) == 8 + 7 + 1


def test_branches_of_any_depth_are_added_up():
    deep = tuple((str(number), 0) for number in range(5000))
    assert most_sent([sent(branches=deep)] * 2) == 2


def test_halves_that_are_exchanged_are_sent_once_by_each_device():
    def rotated(q, c, s):
        a, b = jnp.split(q, 2, -1)
        return jnp.concatenate([a * c - b * s, b * c + a * s], -1)

    spec = P("data", None, "model")
    report = sn.explain(
        rotated,
        *(floats(4, 6, 16), floats(6, 8), floats(6, 8)),
        mesh=MESH,
        in_specs=(spec, P(), P()),
        out_specs=spec,
    )
    permutes = [c for c in report.collectives if c.kind == "collective-permute"]
    assert [len(c.groups) for c in permutes] == [4, 4]
    # A block of 1 x 6 x 4 floats; each device is a source in one of the two.
    assert most_sent(permutes) == 1 * 6 * 4 * 4
    rest = sum(c.wire_bytes for c in report.collectives if c not in permutes)
    assert report.wire_bytes == 96 + rest
    assert f"Each device sends {96 + rest} B per run." in str(report)


def test_devices_that_send_nothing_make_it_a_bound():
    def shifted(x):
        return lax.ppermute(x, "data", [(0, 1)])

    def run(x):
        return jax.shard_map(shifted, in_specs=P("data"), out_specs=P("data"))(x)

    report = sn.explain(
        run,
        floats(8, 3),
        mesh="data=4",
        in_specs=P("data"),
    )
    assert not sends_alike(report.collectives, 4)
    assert "Each device sends at most 24 B per run" in str(report)


@pytest.mark.parametrize(("branches", "most"), [(2, 56), (3, 112)])
def test_a_conditional_sends_what_its_largest_branch_does(branches, most):
    def chosen(i, x):
        several = [lambda y: lax.psum(y, "model"), lambda y: lax.pmax(y, "model")]
        several += [lambda y: lax.psum(jnp.tile(y, 2), "model")[:, :7]]
        return lax.switch(i, several[:branches], x)

    def run(i, x):
        specs = (P(), P("data", "model"))
        return jax.shard_map(chosen, in_specs=specs, out_specs=P("data"))(i, x)

    index = jax.ShapeDtypeStruct((), jnp.int32)
    specs = (P(), P("data", "model"))
    report = sn.explain(run, index, floats(8, 14), mesh=MESH, in_specs=specs)
    # A block has 2 x 7 floats; an all-reduce between two devices sends as much.
    assert report.wire_bytes == most
    assert f"Each device sends at most {most} B per run" in str(report)


def test_a_loop_of_unknown_trips_has_no_seconds_and_no_total():
    def settled(x, a):
        def body(state):
            y = a @ state[0]
            return y / 10, jnp.abs(y - state[0]).max()

        return lax.while_loop(lambda state: state[1] > 1e-3, body, (x, jnp.float32(1)))

    args = (jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((64,), (64, 64)))
    specs = P("data"), P("data")
    report = sn.explain(settled, *args, mesh="data=8", in_specs=specs).on_hardware("v5e")
    told = " ".join(str(report).split())
    assert "How much each device sends per run is not known." in told
    # Each gathers the 7 blocks of 8 floats that it does not have: a ring sends 7 of them.
    assert "1 all-gather[data] at line" in told
    assert "224 B each time, unknown per run" in told
    assert not [bad for bad in ("at least 0 B", "0.000 us", "xunknown", ", ,") if bad in told]
