"""Shardy's modules as data, from texts whose content is known."""

from __future__ import annotations

import dataclasses

import pytest

from shardnb.jax_compat import mlir
from shardnb.jax_compat.parts import MLIR_BINDINGS, NotAvailable
from shardnb.texts import shardy
from shardnb.texts.shardy_attributes import Edge, Sharding, mesh_text, sharding_text


def module(
    body,
    *,
    inputs="%a: tensor<8x4xf32>",
    results="tensor<8x4xf32>",
    returned="%a : tensor<8x4xf32>",
):
    """The text of a module whose main function has these ops."""
    return f"""module {{
      sdy.mesh @mesh = <["data"=4, "model"=2]>
      func.func public @main({inputs}) -> ({results}) {{
        {body}
        return {returned}
      }}
    }}"""


def read(text):
    return shardy.read(mlir.Module(text))


def given(dims):
    return f"{{sdy.sharding = #sdy.sharding<@mesh, {dims}>}}"


def op(text, **parts):
    """The last op of a main function with this body."""
    return read(module(text, **parts)).ops[-1]


def test_values_have_their_types_and_shardings():
    text = module(
        "%0 = stablehlo.convert %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} "
        ": (tensor<6xi8>) -> tensor<6xcomplex<f32>>",
        inputs=f"%a: tensor<8x4xbf16> {given('[{"model", "data":(2)2}, {?}]')}, %b: tensor<6xi8>",
        results="tensor<6xcomplex<f32>>",
        returned="%0 : tensor<6xcomplex<f32>>",
    )
    found = read(text)
    first, second, result = found.values
    assert [(v.dtype, v.shape) for v in found.values] == [
        ("bf16", (8, 4)),
        ("s8", (6,)),
        ("c64", (6,)),
    ]
    assert first.sharding == Sharding((("model", "data:(2)2"), ()), (True, False))
    assert second.spec is None
    assert result.spec == ((),)
    assert found.ops[0].operands == (second,)
    assert (result.maker, second.maker) == (found.ops[0], None)
    assert found.meshes == {"mesh": {"data": 4, "model": 2}}


def test_replicated_and_unreduced_axes_are_kept():
    (value,) = read(
        module("", inputs=f"%a: tensor<8x4xf32> {given('[{}, {}], replicated={"data"}')}")
    ).inputs
    assert value.sharding.replicated == ("data",)


def test_the_rule_of_an_op():
    rule = op(
        "%0 = stablehlo.custom_call @f(%a) {sdy.sharding_rule = #sdy.op_sharding_rule<"
        "([ij, k])->([i, l]) {i=2, j=4, k=4, l=4} "
        "reduction={k} need_replication={j} permutation={i}, custom>} "
        ": (tensor<8x4xf32>) -> tensor<2x4xf32>"
    ).rule
    assert rule.operands == ((("i", "j"), ("k",)),)
    assert rule.results == ((("i",), ("l",)),)
    assert rule.sizes == {"i": 2, "j": 4, "k": 4, "l": 4}
    assert (rule.reduction, rule.need_replication, rule.permutation) == ({"k"}, {"j"}, {"i"})
    assert rule.below == ((((0, 0),), ()),)
    assert rule.above == ((((0, 0),), ()),)


def test_a_rule_has_a_name_for_any_number_of_factors():
    """Shardy prints the first 18 as letters."""
    shape = "x".join("1" * 20)
    dims = ", ".join([*"ijklmnopqrstuvwxyz", "z_1", "z_2"])
    sizes = dims.replace(",", "=1,") + "=1"
    rule = op(
        "%0 = stablehlo.negate %b {sdy.sharding_rule = #sdy.op_sharding_rule<"
        f"([{dims}])->([{dims}]) {{{sizes}}}>}} : tensor<{shape}xf32>",
        inputs=f"%a: tensor<8x4xf32>, %b: tensor<{shape}xf32>",
    ).rule
    assert [factor for (factor,) in rule.results[0]] == dims.split(", ")


