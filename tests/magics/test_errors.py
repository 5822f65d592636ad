"""Errors of JAX's in cells: explained first, the plain traceback one click away."""

from __future__ import annotations

import pytest


@pytest.fixture
def cell(run):
    run("x = np.ones((16, 8), np.float32); W = np.ones((8, 4), np.float32)")
    run("P = jax.P")
    run("%mesh data=4,model=2 --axes explicit")
    return run


AMBIGUOUS = "%%shard x=P('data', 'model') W=P('model')\ny = x @ W"


def html(shown):
    return next(data["text/html"] for data in shown.data if "text/html" in data)


def test_an_error_is_of_jaxs_class_and_comes_with_its_explanation(cell):
    shown = cell(AMBIGUOUS, fails=True)
    assert type(shown.result.error_in_exec).__name__ == "ShardingTypeError"
    assert "x @ W sums over a dimension that is sharded over 'model' in both operands" in html(
        shown
    )


def test_the_fix_is_the_line_to_paste(cell):
    cell(AMBIGUOUS.replace("x @ W", "jnp.matmul(x, W, out_sharding=P('data', None))"))
    shown = cell(AMBIGUOUS, fails=True)
    assert "y = jnp.matmul(x, W, out_sharding=P('data', None))" in html(shown)


def test_both_arrays_are_drawn_and_the_traceback_is_folded(cell):
    page = html(cell(AMBIGUOUS, fails=True))
    assert "dim 1 over model=2" in page
    assert page.count("<details") == 2
    assert "the plain traceback" in page


def test_names_are_those_that_the_cell_saw(cell):
    # `h` holds another array in the notebook than in the cell.
    cell("h = np.ones(3, np.float32)")
    page = html(
        cell("%%shard x=P('data', 'model') W=P('model')\nh = jnp.tanh(x)\nh @ W", fails=True)
    )
    assert "h f32[16@data, 8@model]" in page


def test_an_explained_error_keeps_no_names_of_the_cell(cell):
    error = cell(AMBIGUOUS, fails=True).result.error_in_exec
    assert "__shardnb_names__" not in vars(error)


@pytest.mark.parametrize(
    ("code", "imported"),
    [
        ("y = jax.lax.with_sharding_constraint(x, P('data'))", "PartitionSpec as P"),
        ("y = jax.device_put(x, NamedSharding(jax.sharding.get_mesh(), None))", "NamedSharding"),
    ],
)
def test_a_name_that_only_the_line_knows_says_how_it_is_imported(cell, code, imported):
    cell("del P")
    error = cell(f"%%shard x=P('data')\n{code}", fails=True).result.error_in_exec
    assert type(error) is NameError
    assert error.__notes__[0].endswith(f"run: from jax.sharding import {imported}")


def test_an_error_that_is_not_about_placement_is_shown_as_ever(cell):
    shown = cell("%%shard x=P('data')\ny = x + undefined", fails=True)
    assert type(shown.result.error_in_exec) is NameError
    assert shown.data == []


def test_all_specs_that_do_not_fit_are_listed_at_once(cell):
    shown = cell(
        "%%shard x=P('data', None, None) W=P(None, 'data', 'model')\ny = x @ W", fails=True
    )
    assert "2 specs do not fit" in html(shown)
    assert "of x has 3 entries" in html(shown)
    assert "of W has 3 entries" in html(shown)


def test_one_spec_that_does_not_fit_is_one_line(cell):
    shown = cell("%%shard x=P('data', None, None)\ny = x * 2", fails=True)
    assert "the spec P('data', None, None) of x has 3 entries" in shown.err
    assert shown.data == []


PLAIN = """
mesh = jax.make_mesh((1,), ("data",), axis_types=(jax.sharding.AxisType.Explicit,))
with jax.set_mesh(mesh):
    a = jax.device_put(jnp.ones((8, 8)), jax.NamedSharding(mesh, jax.P(None, "data")))
    b = jax.device_put(jnp.ones((8, 8)), jax.NamedSharding(mesh, jax.P("data", None)))
    a @ b
"""


def test_any_cell_is_explained_once_it_is_switched_on(cell):
    assert cell(PLAIN, fails=True).data == []
    cell("%shard --errors on")
    shown = cell(PLAIN, fails=True)
    assert type(shown.result.error_in_exec).__name__ == "ShardingTypeError"
    assert "a @ b sums over a dimension that is sharded over 'data'" in html(shown)
    assert "1 / 0" in cell("1 / 0", fails=True).out
    cell("%shard --errors off")
    assert cell(PLAIN, fails=True).data == []


