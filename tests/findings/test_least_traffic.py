"""What certainly passes through a device's memory, counted by hand."""

from __future__ import annotations

import pytest

from shardnb.findings.least_traffic import least_traffic
from shardnb.texts import hlo

PROGRAM = """HloModule m

%add (a: f32[8,4], b: f32[8,4]) -> f32[8,4] {{
  %a = f32[8,4]{{1,0}} parameter(0)
  %b = f32[8,4]{{1,0}} parameter(1)
  ROOT %sum = f32[8,4]{{1,0}} add(%a, %b)
}}

%row (a: f32[8,4], i: s32[]) -> f32[1,4] {{
  %a = f32[8,4]{{1,0}} parameter(0)
  %i = s32[] parameter(1)
  ROOT %cut = f32[1,4]{{1,0}} dynamic-slice(%a, %i, %i), dynamic_slice_sizes={{1,4}}
}}

ENTRY %main (x: f32[8,4], y: f32[8,4], i: s32[]) -> {result} {{
  %x = f32[8,4]{{1,0}} parameter(0)
  %y = f32[8,4]{{1,0}} parameter(1)
  %i = s32[] parameter(2)
  {body}
}}
"""
ARRAY = 8 * 4 * 4


@pytest.mark.parametrize(
    ("result", "body", "least"),
    [
        # Both arguments are read, and the result is written.
        ("f32[8,4]", "ROOT %r = f32[8,4]{1,0} add(%x, %y)", 3 * ARRAY),
        (
            "f32[8,4]",
            "ROOT %r = f32[8,4]{1,0} fusion(%x, %y), kind=kLoop, calls=%add",
            3 * ARRAY,
        ),
        # A bitcast moves nothing; one argument is not used.
        (
            "f32[32]",
            "%b = f32[32]{0} bitcast(%x)\n  ROOT %r = f32[32]{0} negate(%b)",
            2 * ARRAY,
        ),
        # Of what is sliced, and of a slice that is returned, nothing is certain.
        (
            "f32[1,4]",
            "ROOT %r = f32[1,4]{1,0} fusion(%x, %i), kind=kLoop, calls=%row",
            0,
        ),
        # An update in place writes a part.
        (
            "f32[8,4]",
            (
                "%n = f32[1,4]{1,0} slice(%y), slice={[0:1], [0:4]}\n"
                "  ROOT %r = f32[8,4]{1,0} dynamic-update-slice(%x, %n, %i, %i)"
            ),
            0,
        ),
        # What is returned as it came is neither read nor written.
        ("f32[8,4]", "ROOT %r = f32[8,4]{1,0} bitcast(%x)", 0),
        # A collective reads its operand, and writes its result.
        (
            "f32[8,4]",
            (
                "%s = ((f32[8,4]{1,0}), f32[8,4]{1,0}) all-reduce-start(%x), to_apply=%add\n"
                "  ROOT %r = f32[8,4]{1,0} all-reduce-done(%s)"
            ),
            2 * ARRAY,
        ),
    ],
)
def test_only_what_is_read_and_written_in_full_counts(result, body, least):
    assert least_traffic(hlo.parse(PROGRAM.format(result=result, body=body))) == least
