"""The terminal's text."""

import time
from dataclasses import replace

import pytest

from shardnb.report import Axis, Location, Memory, Mesh, Report, Source, Value
from shardnb.views import text

SKETCH = """\
mesh data=4 x model=2 (auto, auto)   8 emulated cpu devices   jax 0.12.0.1   compiled 0.180 s

  1  h = x @ W    all-reduce[model] f32[64, 1024]   sends 256 KiB   inferred, partial-sum
  2  y = jnp.tanh(h)

1 collective: 256 KiB sent by each device a run; 0 called, 0 requested, 1 inferred
  all-reduce[model] at line 1: both operands of x @ W are split over model on the contracting dim,
      so each device holds a partial sum.
      Asked by nobody.
      Try: x=P('data') W=P(None, 'model')  (no collective, +128 KiB a device; compiled)

inputs    x   f32[256@data, 512@model]   64 x 256 a device      64 KiB
          W   f32[512@model, 1024]       256 x 1024 a device   1.0 MiB   x4 copies over data
outputs   y   f32[256@data, 1024]        64 x 1024 a device    256 KiB   x2 copies over model
memory    1.1 MiB arguments, 256 KiB output, 0 B temporaries a device
about     Bytes sent are by the ring formula; what the hardware does may differ. Emulated on CPU:
          the compiler for another device may choose otherwise."""

QUIET = """\
mesh data=8 (explicit)   8 TPU v5 lite devices (v5e:2x4)

  1  y = x * 2

no communication

inputs    x   f32[8@data]   1 a device   4 B
outputs   y   f32[8@data]   1 a device   4 B
memory    4 B arguments, 4 B output, 0 B temporaries a device"""


def alone(report, **changes):
    """Give the report with its first collective changed."""
    return replace(report, collectives=(replace(report.collectives[0], **changes),))


def flat(told):
    """Give a text without its line breaks."""
    return " ".join(told.split())


def test_the_sketch_reads_as_the_look_says(report):
    assert text.render(report) == SKETCH


def test_a_report_as_a_string_is_its_text(report):
    assert str(report) == SKETCH


def test_no_communication_is_one_line():
    mesh = Mesh((Axis("data", 8, "explicit"),), tuple(range(8)), "v5e:2x4", "tpu", "TPU v5 lite")
    x, y = (Value(name, "f32", (8,), (("data",),), (1,)) for name in "xy")
    memory = Memory(4, 4, 0)
    sources = (Source("cell", "y = x * 2"),)
    quiet = Report("cell", mesh, (x,), (y,), memory=memory, sources=sources)
    assert text.render(quiet) == QUIET


def test_brief_keeps_the_lines_that_communicate_and_the_summary(report):
    lines = SKETCH.splitlines()
    assert text.render(report, "brief") == "\n".join([*lines[:3], "", lines[5]])


def test_another_view_is_refused_by_name(report):
    with pytest.raises(ValueError, match="no view 'short'; there are 'full' and 'brief'"):
        text.render(report, "short")


def test_trips_stand_behind_the_bytes(report):
    assert "sends 256 KiB x4" in text.render(alone(report, trips=4))
    assert "1 collective: 1.0 MiB sent" in text.render(alone(report, trips=4))


def test_unknown_trips_are_said_to_be_unknown(report):
    told = text.render(alone(report, trips=None))
    assert "sends 256 KiB x unknown" in told
    assert "at least 0 B sent by each device a run" in told
    assert "It runs in a loop whose trip count is not known." in told


def test_who_asked_is_not_guessed(report):
    told = flat(text.render(alone(report, asked_by=None, reason=None, why="")))
    assert "0 called, 0 requested, 0 inferred, 1 made by the partitioner" in told
    assert "at line 1: why it is there is not known." in told
    assert "The partitioner made it; who asked for it is not known." in told


def test_what_the_partitioner_did_not_make_is_called(report):
    told = text.render(alone(report, asked_by=None, reason=None, why="", generated=False))
    assert "1 called, 0 requested, 0 inferred" in told
    assert "at line 1: the program calls it.\n" in told


