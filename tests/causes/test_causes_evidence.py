"""How the causes read what the compiler wrote: shardings, rules, names, warnings, stated results."""

from __future__ import annotations

import pytest

from shardnb.causes.channel_matching import joined_names
from shardnb.causes.phase import phase_of
from shardnb.causes.rematerialisation import read_warnings
from shardnb.causes.stated_shardings import result_shardings
from shardnb.report.model import Axis, Mesh
from shardnb.texts import hlo
from shardnb.texts.sharding_rules import AMBIGUOUS, parse_rule, read_rules
from shardnb.texts.shardings import LayoutReader

MESH = Mesh((Axis("data", 4), Axis("model", 2)), tuple(range(8)))
LONG = Mesh((Axis("data", 8),), tuple(range(8)))


def layout(text, rank, mesh=MESH):
    return LayoutReader(mesh).read(text, rank)


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("{mesh['data'=4,'model'=2], [{'model'}, {'data'}]}", (("model",), ("data",))),
        ("{mesh['data'=4,'model'=2], [{'data', 'model'}, {}]}", (("data", "model"), ())),
        ("{mesh['a'=4,'b'=2], [{'b'}, {'a'}]}", (("model",), ("data",))),
        ("{mesh[], replicated}", ((), ())),
        ("{replicated}", ((), ())),
        ("{devices=[4,2]<=[8]}", (("data",), ("model",))),
        ("{devices=[2,4]<=[4,2]T(1,0)}", (("model",), ("data",))),
        ("{devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate}", (("model",), ())),
        ("{devices=[8,1]<=[4,2]T(1,0)}", (("model", "data"), ())),
        ("{devices=[2,4]0,2,4,6,1,3,5,7}", (("model",), ("data",))),
    ],
)
def test_both_notations_of_a_sharding(text, spec):
    assert layout(text, 2).spec == spec


def test_parts_of_an_axis():
    text = "{mesh['data'=8], [{'data':(1)4}, {'data':(4)2}]}"
    old = "{devices=[4,2]<=[8]}"
    assert layout(text, 2, LONG).spec == (("data:(1)4",), ("data:(4)2",))
    assert layout(old, 2, LONG).spec == (("data:(1)4",), ("data:(4)2",))


def test_devices_in_an_order_that_no_axes_give():
    found = layout("{devices=[8,1]0,2,1,3,4,5,6,7}", 2)
    assert found.spec is None
    assert found.tiles == (8, 1)


def test_a_manual_value_is_one_devices_own():
    assert layout("{mesh['data'=4,'model'=2], manual}", 2).manual
    assert layout("{manual}", 2).shard_shape((3, 5)) == (3, 5)


def test_each_leaf_of_a_tuple_has_its_layout():
    text = "{{mesh[], replicated}, /*index=1*/{mesh['data'=4,'model'=2], [{'data'}, {}]}}"
    first, second = LayoutReader(MESH).leaves(text, (0, 2))
    assert first.spec == ()
    assert second.spec == (("data",), ())


def test_no_sharding_means_whole():
    (found,) = LayoutReader(MESH).leaves(None, (2,))
    assert found.spec == ((), ())


def test_the_block_of_a_size_that_does_not_divide_is_padded():
    found = layout("{mesh['data'=4,'model'=2], [{'data'}]}", 1)
    assert found.shard_shape((17,)) == (5,)
    assert not found.divides((17,))


RULE = (
    "#sdy.op_sharding_rule<([i, jk], [k])->([i, j]) {i=8, j=4, k=2} "
    "reduction={k} need_replication={i} permutation={j}>"
)


def test_a_rule_as_shardy_prints_it():
    rule = parse_rule(RULE)
    assert rule.operands == ((("i",), ("j", "k")), (("k",),))
    assert rule.results == ((("i",), ("j",)),)
    assert (rule.size("j"), rule.reductions, rule.whole, rule.exchanges) == (4, {"k"}, {"i"}, {"j"})


def instruction(line):
    module = hlo.parse(f"HloModule m\n\nENTRY %main (p: f32[]) -> f32[] {{\n  {line}\n}}\n")
    return module.computations["main"][0]


def operation(attributes, rule, types):
    return (
        f"    %0 = stablehlo.{attributes} "
        f"{{sdy.sharding_rule = #sdy.op_sharding_rule<{rule}>}} : {types}"
    )