def test_a_handler_of_the_users_stays_in_its_place(ip, cell):
    seen = []
    ip.set_custom_exc(
        (ZeroDivisionError,), lambda shell, kind, value, tb, tb_offset=None: seen.append(kind)
    )
    before = ip.custom_exceptions, ip.CustomTB
    try:
        cell("%shard --errors on")
        cell("1 / 0", fails=True)
        assert seen == [ZeroDivisionError]
        cell("%shard --errors off")
        assert (ip.custom_exceptions, ip.CustomTB) == before
    finally:
        ip.set_custom_exc((), None)


def test_unloading_switches_it_off(ip, cell):
    before = ip.custom_exceptions
    cell("%shard --errors on")
    ip.run_line_magic("unload_ext", "shardnb")
    assert ip.custom_exceptions == before
    ip.run_line_magic("load_ext", "shardnb")


def test_errors_takes_on_or_off(cell):
    assert "neither on nor off" in cell("%shard --errors maybe", fails=True).err


def test_in_python_the_explanation_is_a_note(ip):
    import jax
    import jax.numpy as jnp

    import shardnb as sn

    x = jax.ShapeDtypeStruct((8, 8), "float32")
    specs = (jax.P(None, "data"), jax.P("data"))
    with pytest.raises(Exception, match="ambiguous") as caught:
        sn.explain(
            lambda a, b: jnp.tanh(a @ b), x, x, mesh="data=4", axes="explicit", in_specs=specs
        )
    assert "a @ b sums over a dimension" in caught.value.__notes__[0]


def test_the_operands_of_an_expression_behind_a_line_magic_have_their_names(run):
    run("%mesh data=4,model=2\nx, W = jnp.ones((8, 8)), jnp.ones((8, 4))")
    axes = "--axes explicit x=jax.P('data', 'model') W=jax.P('model')"
    shown = run(f"n = 1\n%shard x @ W {axes}", fails=True)
    (told,) = [data["text/plain"] for data in shown.data]
    assert told.startswith("ShardingTypeError: x @ W sums over a dimension that is sharded")
    assert "operand 0" not in told


@pytest.mark.parametrize(
    ("code", "expression", "line"),
    [
        ("loss = float((x @ W).sum())", "float((x @ W).sum())", 2),
        ("h = x @ W\nif h.sum() > 0:\n    h = -h", "h.sum() > 0", 3),
        ("y = np.asarray(x @ W)", "np.asarray(x @ W)", 2),
        ("y = (x @ W).sum().item()", "(x @ W).sum().item()", 2),
        ("y = x[x > 1]", "x[x > 1]", 2),
        ("for i in range(x.astype(int).sum()):\n    y = x", "range(x.astype(int).sum())", 2),
        ("print(f'loss {x.sum():.3f}')", "x.sum():.3f", 2),
    ],
)
def test_what_needs_a_value_is_told_that_the_cell_is_traced(run, code, expression, line):
    run("x = np.ones((16, 8), np.float32); W = np.ones((8, 4), np.float32)\n%mesh data=4,model=2")
    shown = run(f"%%shard x=P('data')\n{code}", fails=True)
    text = next(data["text/plain"] for data in shown.data if "text/plain" in data)
    words = " ".join(text.split())
    assert expression in words
    assert "needs the value of an array, but %%shard traces a cell as jax.jit traces" in words
    assert "in the next cell" in words
    assert "%%shard --watch" in words
    assert f" {line}  " in text


def test_a_jitted_function_of_the_users_that_needs_a_value_is_jaxs_own_error(run):
    run("x = np.ones((16, 8), np.float32)\n%mesh data=4,model=2")
    run("@jax.jit\ndef f(x):\n    return float(x.sum())")
    shown = run("%%shard x=P('data')\ny = f(x)", fails=True)
    assert "next cell" not in str(shown.data) + shown.out


def test_a_print_of_a_traced_array_comes_with_a_note(run):
    run("x = np.ones((16, 8), np.float32)\n%mesh data=4,model=2")
    run("def show(v):\n    print('in show', v)")
    code = "print(x)\nprint('a', 3, x.shape)\nprint(f'sum {x.sum()}')\nshow(x)\nlog = print\ny = x"
    shown = run(f"%%shard x=P('data')\n{code}")
    notes = [note for note in shown.reports[-1]["notes"] if "prints a traced array" in note]
    assert [note.partition(" prints")[0] for note in notes] == ["line 2", "line 4", "a function"]
    assert "print in the next cell, or with jax.debug.print" in notes[0]
    assert shown.out.startswith("JitTracer")
    # Neither name is another function than before.
    run("assert log is print and 'print' not in globals()")


def test_a_print_of_the_users_own_is_called(run):
    run("x = np.ones((16, 8), np.float32)\n%mesh data=4,model=2\nseen = []\nprint = seen.append")
    shown = run("%%shard x=P('data')\nprint(1)\ny = x")
    run("assert seen == [1]; del print")
    assert not any("prints a traced" in note for note in shown.reports[-1].get("notes", ()))
