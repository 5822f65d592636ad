"""Shardy's rule of an HLO instruction: found by kind, shapes and dimension numbers."""

from __future__ import annotations

import pytest

from shardnb.jax_compat.mlir import Module
from shardnb.texts import hlo
from shardnb.texts.sharding_rules import AMBIGUOUS, Rules
from shardnb.texts.shardy_results import read_propagated
from tests.texts.test_shardy import module

SQUARE = "(tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>"
NO_RULES = Rules({})


def instruction(line):
    text = f"HloModule m\n\nENTRY %main (p: f32[]) -> f32[] {{\n  {line}\n}}\n"
    return hlo.parse(text).body("main")[0]


def rules(*ops):
    """The rules of ops, each given as its text, its rule, its types and further attributes."""
    body = (
        f"%{number} = stablehlo.{text} "
        f"{{{', '.join((*more, f'sdy.sharding_rule = #sdy.op_sharding_rule<{rule}>'))}}} : {types}"
        for number, (text, rule, types, *more) in enumerate(ops)
    )
    inputs = "%a: tensor<4x4xf32>, %b: tensor<4x4xf32>, %v: tensor<8xf32>, %s: tensor<f32>"
    text = module(
        "\n".join(body), inputs=inputs, results="tensor<4x4xf32>", returned="%a : tensor<4x4xf32>"
    )
    return Rules(read_propagated(Module(text)).rules)


def test_a_rule_is_found_by_kind_and_shapes():
    found = rules(
        (
            "concatenate %a, %b, dim = 0",
            "([i, j], [i, j])->([i, j]) {i=8, j=4} need_replication={i}",
            "(tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>",
        )
    )
    node = instruction("%c = f32[8,4]{1,0} concatenate(%a, %b), dimensions={0}")
    assert found.of(node, ((4, 4), (4, 4))).need_replication == {"i"}
    assert found.of(node, ((6, 4), (2, 4))) is None


@pytest.mark.parametrize(
    ("dims", "factors"), [((1, 0), (("k",), ("j",))), ((1, 1), (("j",), ("k",)))]
)
def test_dots_of_equal_shapes_are_told_by_their_contracting_dims(dims, factors):
    found = rules(
        ("dot %a, %b", "([i, k], [k, j])->([i, j]) {i=4, j=4, k=4}", SQUARE),
        (
            "dot_general %a, %b, contracting_dims = [1] x [1]",
            "([i, k], [j, k])->([i, j]) {i=4, j=4, k=4}",
            SQUARE,
        ),
    )
    left, right = dims
    node = instruction(
        f"%c = f32[4,4]{{1,0}} dot(%a, %b), lhs_contracting_dims={{{left}}}, "
        f"rhs_contracting_dims={{{right}}}"
    )
    assert found.of(node, ((4, 4), (4, 4))).operands[1] == factors


@pytest.mark.parametrize("opcode", ["log-plus-one", "reduce-precision", "tanh"])
def test_what_works_element_by_element_needs_no_rule_of_shardy(opcode):
    node = instruction(f"%c = f32[4,8]{{1,0}} {opcode}(%a)")
    rule = NO_RULES.of(node, ((4, 8),))
    assert rule.operands == rule.results == ((("i_0",), ("i_1",)),)


def test_slices_of_equal_shapes_are_told_by_where_they_start():
    types = "(tensor<4x4xf32>) -> tensor<2x4xf32>"
    found = rules(
        ("slice %a [0:2, 0:4]", "([i, j])->([i, j]) {i=4, j=4}", types),
        ("slice %a [0:4:2, 0:4]", "([i, j])->([i, j]) {i=4, j=4} permutation={i}", types),
    )
    node = instruction("%c = f32[2,4]{1,0} slice(%a), slice={[0:4:2], [0:4]}")
    assert found.of(node, ((4, 4),)).permutation == {"i"}


def test_transposes_of_equal_shapes_are_told_by_their_dimensions():
    types = "(tensor<4x4xf32>) -> tensor<4x4xf32>"
    found = rules(
        ("transpose %a, dims = [0, 1]", "([i, j])->([i, j]) {i=4, j=4}", types),
        ("transpose %a, dims = [1, 0]", "([j, i])->([i, j]) {i=4, j=4}", types),
    )
    node = instruction("%c = f32[4,4]{1,0} transpose(%a), dimensions={1,0}")
    assert found.of(node, ((4, 4),)).operands == ((("j",), ("i",)),)


@pytest.mark.parametrize(("labels", "kernel"), [("bf_io->bf", "kj"), ("bf_oi->bf", "jk")])
def test_convolutions_of_equal_shapes_are_told_by_what_their_dimensions_are(labels, kernel):
    # As a layer and the gradient of its input, which takes the kernel's outputs as inputs.
    counts = "batch_group_count = 1 : i64", "feature_group_count = 1 : i64"
    text = "convolution(%a, %b) dim_numbers = [b, f]x[{}]->[b, f], window = {{}}"
    sizes = "{i=4, j=4, k=4} reduction={k}"
    found = rules(
        (text.format("i, o"), f"([i, k], [k, j])->([i, j]) {sizes}", SQUARE, *counts),
        (text.format("o, i"), f"([i, k], [j, k])->([i, j]) {sizes}", SQUARE, *counts),
    )
    node = instruction(f"%c = f32[4,4]{{1,0}} convolution(%a, %b), dim_labels={labels}")
    rule = found.of(node, ((4, 4), (4, 4)))
    assert rule.operands[1] == tuple((name,) for name in kernel)


def test_operations_that_cannot_be_told_apart_have_no_rule():
    types = "(tensor<8xf32>, tensor<f32>) -> tensor<10xf32>"
    pad = "pad %v, %s, low = [{}], high = [{}], interior = [0]"
    found = rules(
        (pad.format(1, 1), "([i], [])->([i]) {i=8} permutation={i}", types),
        (pad.format(2, 0), "([i], [])->([i]) {i=8}", types),
    )
    node = instruction("%c = f32[10]{0} pad(%a, %b), padding=1_1")
    assert found.of(node, ((8,), ())) is AMBIGUOUS


def test_a_reshape_that_the_compiler_made_has_a_rule_too():
    node = instruction("%c = f32[24,5]{1,0} reshape(%a)")
    rule = NO_RULES.of(node, ((4, 6, 5),))
    assert rule.operands == ((("i_0",), ("i_1",), ("i_2",)),)
    assert rule.results == ((("i_0", "i_1"), ("i_2",)),)


def test_a_reshape_whose_sizes_do_not_cut_each_other_has_none():
    node = instruction("%c = f32[6,4]{1,0} reshape(%a)")
    assert NO_RULES.of(node, ((4, 6),)) is None