def test_a_rule_is_found_by_kind_and_shapes():
    text = operation(
        "concatenate %a, %b, dim = 0",
        "([i, j], [i, j])->([i, j]) {i=8, j=2} need_replication={i}",
        "(tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>",
    )
    node = instruction("%c = f32[8,2]{1,0} concatenate(%a, %b), dimensions={0}")
    assert read_rules(text).of(node, ((4, 2), (4, 2))).whole == {"i"}


def test_dots_of_equal_shapes_are_told_by_their_contracting_dims():
    square = "(tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>"
    rules = read_rules(
        "\n".join(
            (
                operation("dot %a, %b", "([i, k], [k, j])->([i, j]) {i=4, j=4, k=4}", square),
                operation(
                    "dot_general %a, %b, contracting_dims = [1] x [1]",
                    "([i, k], [j, k])->([i, j]) {i=4, j=4, k=4}",
                    square,
                ),
            )
        )
    )
    node = instruction(
        "%c = f32[4,4]{1,0} dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={1}"
    )
    assert rules.of(node, ((4, 4), (4, 4))).operands[1] == (("j",), ("k",))


def test_operations_that_cannot_be_told_apart_have_no_rule():
    types = "(tensor<8xf32>, tensor<f32>) -> tensor<10xf32>"
    rules = read_rules(
        "\n".join(
            (
                operation("pad %a, %b, low = [1]", "([i], [])->([i]) {i=8} permutation={i}", types),
                operation("pad %a, %b, low = [2]", "([i], [])->([i]) {i=8}", types),
            )
        )
    )
    node = instruction("%c = f32[10]{0} pad(%a, %b), padding=1_1")
    assert rules.of(node, ((8,), ())) is AMBIGUOUS


def test_a_reshape_that_the_compiler_made_has_a_rule_too():
    node = instruction("%c = f32[24,5]{1,0} reshape(%a)")
    rule = read_rules("").of(node, ((4, 6, 5),))
    assert rule.operands == ((("i_0",), ("i_1",), ("i_2",)),)
    assert rule.results == ((("i_0", "i_1"), ("i_2",)),)


def test_a_reshape_whose_sizes_do_not_cut_each_other_has_none():
    node = instruction("%c = f32[6,4]{1,0} reshape(%a)")
    assert read_rules("").of(node, ((4, 6),)) is None


def test_names_of_a_combined_collective():
    assert joined_names("jit(f)/transpose(jvp())/(dot_general:a/reduce_sum)") == [
        "dot_general",
        "a/reduce_sum",
    ]
    assert joined_names("jit(f)/transpose(jvp())/dot_general") == []
    assert joined_names("jit(f)/jvp()") == []


@pytest.mark.parametrize(
    ("name", "phase"),
    [
        ("jit(f)/jvp()/dot_general", "forward"),
        ("jit(f)/transpose(jvp())/dot_general", "backward"),
        ("jit(f)/transpose(jvp())/checkpoint/rematted_computation/dot", "rematerialised"),
        ("jit(f)/adam/mul", None),
    ],
)
def test_phase_of_a_program_that_is_differentiated(name, phase):
    assert phase_of(name, differentiated=True) == phase


def test_a_program_that_is_not_differentiated_runs_forward():
    assert phase_of("jit(f)/mul", differentiated=False) == "forward"


WARNING = (
    "W1 spmd_partitioner.cc:666] [SPMD] Involuntary full rematerialization. The compiler cannot go "
    "from sharding {a} to {b} efficiently for HLO operation %NAME = f32[8]{0} add(%p, %p), "
    'metadata={op_name="jit(f)/add" stack_frame_id=5}. As the last resort ...\n'
)


def test_warnings_are_told_and_the_rest_is_left():
    warnings = read_warnings("first\n" + WARNING + "last\n")
    assert warnings.keys == {("jit(f)/add", 5)}
    assert warnings.left == "first\nlast\n"


def test_warnings_of_a_scratch_computation_are_dropped():
    warnings = read_warnings(WARNING.replace("%NAME", "%fake_parameter.2"))
    assert not warnings.keys
    assert not warnings.left


def test_shardings_of_results():
    text = (
        "  func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) -> "
        '(tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, tensor<f32>, '
        "tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) {\n"
    )
    assert result_shardings(text) == ('[{"x"}]', None, "[{}]")


def test_the_sharding_of_a_single_result():
    text = "  func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {\n"
    assert result_shardings(text) == (None,)
