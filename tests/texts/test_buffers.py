"""XLA's buffer assignment and live ranges, from texts by hand."""

from __future__ import annotations

from shardnb.texts.buffers import at_the_peak, read_allocations, read_live_ranges
from shardnb.texts.instruction import HloValue

ASSIGNMENT = """BufferAssignment:
allocation 0: size 1024, parameter 3, shape |f32[256]| at ShapeIndex {}, maybe-live-out:
 value: <1 x @0> (size=1024,offset=0): f32[256]{0}
allocation 1: size 4096, preallocated-temp:
 value: <2 a @0> (size=1024,offset=0): f32[256]{0}
 value: <3 b @0> (size=2048,offset=0): f32[512]{0}
 value: <4 c{1} @0> (size=1024,offset=2048): f32[256]{0}
 value: <5 loop{1} (phi) @0> (size=1024,offset=2048): f32[256]{0}
 value: <6 d @0> (size=1024,offset=3072): f32[256]{0}
allocation 2: size 64, color 1, preallocated-temp:
 value: <7 e @1> (size=64,offset=0): f32[16]{0:S(1)}
"""

# a ends before b begins in its place; the loop's state is c, so both are alive in one place.
RANGES = """HloLiveRange (max 9):
  InstructionSequence:
    0:x
    1:a
    2:c
    3:loop
    4:b
    5:d
  BufferLiveRange:
    x{}:0-9
    a{}:1-3
    b{}:4-6
    c{1}:2-5
    loop{1}:3-5
    d{}:6-8
  Live ranges at 4 (peak):
    b{}: 2048 bytes (cumulative: 2048 bytes)
"""


def test_an_allocation_says_what_it_is_for():
    parameter, temporary, on_chip = read_allocations(ASSIGNMENT)
    assert (parameter.parameter, parameter.is_result, parameter.is_main) == (3, True, True)
    assert (temporary.parameter, temporary.is_temporary) == (None, True)
    assert not on_chip.is_main
    assert [buffer.value for buffer in temporary.buffers][2:4] == [
        HloValue("c", (1,)),
        HloValue("loop", (1,)),
    ]


def test_the_peak_counts_a_place_once():
    """At 4 and 5 b and c take 3072 of the 4096 bytes; d comes when c has ended."""
    ranges = read_live_ranges(RANGES)
    assert ranges.ranges[HloValue("c", (1,))] == (2, 5)
    assert ranges.order[4] == "b"
    when, held = at_the_peak(read_allocations(ASSIGNMENT)[1].buffers, ranges)
    assert when == 4
    assert {offset: [b.value.name for b in alike] for offset, alike in held.items()} == {
        0: ["b"],
        2048: ["c", "loop"],
    }


def test_the_last_instruction_that_reads_a_value_still_holds_it():
    ranges = read_live_ranges("  BufferLiveRange:\n    a{}:0-4\n    b{}:4-6\n    c{1}:0-3\n")
    arena = read_allocations(ASSIGNMENT)[1].buffers
    when, held = at_the_peak([b for b in arena if b.value.name in ("a", "c")], ranges)
    assert (when, sorted(held)) == (0, [0, 2048])
    assert at_the_peak([b for b in arena if b.value.name in ("a", "b")], ranges)[0] == 4


def test_without_live_ranges_nothing_is_known():
    assert at_the_peak(read_allocations(ASSIGNMENT)[1].buffers, read_live_ranges("")) == (0, {})


def test_a_range_that_ends_before_it_begins_is_none():
    assert read_live_ranges("    a{}:5-4\n    b{}:4-4\n").ranges == {HloValue("b"): (4, 4)}


def test_numbers_of_thousands_of_digits_are_not_read():
    digits = "9" * 5000
    assert read_allocations(f"allocation 0: size {digits}, preallocated-temp:\n") == ()
    assert read_live_ranges(f"    a{{}}:0-{digits}\n").ranges == {}
