"""Edits of source texts: what is written, and the way back from the edited text."""

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec as P

from shardnb.rewrite.expression import Expression
from shardnb.rewrite.text_edits import Piece, Text

NAMES = {"jax": jax, "jnp": jnp, "P": P}


def expression(text, part=None, **names):
    source = Text.of(text)
    part = part or text
    start = text.encode().index(part.encode())
    node = source.node((start, start + len(part.encode())))
    return Expression(source, node, {**NAMES, **names})


def stated(text, **names):
    one = expression(text, **names)
    pieces = one.with_out_sharding(P("data", None))
    return None if pieces is None else one.source.edited(pieces).text


S = "out_sharding=P('data', None)"


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("a @ b", f"jnp.matmul(a, b, {S})"),
        ("(a + b) @ (c)", f"jnp.matmul((a + b), (c), {S})"),
        ("f(a)@b.T", f"jnp.matmul(f(a), b.T, {S})"),
        ("a @ b @ c", f"jnp.matmul(a @ b, c, {S})"),
        ("ä @ b", f"jnp.matmul(ä, b, {S})"),
        ("t[i]", f"t.at[i].get({S})"),
        ("p['w'][i, :]", f"p['w'].at[i, :].get({S})"),
        ("jnp.einsum('ij,jk->ik', a, b)", f"jnp.einsum('ij,jk->ik', a, b, {S})"),
        ("jnp.dot(a, b,)", f"jnp.dot(a, b, {S})"),
        ("a.reshape(4, -1)", f"a.reshape(4, -1, {S})"),
        ("a.ravel()", f"a.ravel({S})"),
        ("t.at[i].set(0)", f"t.at[i].set(0, {S})"),
    ],
)
def test_a_placement_is_stated_where_the_operation_takes_one(text, after):
    assert stated(text) == after


@pytest.mark.parametrize(
    "text", ["a + b", "jnp.cumsum(a)", "d.get('w')", f"jnp.dot(a, b, {S})", "unknown(a)"]
)
def test_no_placement_is_stated_where_none_is_taken(text):
    assert stated(text) is None


def test_the_users_own_names_are_used():
    one = Expression(Text("a @ b"), expression("a @ b").node, {"np": jnp, "Spec": P})
    edited = one.source.edited(one.with_out_sharding(P("x"))).text
    assert edited == "np.matmul(a, b, out_sharding=Spec('x'))"


def test_nested_edits_stand_inside_each_other():
    text = "a @ b @ c"
    outer, inner = expression(text), expression(text, "a @ b")
    pieces = [*outer.with_out_sharding(P("x")), *inner.with_out_sharding(P("y"))]
    after = "jnp.matmul(jnp.matmul(a, b, out_sharding=P('y')), c, out_sharding=P('x'))"
    assert Text.of(text).edited(pieces).text == after
    assert Text.of(text).edited(pieces[::-1][:3][::-1] + pieces[:3]).text == after


def test_a_later_edit_of_the_same_expression_stands_outside():
    one = expression("a @ b")
    pieces = [*one.with_out_sharding(P("x")), *one.with_reshard(one.node, P("y"))]
    assert one.source.edited(pieces).text == (
        "jax.sharding.reshard(jnp.matmul(a, b, out_sharding=P('x')), P('y'))"
    )


@pytest.mark.parametrize(("text", "part"), [("a @ b + c", "a @ b"), ("f(t[i])", "t[i]")])
def test_the_way_back_from_an_edited_text(text, part):
    one = expression(text, part)
    pieces = one.with_out_sharding(P("x"))
    edited = one.source.edited(pieces)
    start = edited.text.index("jnp.matmul" if "@" in part else "t.at")
    end = edited.text.index("P('x'))") + len("P('x'))")
    source = one.source
    assert source.part(source.origin((start, end), pieces)) == part


def test_what_follows_the_arrays_of_a_call_moves_into_a_function_of_them():
    one = expression("jnp.take_along_axis(a, i[:, None], axis=-1)")
    pieces = one.with_auto_axes(P("x"))
    assert one.source.edited(pieces).text == (
        "jax.sharding.auto_axes(lambda *arrays: jnp.take_along_axis(*arrays, axis=-1), "
        "out_sharding=P('x'))(a, i[:, None])"
    )


def test_a_call_of_arrays_alone_is_left_to_propagation_as_it_is():
    one = expression("layer(x)")
    pieces = one.with_auto_axes(P("x"))
    assert one.source.edited(pieces).text == "jax.sharding.auto_axes(layer, out_sharding=P('x'))(x)"


def test_an_indented_text_has_the_lines_of_its_file():
    text = Text.of("    def f(x):\n        return x\n", first_line=10)
    assert text.tree is not None
    assert text.line_of(text.data.index(b"return")) == 11


def test_an_expression_is_a_function_only_where_all_that_it_calls_is_jax():
    a = jnp.ones(3)
    names, call = expression("jnp.sum(a) + d['w'][0]", a=a, d={"w": a}).as_function()
    assert names == ["a", "d['w']"]
    assert call(a, 2 * a) == 5
    assert expression("f(a)", a=a, f=lambda x: x).as_function() is None
    assert expression("(lambda: open)()", a=a).as_function() is None


def test_pieces_that_replace_keep_their_order():
    pieces = [Piece(0, 1, "x", (0, 3)), Piece(3, 3, "!", (0, 3))]
    assert Text("a+b").edited(pieces).text == "x+b!"