def test_groups_that_match_no_axes_are_counted(report):
    told = text.render(alone(report, axes=None, groups=((0, 3), (1, 2), (4, 5, 6))))
    assert "all-reduce[3 groups of 2 to 3]" in told


def test_combined_collectives_are_told_one_by_one_and_said_to_be_sent_together(report):
    first = replace(report.collectives[0], combined_with=(1,))
    second = replace(first, id=1, shape=(8,), combined_with=(0,), why="")
    told = text.render(replace(report, collectives=(first, second)))
    assert "all-reduce[model] f32[8] at line 1" in told
    assert told.count("Sent together with 1 other collective, as one exchange.") == 2


def test_a_sentence_is_said_once_where_the_next_entry_repeats_all_of_it(report):
    first = report.collectives[0]
    told = flat(text.render(replace(report, collectives=(first, replace(first, id=1)))))
    assert told.count("both operands of x @ W") == 1
    assert told.count("as above.") == 1


def test_a_sentence_that_the_next_entry_lacks_is_no_echo(report):
    first = replace(report.collectives[0], combined_with=(7,))
    alone = replace(first, id=1, combined_with=())
    told = flat(text.render(replace(report, collectives=(first, alone))))
    assert told.count("both operands of x @ W") == 2


def test_what_calls_the_explained_text_led_to_nothing(rich_report):
    """Frames run from the innermost line outwards: cell 2 here calls the explained line."""
    told = text.render(alone(rich_report, frames=(Location(0, 1), Location(1, 3))))
    assert "cell 2" not in told


def test_lines_of_other_sources_are_grouped_by_source(rich_report):
    told = text.render(rich_report)
    assert "\n  cell 2\n  3      return h    all-gather[data]" in told


def test_library_lines_are_never_shown(rich_report):
    told = text.render(rich_report)
    assert "lax.py" not in told
    line = (
        "collective-permute[data, model] f32[64, 1024] at no known line (sends 256 KiB x unknown)"
    )
    assert line in " ".join(told.split())


def test_a_finding_has_its_line_and_price(rich_report):
    finding = (
        "silent replication at line 2: y is whole on every device  (1.0 MiB wasted per device)"
    )
    assert finding in text.render(rich_report)


def test_an_unknown_placement_is_said(rich_report):
    assert "where it lies is not known" in text.render(rich_report)


def test_a_spec_that_was_not_followed_is_said(rich_report):
    assert "x8 copies over data, model; you asked for P('data')" in text.render(rich_report)


def test_a_report_of_nothing_is_still_a_report():
    empty = Report("f", Mesh((), (0,)))
    assert text.render(empty).splitlines()[0] == "no mesh   1 cpu device"


def test_a_long_line_keeps_its_badge_below(report):
    long = Source("cell", f"h = x @ {'W' * 80}\n")
    lines = text.render(replace(report, sources=(long,))).splitlines()
    assert lines[3].lstrip().startswith("all-reduce[model]")


def test_a_line_that_the_source_lacks_still_shows_its_collective(report):
    told = text.render(alone(report, frames=(Location(0, 9),)))
    assert "\n  9" in told


def test_five_thousand_collectives_are_a_page_not_a_wall(many_report):
    start = time.perf_counter()
    told = text.render(many_report)
    assert time.perf_counter() - start < 5
    assert told.count("\n") < 90
    assert "5,000 collectives: at least" in told
    assert "10 in loops whose trip count is not known" in flat(told)


def test_every_collective_of_many_is_counted(many_report):
    """Of 5,000 the entries tell some by number; the sentence at the end counts the others."""
    told = text.render(many_report)
    body = told.partition("5,000 collectives")[2]
    shown = [line.split()[0] for line in body.splitlines() if " at line " in line]
    rest = body.partition("  and ")[2].split()[0].replace(",", "")
    assert sum(map(int, shown)) + int(rest) == 5000


def test_hostile_texts_cannot_move_the_cursor(hostile_report):
    told = text.render(hostile_report)
    assert all(line.isprintable() for line in told.split("\n"))