def test_what_shardy_notes_while_it_propagates():
    found = op(
        '%0 = stablehlo.add %a, %a {sdy.sharding_origins = [{model = "input: 0"}], sdy.sharding = '
        '#sdy.sharding_per_value<[<@mesh, [{"model"}, {"data":(1)2}]>]>, sdy.propagation_edges = '
        '#sdy.propagation_edges<[{step-3 = [{"model" = operand-0 -> [operand-1, result-0]}, '
        '{"data":(1)2 = result-0 -> [operand-0]}]}]>} : tensor<8x4xf32>',
        inputs=f"%a: tensor<8x4xf32> {given('[{"model"}, {"data":(1)2}]')}",
    )
    assert found.results[0].origins == {"model": "input: 0"}
    assert found.edges == (
        Edge(3, "model", ("operand", 0), (("operand", 1), ("result", 0))),
        Edge(3, "data:(1)2", ("result", 0), (("operand", 0),)),
    )


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        (
            "stablehlo.dot %a, %b : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>",
            ((1,), (0,), (), ()),
        ),
        (
            (
                "stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] "
                ": (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>"
            ),
            ((1,), (0,), (), ()),
        ),
        ("stablehlo.transpose %a, dims = [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>", ((1, 0),)),
        (
            "stablehlo.slice %a [0:8:2, 1:3] : (tensor<8x4xf32>) -> tensor<4x2xf32>",
            ((0, 1), (8, 3), (2, 1)),
        ),
        (
            (
                "stablehlo.concatenate %a, %a, dim = 1 "
                ": (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>"
            ),
            ((1,),),
        ),
        ("stablehlo.negate %a : tensor<8x4xf32>", ()),
    ],
)
def test_dimension_numbers(text, numbers):
    found = op(f"%0 = {text}", inputs="%a: tensor<8x4xf32>, %b: tensor<4x6xf32>")
    assert found.numbers == numbers


LOOP = """
  %c = stablehlo.constant dense<{limit}> : tensor<i32>
  %i = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%n = %i, %x = %a) : tensor<i32>, tensor<8x4xf32>
    attributes {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>, <@mesh, [{{"data"}}, {{}}]>]>}}
  cond {{
    %1 = stablehlo.compare {compared} : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }} do {{
    %2 = stablehlo.tanh %x : tensor<8x4xf32>
    stablehlo.return %n, %2 : tensor<i32>, tensor<8x4xf32>
  }}"""


def test_the_carry_of_a_loop_has_one_sharding():
    found = read(module(LOOP.format(limit=7, compared="LT, %n, %c")))
    loop, compare, tanh = found.ops[2:]
    assert [[value.placed for value in body] for body in loop.arguments] == [list(loop.results)] * 2
    assert tanh.operands[0].placed.spec == (("data",), ())
    assert loop.returned == [compare.results, (loop.arguments[1][0], *tanh.results)]
    assert list(tanh.parents) == [loop]
    assert list(loop.parents) == []


@pytest.mark.parametrize(
    ("compared", "trips"), [("LT, %n, %c", 7), ("GT, %c, %n", None), ("LT, %n, %n", None)]
)
def test_the_trips_of_a_loop_that_counts_to_a_constant(compared, trips):
    found = read(module(LOOP.format(limit=7, compared=compared)))
    assert [op.trips for op in found.ops if op.kind == "stablehlo.while"] == [trips]


def test_a_data_flow_edge_has_the_sharding_of_its_value():
    loop = LOOP.format(limit=7, compared="LT, %n, %c")
    edge = (
        "%3 = sdy.data_flow_edge %0#1 "
        'sharding=<@mesh, [{}, {"model"}]> {sdy.sharding_origins = {model = "self"}} : tensor<8x4xf32>'
    )
    result, carried = read(module(loop + edge)).ops[2].results[1], op(loop + edge)
    assert (result.spec, result.origins) == (((), ("model",)), {"model": "self"})
    assert carried.results[0].placed is carried.operands[0]


def test_the_body_of_a_shard_map_has_its_axes():
    found = read(
        module(
            """%0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"data"}, {}]>]
                 out_shardings=[<@mesh, [{"data"}, {}]>] manual_axes={"data"} (%x: tensor<2x4xf32>) {
                 %1 = stablehlo.tanh %x : tensor<2x4xf32>
                 sdy.return %1 : tensor<2x4xf32>
               } : (tensor<8x4xf32>) -> tensor<8x4xf32>"""
        )
    )
    mapped, tanh = found.ops
    assert mapped.axes == ("data",)
    assert mapped.arguments == [tanh.operands]
    assert mapped.returned == [tanh.results]
    assert tanh.parent is mapped
    assert found.stated_axes == {"data"}


