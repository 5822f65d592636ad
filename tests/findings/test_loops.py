"""Collectives of loops that no step changes, in programs whose compiler left them there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardnb.findings.loops import unchanging_in_loops
from shardnb.report import Collective
from shardnb.texts import hlo

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

ENTRY %main (p: (s32[], f32[16,64], f32[8,64])) -> (s32[], f32[16,64], f32[8,64]) {
  %p = (s32[], f32[16,64], f32[8,64]) parameter(0)
  ROOT %w = (s32[], f32[16,64], f32[8,64]) while(%p), condition=%cond, body=%body
}
"""
GATHER = Collective(
    0, "all-gather", ("data",), (), "f32", (64, 64), 1000, trips=4, channel=3, within=("while",)
)


def found(moved, kept, collective=GATHER):
    module = hlo.parse(BODY.replace("MOVED", moved).replace("KEPT", kept))
    return list(unchanging_in_loops(module, [collective]))


def test_a_gather_of_what_is_passed_on_would_do_once():
    (finding,) = found("%w", "%w")
    assert (finding.kind, finding.wasted_bytes) == ("loop", 3 * 1000)
    assert "4 are sent, and one before the loop would do" in finding.message


@pytest.mark.parametrize(("moved", "kept"), [("%w", "%twice"), ("%x", "%w"), ("%i", "%w")])
def test_a_gather_of_what_a_step_changes_is_needed(moved, kept):
    assert found(moved, kept) == []


def test_an_unknown_number_of_steps_has_no_price():
    (finding,) = found("%w", "%w", replace(GATHER, trips=None))
    assert finding.wasted_bytes is None
    assert "an unknown number of" in finding.message
