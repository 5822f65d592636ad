"""Values of HLO: what they are made of, within a computation and across calls."""

from __future__ import annotations

import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.texts import hlo, opcodes
from shardnb.texts.instruction import HloValue

LOOP = hlo.parse("""HloModule loop

%fused (p.1: f32[8]) -> f32[8] {
  %p.1 = f32[8] parameter(0)
  ROOT %negate = f32[8] negate(%p.1)
}

%body (carry: (s32[], f32[8], f32[8])) -> (s32[], f32[8], f32[8]) {
  %carry = (s32[], f32[8], f32[8]) parameter(0)
  %i = s32[] get-tuple-element(%carry), index=0
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  %kept = f32[8] get-tuple-element(%carry), index=1
  %copied = f32[8] copy(%kept)
  %x = f32[8] get-tuple-element(%carry), index=2
  %y = f32[8] fusion(%x), kind=kLoop, calls=%fused
  ROOT %out = (s32[], f32[8], f32[8]) tuple(%next, %copied, %y)
}

%condition (carry.1: (s32[], f32[8], f32[8])) -> pred[] {
  %carry.1 = (s32[], f32[8], f32[8]) parameter(0)
  %j = s32[] get-tuple-element(%carry.1), index=0
  %end = s32[] constant(4)
  ROOT %less = pred[] compare(%j, %end), direction=LT
}

ENTRY %main (a: f32[8], b: f32[8]) -> f32[8] {
  %a = f32[8] parameter(0)
  %b = f32[8] parameter(1)
  %zero = s32[] constant(0)
  %start = (s32[], f32[8], f32[8]) tuple(%zero, %a, %b)
  %fixed = (s32[], f32[8], f32[8]) opt-barrier(%start)
  %loop = (s32[], f32[8], f32[8]) while(%fixed), condition=%condition, body=%body
  %last = f32[8] get-tuple-element(%loop), index=2
  %turned = f32[8] reshape(%last)
  %half = f32[4] slice(%turned), slice={[0:4]}
  %nested = ((f32[8], f32[8]), f32[4]) tuple(%loop, %half)
  ROOT %sum = f32[8] add(%last, %a)
}
""")
MAIN, BODY = LOOP.computations["main"], LOOP.computations["body"]


@pytest.mark.parametrize(
    ("value", "resolved"),
    [
        (HloValue("start", (1,)), HloValue("a")),
        (HloValue("fixed", (2,)), HloValue("b")),
        (HloValue("last"), HloValue("loop", (2,))),
        (HloValue("nested", (0, 1)), HloValue("loop", (1,))),
        (HloValue("nested", (1,)), HloValue("half")),
        (HloValue("elsewhere", (3,)), HloValue("elsewhere", (3,))),
    ],
)
def test_elements_of_tuples_are_what_the_tuples_were_made_of(value, resolved):
    assert MAIN.resolve(value) == resolved


def test_a_loop_takes_what_its_first_tuple_holds():
    assert MAIN.operands["loop"] == (HloValue("zero"), HloValue("a"), HloValue("b"))


def test_tuples_and_barriers_do_not_use_what_they_pass_on():
    assert [user.name for user in MAIN.users[HloValue("a")]] == ["loop", "sum"]


def test_the_way_up_ends_where_another_opcode_made_the_value():
    way = list(MAIN.upward(HloValue("half"), opcodes.PARTS))
    assert way == [HloValue("half"), HloValue("turned"), HloValue("loop", (2,))]
    assert MAIN.source(HloValue("half"), ("slice",)) == HloValue("turned")


def test_a_value_inside_a_loop_and_outside_of_it():
    loop = MAIN.nodes["loop"]
    assert LOOP.inside(loop, 1) == (BODY, HloValue("carry", (1,)))
    assert LOOP.outside(BODY, HloValue("carry", (1,))) == (MAIN, HloValue("a"))
    assert LOOP.outside(LOOP.computations["fused"], HloValue("p.1")) == (
        BODY,
        HloValue("carry", (2,)),
    )
    assert LOOP.outside(MAIN, HloValue("a")) is None


def test_a_loop_hands_on_what_it_was_given_or_something_else():
    kept, changed = HloValue("carry", (1,)), HloValue("carry", (2,))
    assert LOOP.carried(BODY, changed) == (BODY, HloValue("y"))
    assert not LOOP.is_kept(BODY, changed)
    # The copy is the same array only where copies move nothing.
    assert not LOOP.is_kept(BODY, kept)
    assert LOOP.is_kept(BODY, kept, opcodes.COPIES)
    assert LOOP.carried(LOOP.computations["condition"], HloValue("carry.1", (1,))) is None


def test_a_report_reads_each_text_once(monkeypatch):
    read, parse = [], hlo.parse

    def counted(text):
        read.append(text)
        return parse(text)

    monkeypatch.setattr(hlo, "parse", counted)
    x = np.ones((16, 32), np.float32)
    specs = (P("data", "model"), P("model"))
    report = sn.explain(lambda x, w: x @ w, x, x.T, mesh="data=4,model=2", in_specs=specs)
    stages = ("before partitioning", "after partitioning", "optimized")
    assert sorted(read) == sorted(report.texts[stage] for stage in stages)
    assert report.collectives[0].reason == "partial-sum"
