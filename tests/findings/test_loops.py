"""Collectives of loops that no step changes, in programs whose compiler left them there."""

from __future__ import annotations

import pytest

import shardnb as sn

BODY = """HloModule steps

%body (carry: (s32[], f32[16,64], f32[8,64])) -> (s32[], f32[16,64], f32[8,64]) {
  %carry = (s32[], f32[16,64], f32[8,64]) parameter(0)
  %i = s32[] get-tuple-element(%carry), index=0
  %x = f32[16,64] get-tuple-element(%carry), index=1
  %w = f32[8,64] get-tuple-element(%carry), index=2
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  %twice = f32[8,64] add(%w, MOVED)
  %whole = f32[64,64] all-gather(%twice), channel_id=3, replica_groups={{0,1,2,3,4,5,6,7}}, dimensions={0}
  %y = f32[16,64] dot(%x, %whole), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT %out = (s32[], f32[16,64], f32[8,64]) tuple(%next, %y, KEPT)
}

%cond (carry.1: (s32[], f32[16,64], f32[8,64])) -> pred[] {
  %carry.1 = (s32[], f32[16,64], f32[8,64]) parameter(0)
  %i.1 = s32[] get-tuple-element(%carry.1), index=0
  %end = s32[] constant(END)
  ROOT %less = pred[] compare(%i.1, %end), direction=LT
}

ENTRY %main (x.1: f32[16,64], w.1: f32[8,64]) -> (s32[], f32[16,64], f32[8,64]) {
  %zero = s32[] constant(0)
  %x.1 = f32[16,64] parameter(0)
  %w.1 = f32[8,64] parameter(1)
  %p = (s32[], f32[16,64], f32[8,64]) tuple(%zero, %x.1, %w.1)
  ROOT %loop = (s32[], f32[16,64], f32[8,64]) while(%p), condition=%cond, body=%body
}
"""


def found(moved, kept, end="constant(4)"):
    text = BODY.replace("MOVED", moved).replace("KEPT", kept).replace("constant(END)", end)
    return sn.explain_hlo(text, mesh="data=8").findings


def test_a_gather_of_what_is_passed_on_would_do_once():
    (finding,) = found("%w", "%w")
    # Each device sends its 8 rows of 64 floats to 7 others; 3 of 4 times for nothing.
    assert (finding.kind, finding.wasted_bytes) == ("loop", 3 * 7 * 8 * 64 * 4)
    assert "4 are sent, and one before the loop would do" in finding.message


@pytest.mark.parametrize(("moved", "kept"), [("%w", "%twice"), ("%x", "%w"), ("%i", "%w")])
def test_a_gather_of_what_a_step_changes_is_needed(moved, kept):
    assert found(moved, kept) == ()


def test_an_unknown_number_of_steps_has_no_price():
    (finding,) = found("%w", "%w", end="get-tuple-element(%carry.1), index=0")
    assert finding.wasted_bytes is None
    assert "an unknown number" in finding.message
