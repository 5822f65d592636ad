"""What a report needs of Shardy's modules: the results and the rules."""

from __future__ import annotations

import pytest

from shardnb.jax_compat.mlir import Module
from shardnb.texts.shardy_results import Propagated, read_propagated, read_stated
from tests.texts.test_shardy import CONSTRAINT, given, module, parts

TYPE = "tensor<8x4xf32>"
RULE = "{sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=4}>}"
OTHER = RULE.replace("j=4}", "j=4} need_replication={j}")


def constrained(text):
    return [result.constrained_spec for result in read_stated(Module(text)).results]


def test_a_result_is_constrained_by_itself_or_by_the_value_that_is_returned():
    text = module(
        CONSTRAINT,
        results=f"{TYPE} {given('[{"data"}, {}]')}, {TYPE}, {TYPE}",
        returned=f"%0, %0, %a : {TYPE}, {TYPE}, {TYPE}",
    )
    assert constrained(text) == [(("data",), ()), (("model",), ()), None]
    assert [result.sharding is None for result in read_stated(Module(text)).results] == [
        False,
        True,
        True,
    ]


def test_only_what_the_main_function_returns_is_a_result():
    """On TPU JAX leaves functions of its own before the main one."""
    other = """module {
      func.func private @_threefry(%a: tensor<2xui32>) -> tensor<2xui32> {
        return %a : tensor<2xui32>
      }"""
    main = module(CONSTRAINT, results=f"{TYPE}, {TYPE}", returned=f"%0, %a : {TYPE}, {TYPE}")
    assert constrained(main.replace("module {", other, 1)) == [(("model",), ()), None]


def test_a_result_before_and_after_propagation_is_equal_where_it_lies_alike():
    text = module("", results=f"{TYPE} {given('[{"data"}, {}]')}", returned=f"%a : {TYPE}")
    assert read_stated(Module(text)).results == read_propagated(Module(text)).results


def rules(*ops):
    return read_propagated(Module(module("\n".join(ops)))).rules


def test_ops_alike_share_their_rule():
    found = rules(
        f"%1 = stablehlo.negate %a {RULE} : {TYPE}",
        f"%2 = stablehlo.negate %1 {RULE} : {TYPE}",
        f"%3 = stablehlo.negate %2 : {TYPE}",
    )
    ((signature, known),) = found.items()
    assert signature == ("negate", ((8, 4),), ((8, 4),))
    assert [(rule.operands, numbers) for rule, numbers in known.items()] == [
        ((((("i",), ("j",)),)), frozenset())
    ]


def test_where_rules_differ_the_numbers_of_their_ops_tell():
    found = rules(
        f"%1 = stablehlo.reverse %a, dims = [0] {RULE} : {TYPE}",
        f"%2 = stablehlo.reverse %a, dims = [1] {OTHER} : {TYPE}",
        f"%3 = stablehlo.reverse %a, dims = [0, 1] {OTHER} : {TYPE}",
    )
    (known,) = found.values()
    told = {bool(rule.need_replication): numbers for rule, numbers in known.items()}
    assert told == {False: {((0,),)}, True: {((1,),), ((0, 1),)}}


def test_rules_inside_a_shard_map_are_read():
    body = (
        "%0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{}, {}]>] "
        'out_shardings=[<@mesh, [{}, {}]>] manual_axes={"data"} '
        f"(%arg: {TYPE}) {{ %1 = stablehlo.negate %arg {RULE} : {TYPE} sdy.return %1 : {TYPE} }} "
        f": ({TYPE}) -> {TYPE}"
    )
    assert [opcode for opcode, *_ in rules(body)] == ["negate"]


def test_nothing_of_mlir_is_kept():
    seen: dict[int, object] = {}
    parts(read_propagated(Module(module(f"%1 = stablehlo.negate %a {RULE} : {TYPE}"))), seen)
    assert {type(thing).__module__ for thing in seen.values()} == {
        "builtins",
        "shardnb.texts.shardy_attributes",
        "shardnb.texts.shardy_results",
    }
    assert Propagated() == Propagated((), {})


@pytest.mark.parametrize("read", [read_stated, read_propagated])
@pytest.mark.parametrize("text", ["module { nonsense }", "module {}"])
def test_a_text_that_cannot_be_read_says_why(read, text):
    with pytest.raises(ValueError, match="this jaxlib cannot read the module of Shardy: "):
        read(Module(text))