def test_ops_on_elements_are_left_out():
    found = read(
        module(
            "%c = stablehlo.constant dense<0.0> : tensor<f32>\n"
            "%0 = stablehlo.reduce(%a init: %c) across dimensions = [1] "
            ": (tensor<8x4xf32>, tensor<f32>) -> tensor<8xf32>\n"
            "reducer(%x: tensor<f32>, %y: tensor<f32>) {\n"
            "  %1 = stablehlo.maximum %x, %y : tensor<f32>\n"
            "  %2 = stablehlo.minimum %1, %y : tensor<f32>\n"
            "  stablehlo.return %2 : tensor<f32>\n}"
        )
    )
    assert [op.opcode for op in found.ops] == ["constant", "reduce"]


CONSTRAINT = '%0 = sdy.sharding_constraint %a <@mesh, [{"model"}, {}]> : tensor<8x4xf32>'


def test_a_result_has_its_own_sharding_or_none():
    types = "tensor<8x4xf32>, tensor<8x4xf32>"
    found = read(
        module(
            CONSTRAINT,
            results=f"tensor<8x4xf32> {given('[{"data"}, {}]')}, tensor<8x4xf32>",
            returned=f"%0, %0 : {types}",
        )
    )
    assert [output.spec for output in found.outputs] == [(("data",), ()), None]


def test_axes_of_inputs_are_not_stated_by_the_program():
    inputs = f"%a: tensor<8x4xf32> {given('[{"data"}, {}]')}"
    assert read(module("", inputs=inputs)).stated_axes == set()
    assert read(module(CONSTRAINT, inputs=inputs)).stated_axes == {"model"}


def test_the_axes_that_only_a_result_names_are_not_inside():
    result = """module { sdy.mesh @m = <["x"=2]> func.func public @main(%a: tensor<8xf32>)
        -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) {
        return %a : tensor<8xf32> } }"""
    found = read(result)
    assert (found.stated_axes, found.axes_inside) == ({"x"}, set())


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("module { nonsense }", "line 1:10: "),
        (module("%0 = stablehlo.negate %b : tensor<8xf32>"), "undeclared SSA value"),
        ("module {}", "no main function"),
        ("", "no main function"),
    ],
)
def test_a_text_that_cannot_be_read_says_why(text, problem):
    with pytest.raises(
        ValueError, match=f"this jaxlib cannot read the module of Shardy: .*{problem}"
    ):
        read(text)


def test_a_jaxlib_without_a_part_of_the_bindings_says_so(monkeypatch):
    known = MLIR_BINDINGS["dialects.sdy"]
    gone = dataclasses.replace(known, has=(*known.has, "GoneAttr"))
    monkeypatch.setitem(MLIR_BINDINGS, "dialects.sdy", gone)
    with pytest.raises(NotAvailable, match="Shardy in this process is not available"):
        read(module(""))


def parts(thing, seen):
    """Everything that a value of the reader leads to."""
    if id(thing) in seen:
        return
    seen[id(thing)] = thing
    if dataclasses.is_dataclass(thing):
        inner = list(vars(thing).values())
    elif isinstance(thing, dict):
        inner = [*thing, *thing.values()]
    else:
        inner = list(thing) if isinstance(thing, (list, tuple, frozenset)) else []
    for part in inner:
        parts(part, seen)


def test_nothing_of_mlir_is_kept():
    text = module(LOOP.format(limit=7, compared="LT, %n, %c") + CONSTRAINT.replace("%0", "%4"))
    seen: dict[int, object] = {}
    parts(read(text), seen)
    assert {type(thing).__module__ for thing in seen.values()} == {
        "builtins",
        "shardnb.texts.shardy",
        "shardnb.texts.shardy_attributes",
    }


def test_shardings_are_written_as_shardy_reads_them():
    spec = (("data",), (), ("x:(1)2", "y"))
    assert sharding_text("m", spec) == '#sdy.sharding<@m, [{"data"}, {}, {"x":(1)2, "y"}]>'
    opened = sharding_text("m", spec[:2], is_open=True)
    assert opened == '#sdy.sharding<@m, [{"data", ?}, {?}]>'
    assert mesh_text({"a": 4, "b": 2}) == '#sdy.mesh<["a"=4, "b"=2]>'
