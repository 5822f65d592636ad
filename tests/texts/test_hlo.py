"""Reading HLO text: what stands in it, whoever wrote it."""

from __future__ import annotations

import pytest

from shardnb.texts import hlo
from shardnb.texts.instruction import HloValue

MODULE = """HloModule jit_f, is_scheduled=true, num_partitions=8

FileNames
1 "cell.py"
2 "library.py"

FunctionNames
1 "<module>"
2 "layer"

FileLocations
1 {file_name_id=1 function_name_id=1 line=7 end_line=7 column=1 end_column=2}
2 {file_name_id=2 function_name_id=2 line=90 end_line=90 column=1 end_column=2}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}


%sum (a.1: f32[], b.1: f32[]) -> f32[] {
  %a.1 = f32[] parameter(0)
  %b.1 = f32[] parameter(1)
  ROOT %add.1 = f32[] add(%a.1, %b.1)
}

ENTRY %main (p0: f32[4,8], p1: (s32[], f32[8])) -> f32[4,8] {
  %p0 = f32[4,8]{1,0:T(8,128)S(1)} parameter(0), sharding={devices=[4,2]<=[8]}, metadata={op_name="x"}
  %p1 = (s32[], /*index=1*/f32[8]{0}) parameter(1)
  %c = f32[2]{0} constant({1, 2})
  %s = s8[3]{0} constant("a)b")
  ROOT %all-reduce.3 = f32[4,8]{1,0} all-reduce(%p0), channel_id=1, replica_groups=mesh['a'=2,'b'=4], device_ids=([4,2]T(1,0)) {'b'}, use_global_device_ids=true, to_apply=%sum, metadata={op_name="jit(f)/x" stack_frame_id=2}
}
"""


def entry(text: str) -> dict[str, hlo.Instruction]:
    module = hlo.parse(text)
    return {i.name: i for i in module.body(module.entry)}


def test_computations_and_entry():
    module = hlo.parse(MODULE)
    assert (module.name, module.entry, module.num_partitions) == ("jit_f", "main", 8)
    assert [i.opcode for i in module.body("sum")] == ["parameter", "parameter", "add"]


def test_an_instruction_has_operands_shape_and_attributes():
    reduce = entry(MODULE)["all-reduce.3"]
    assert reduce.is_root
    assert reduce.operands == (HloValue("p0"),)
    assert reduce.arrays == (("f32", (4, 8)),)
    assert reduce.integer("channel_id") == 1
    assert reduce.called == (("to_apply", "sum"),)
    assert reduce.attribute("replica_groups") == (
        "mesh['a'=2,'b'=4], device_ids=([4,2]T(1,0)) {'b'}"
    )


def test_layouts_memory_spaces_and_comments_are_no_part_of_a_shape():
    assert entry(MODULE)["p0"].arrays == (("f32", (4, 8)),)
    assert entry(MODULE)["p1"].arrays == (("s32", ()), ("f32", (8,)))


def test_a_parenthesis_in_a_constant_closes_nothing():
    assert entry(MODULE)["s"].operand_text == '"a)b"'
    assert entry(MODULE)["c"].operands == ()


def test_frames_lead_from_the_library_to_the_cell():
    module = hlo.parse(MODULE)
    (reduce,) = (i for i in module.instructions() if i.opcode == "all-reduce")
    assert module.frames(reduce) == (
        hlo.Frame("library.py", 90, "layer"),
        hlo.Frame("cell.py", 7, "<module>"),
    )


def test_an_old_dump_has_types_before_operands_and_its_line_in_the_metadata():
    text = """HloModule old

ENTRY main {
  x = f32[32,128]{1,0} parameter(0)
  ROOT g = f32[128,128]{1,0} all-gather(f32[32,128]{1,0} x), replica_groups={{0,1,2,3}}, dimensions={0}, metadata={op_type="dot" op_name="f/dot" source_file="train.py" source_line=12}
}
"""
    module = hlo.parse(text)
    gather = module.body("main")[1]
    assert gather.operands == (HloValue("x"),)
    assert module.frames(gather) == (hlo.Frame("train.py", 12),)


def test_elements_of_tuples_are_operands_too():
    text = MODULE.replace("all-reduce(%p0)", "all-reduce(%p1#1)")
    assert entry(text)["all-reduce.3"].operands == (HloValue("p1", (1,)),)


@pytest.mark.parametrize("cut", [0.5, 0.8, 0.95])
def test_a_text_that_is_cut_off_is_refused(cut):
    with pytest.raises(ValueError, match="truncated"):
        hlo.parse(MODULE[: int(len(MODULE) * cut)])


@pytest.mark.parametrize("text", ["", "module @jit_f {}", "<html>"])
def test_another_text_is_refused(text):
    with pytest.raises(ValueError, match="expected an HLO module"):
        hlo.parse(text)


def test_frames_that_point_at_themselves_end():
    text = MODULE.replace(
        "file_location_id=1 parent_frame_id=1", "file_location_id=1 parent_frame_id=3"
    )
    module = hlo.parse(text)
    (reduce,) = (i for i in module.instructions() if i.opcode == "all-reduce")
    assert len(module.frames(reduce)) == 2


def test_a_text_may_be_indented_with_spaces_at_the_ends():
    indented = "\n".join(f"    {line}  " for line in MODULE.splitlines())
    module = hlo.parse(f"text before\n{indented}\n    ")
    plain = hlo.parse(MODULE)
    assert [i.text for i in module.instructions()] == [i.text for i in plain.instructions()]
    assert module.tables == plain.tables


BROKEN = """HloModule step, num_partitions=4

ENTRY main {
  // what follows is on two lines
  x = f32[8,16]{1,0} parameter(0)
  g = f32[16,16]{1,0} all-gather(x),
    replica_groups={{0,1},{2,3}}, dimensions={0}
  ROOT h = f32[32,16]{1,0}
    all-gather(g),
    replica_groups={{0,2},{1,3}}, dimensions={0}
}
"""


def test_an_instruction_may_stand_on_several_lines():
    instructions = entry(BROKEN)
    assert list(instructions) == ["x", "g", "h"]
    assert instructions["g"].attribute("replica_groups") == "{{0,1},{2,3}}"
    assert instructions["h"].attribute("replica_groups") == "{{0,2},{1,3}}"
    assert instructions["h"].is_root


def test_an_instruction_that_cannot_be_read_is_an_error():
    with pytest.raises(
        ValueError, match=r"line 8, in the computation main: .*got 'ROOT h = f32\[32,16\]\{1,0\}'"
    ):
        hlo.parse(BROKEN.partition("    all-gather(g)")[0] + "}\n")
