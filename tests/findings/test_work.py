"""The work of programs, against multiply-adds counted by hand: 2 for each of a product."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec as P

from shardnb.collectives.trips import trip_count
from shardnb.engine import explain
from shardnb.findings.work import work_of
from shardnb.texts import hlo

X = jax.ShapeDtypeStruct((256, 512), jnp.float32)
W = jax.ShapeDtypeStruct((512, 512), jnp.float32)
ONCE = 2 * 64 * 512 * 512


def work(fn, *args):
    specs = (P("data"), *(P() for _ in args[1:]))
    return explain(fn, *args, mesh="data=4", in_specs=specs).work


def looped(length):
    def fn(x, w):
        return jax.lax.scan(lambda h, _: (h @ w, None), x, None, length=length)[0]

    return fn


def test_a_product_is_counted_on_one_device():
    assert work(jnp.dot, X, W).flops == pytest.approx(ONCE)


def test_a_loop_counts_as_often_as_it_runs():
    assert work(looped(10), X, W).flops == pytest.approx(10 * ONCE, rel=1e-4)


def test_the_text_alone_gives_the_same_count():
    found = explain(looped(10), X, W, mesh="data=4", in_specs=(P("data"), P()))
    assert work_of(found.texts["optimized"]) == found.work


def test_a_loop_within_a_loop_counts_by_both():
    def fn(x, w):
        return jax.lax.scan(lambda h, _: (looped(3)(h, w), None), x, None, length=5)[0]

    assert work(fn, X, W).flops == pytest.approx(15 * ONCE, rel=1e-4)


def test_work_beside_a_loop_counts_once():
    assert work(lambda x, w: looped(4)(x, w) @ w, X, W).flops == pytest.approx(5 * ONCE, rel=1e-4)


def test_the_bytes_of_a_loop_count_as_often_as_it_runs():
    once, ten = work(looped(10), X, W), work(looped(100), X, W)
    # A trip reads h and w and writes h: 64x512, 512x512 and 64x512 of 4 bytes.
    trip = 4 * (64 * 512 + 512 * 512 + 64 * 512)
    assert (ten.accessed_bytes - once.accessed_bytes) / 90 == pytest.approx(trip, rel=0.3)


def test_a_loop_of_unknown_length_leaves_the_work_unknown():
    def fn(x, w, n):
        return jax.lax.fori_loop(0, n, lambda _, h: h @ w, x)

    assert work(fn, X, W, jax.ShapeDtypeStruct((), jnp.int32)) is None


def test_custom_calls_are_said_to_be_left_out():
    text = """HloModule m
ENTRY %main (x: f32[8]) -> f32[8] {
  %x = f32[8] parameter(0)
  ROOT %c = f32[8] custom-call(%x), custom_call_target="mine"
}
"""
    found = work_of(text)
    assert found is None or found.uncounted == 1


LOOP = """HloModule m

%body (p: (s32[], f32[8], s32[])) -> (s32[], f32[8], s32[]) {
  %p = (s32[], f32[8], s32[]) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %step = s32[] get-tuple-element(%p), index=2
  %next = s32[] add(%i, %step)
  %x = f32[8] get-tuple-element(%p), index=1
  ROOT %t = (s32[], f32[8], s32[]) tuple(%next, %x, %step)
}

%cond (q: (s32[], f32[8], s32[])) -> pred[] {
  %q = (s32[], f32[8], s32[]) parameter(0)
  %end = s32[] constant(10)
  %j = s32[] get-tuple-element(%q), index=0
  ROOT %lt = pred[] compare(%j, %end), direction=LT
}

ENTRY %main (x.1: f32[8]) -> f32[8] {
  %x.1 = f32[8] parameter(0)
  %zero = s32[] constant(1)
  %by = s32[] constant(2)
  %start = (s32[], f32[8], s32[]) tuple(%zero, %x.1, %by)
  %loop = (s32[], f32[8], s32[]) while(%start), condition=%cond, body=%body
  ROOT %out = f32[8] get-tuple-element(%loop), index=1
}
"""


def trips(text):
    module = hlo.parse(text)
    return next(trip_count(module, one) for one in module.instructions() if one.opcode == "while")


def test_trips_are_read_from_a_counter_where_the_compiler_does_not_say_them():
    assert trips(LOOP) == 5  # 1, 3, 5, 7, 9


def test_a_loop_that_ends_otherwise_has_no_known_trips():
    assert trips(LOOP.replace("direction=LT", "direction=NE")) is None


def test_a_counter_whose_end_changes_has_no_known_trips():
    assert trips(LOOP.replace("tuple(%next, %x, %step)", "tuple(%next, %x, %next)")) is None


def test_a_counter_that_starts_from_an_argument_has_no_known_trips():
    text = LOOP.replace("%zero = s32[] constant(1)", "%zero = s32[] parameter(1)")
    assert trips(text) is None
