"""Exceptions explained: each program's cause and fix are known before, from JAX's documents.

The fixes are applied to the text of the program and traced: what is proposed has to work.
"""

import ast
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from shardnb.engine import explain
from shardnb.errors import explain as explaining
from shardnb.errors import explain_error
from shardnb.jax_compat import parts
from shardnb.jax_compat.tracing import full_tracebacks, shard_map_arguments_checked_by
from shardnb.mesh import make_grid
from tests.errors.cell import NAMES, Cell, f32, of_cell, s32


def types(report):
    return [(value.name, value.spec) for value in report.values]


def test_e1_a_sum_over_what_both_operands_split():
    cell = Cell(
        """
        def f(a, b):
            c = a @ b
            return jnp.tanh(c)
        """,
        [f32(256, 512), f32(512, 1024)],
        [P("data", "model"), P("model", None)],
    )
    report = cell.report
    assert (report.error, report.kind) == ("ShardingTypeError", "ambiguous-contraction")
    assert (report.location.line, report.expression) == (2, "a @ b")
    assert types(report) == [("a", (("data",), ("model",))), ("b", (("model",), ()))]
    # All-reduce of f32[64,1024] over 2 devices: each sends 2 * 1/2 of 262144 bytes.
    costs = {c.spec: (c.collectives, c.wire_bytes) for c in report.candidates}
    assert costs["P('data', None)"] == ((("all-reduce", ("model",)),), 262144)
    assert costs["P('data', None, unreduced={'model'})"] == ((), 0)
    assert report.fixes[0] == "c = jnp.matmul(a, b, out_sharding=P('data', None))"
    for fix in report.fixes[:4]:
        cell.fixed(fix)


def test_e1_what_auto_chooses_is_marked():
    cell = Cell(
        """
        def f(a, b):
            return a @ b
        """,
        [f32(256, 512), f32(512, 1024)],
        [P("data", "model"), P("model", None)],
    )
    assert [c.spec for c in cell.report.candidates if c.chosen] == ["P('data', None)"]


def test_e2_a_result_that_would_use_an_axis_twice():
    cell = Cell(
        """
        def f(a, b):
            return a + b
        """,
        [f32(64, 64), f32(64, 64)],
        [P(None, "data"), P("data", None)],
    )
    report = cell.report
    assert (report.error, report.kind) == ("ShardingTypeError", "axis-twice")
    assert "jax.sharding.reshard(a, P('data', None)) + b" in "".join(report.fixes)
    for fix in report.fixes:
        cell.fixed(fix)


def test_e3_a_reshape_that_cuts_blocks():
    cell = Cell(
        """
        def f(x):
            return x.reshape(4, 16, 64)
        """,
        [f32(64, 64)],
        [P("data")],
        mesh="data=8",
    )
    report = cell.report
    assert (report.error, report.kind) == ("ShardingTypeError", "reshape")
    assert any(", out_sharding=P(" in fix for fix in report.fixes)
    for fix in report.fixes:
        cell.fixed(fix)


def test_e4_a_constraint_only_asserts_under_explicit_axes():
    cell = Cell(
        """
        def f(x):
            return lax.with_sharding_constraint(x, P(None, "data"))
        """,
        [f32(64, 64)],
        [P("data")],
    )
    assert (cell.report.error, cell.report.kind) == ("AssertionError", "constraint")
    assert cell.report.fixes == ('jax.sharding.reshard(x, P(None, "data"))',)
    cell.fixed("return " + cell.report.fixes[0])


MAPPED = """
def body(a, b):
    c = a @ b
    return jnp.tanh(c)
def f(a, b):
    g = jax.shard_map(body, mesh=mesh, in_specs=(P("data", "model"), P("model", None)), {more})
    return g(a, b)
"""


def test_e5_a_missing_collective():
    cell = Cell(
        MAPPED.format(more='out_specs=P("data", None)'),
        [f32(256, 512), f32(512, 1024)],
        [P(), P()],
        axes="auto",
    )
    report = cell.report
    assert (report.error, report.kind) == ("ValueError", "missing-collective")
    assert "'model'" in report.sentence
    assert report.fixes == ("c = jax.lax.psum(a @ b, 'model')",)
    assert (report.location.line, report.expression) == (2, "a @ b")
    (candidate,) = report.candidates
    assert candidate.collectives == (("all-reduce", ("model",)),)
    cell.trace(cell.text.replace("c = a @ b", report.fixes[0]))


def test_e6_a_carry_that_starts_unvarying():
    cell = Cell(
        """
        def body(x):
            start = jnp.zeros(2)
            return lax.scan(lambda c, _: (c + x, None), start, None, length=3)[0]
        def f(x):
            return jax.shard_map(body, mesh=mesh, in_specs=P("data"), out_specs=P("data"))(x)
        """,
        [f32(8)],
        [P()],
        axes="auto",
    )
    assert (cell.report.error, cell.report.kind) == ("TypeError", "carry")
    assert "jax.lax.pcast(start, 'data', to='varying')" in cell.report.fixes[0]
    cell.fixed(cell.report.fixes[0])


def test_e6_the_branch_of_a_cond_that_does_not_vary():
    cell = Cell(
        """
        def body(x):
            return lax.cond(x.sum() > 0, lambda: x, lambda: jnp.zeros(2))
        def f(x):
            return jax.shard_map(body, mesh=mesh, in_specs=P("data"), out_specs=P("data"))(x)
        """,
        [f32(8)],
        [P()],
        axes="auto",
    )
    # JAX proposes pcast(..., ()) on the branch that varies already.
    assert cell.report.fixes == ("in false_fun, return jax.lax.pcast(..., 'data', to='varying')",)


def test_e7_one_row_over_eight_devices():
    cell = Cell(
        """
        def f(x):
            g = jax.shard_map(lambda x: x, mesh=mesh, in_specs=P("data"), out_specs=P("data"))
            return g(x)
        """,
        [f32(1, 16)],
        [P()],
        mesh="data=8",
        axes="auto",
    )
    report = cell.report
    assert (report.error, report.kind) == ("ValueError", "uneven")
    assert report.problems[0].divides == (0, 8)
    assert "jnp.pad(x, [(0, 7), (0, 0)])" in report.fixes


@pytest.mark.parametrize("axes", ["auto", "explicit"])
def test_e8_a_size_that_does_not_divide_is_told_alike_under_auto_and_explicit(axes):
    grid = make_grid("data=4", axes=axes)
    x = np.ones((257, 512), np.float32)
    with pytest.raises(ValueError, match="257") as caught:
        jax.device_put(x, NamedSharding(grid.mesh, P("data", None)))
    report = explain_error(caught.value)
    assert isinstance(caught.value, ValueError)
    assert report.kind == "uneven"
    assert report.problems[0].divides == (256, 260)
    assert report.fixes[0] == "jnp.pad(x, [(0, 3), (0, 0)])"


def test_e9_a_collective_outside_of_shard_map():
    cell = Cell(
        """
        def f(x):
            return lax.psum(x, "data")
        """,
        [f32(8)],
        [P()],
        axes="auto",
    )
    assert (cell.report.error, cell.report.kind) == ("NameError", "unbound-axis")
    assert "outside shard_map" in cell.report.sentence


# JAX raises an AssertionError without a text for it.
def test_e9_an_axis_that_is_misspelt():
    cell = Cell(
        """
        def f(x):
            g = lambda x: lax.psum(x, "dta")
            return jax.shard_map(g, mesh=mesh, in_specs=P("data"), out_specs=P())(x)
        """,
        [f32(8)],
        [P()],
        axes="auto",
    )
    assert cell.report.fixes == ('lax.psum(x, "data")',)


@pytest.fixture
def placed():
    grid = make_grid("data=4,model=2")
    turned = jax.sharding.Mesh(grid.mesh.devices[::-1], ("data", "model"))
    ones = np.ones((8, 8), np.float32)
    return (
        jax.device_put(ones, NamedSharding(grid.mesh, P("data"))),
        jax.device_put(ones, NamedSharding(turned, P("data"))),
        jax.device_put(ones, grid.mesh.devices[0, 1]),
    )


def test_e10_an_argument_that_in_shardings_contradicts(placed):
    x, *_ = placed
    columns = NamedSharding(x.sharding.mesh, P(None, "data"))
    with pytest.raises(ValueError, match="does not match") as caught:
        jax.jit(lambda x: x * 2, in_shardings=columns)(x)
    report = explain_error(caught.value)
    assert report.kind == "committed"
    assert report.fixes == ("x = jax.device_put(x, NamedSharding(mesh, P(None, 'data')))",)
    # From 2x8 to 8x2 blocks on 8 devices: each keeps 2x2 and receives 12 floats.
    assert "sends 384 bytes" in report.cause


def test_e11_arguments_on_meshes_of_another_order(placed):
    x, y, _ = placed
    with pytest.raises(ValueError, match="incompatible devices") as caught:
        jax.jit(jnp.add)(x, y)
    report = explain_error(caught.value)
    assert "in another order" in report.sentence
    assert report.mesh.device_ids == tuple(range(8))
    assert report.other_mesh.device_ids == (6, 7, 4, 5, 2, 3, 0, 1)
    assert report.fixes == ("y = jax.device_put(y, x.sharding)",)


def test_e11_arguments_on_different_devices(placed):
    x, _, z = placed
    with pytest.raises(ValueError, match="incompatible devices") as caught:
        jax.jit(jnp.add)(x, z)
    report = explain_error(caught.value)
    assert "on different devices" in report.sentence
    # z is on one device, and 8 devices of x hold 2x8: 7 receive theirs.
    assert f"sends {7 * 16 * 4} bytes" in report.cause


def test_e12_a_mesh_larger_than_the_machine():
    with pytest.raises(ValueError, match="product of mesh_shape") as caught:
        jax.make_mesh((4096,), ("data",))
    assert explain_error(caught.value).fixes[0] == "%mesh data=4096"


def test_e12_a_number_of_devices_set_too_late():
    jax.devices()
    with pytest.raises(RuntimeError) as caught:
        jax.config.update("jax_num_cpu_devices", 16)
    assert "without a restart" in explain_error(caught.value).cause


EXPRESSIONS = [
    ("t[i]", [f32(64, 8), s32(32)], [P("data"), P()], "gather"),
    ("t.at[i].add(1.0)", [f32(64, 64), s32(64)], [P("data"), P("model")], "scatter"),
    ("lax.sort(t) + 0 * i", [f32(64), f32(64)], [P("data"), P()], "whole-axis"),
    ("lax.top_k(t, 4)[0] + i", [f32(64), f32(4)], [P("data"), P()], "whole-axis"),
    ("jnp.cumsum(t, 0) + i", [f32(64), f32(64)], [P("data"), P()], "whole-axis"),
    ("jnp.concatenate([t, i])", [f32(64, 8), f32(64, 8)], [P("data"), P("model")], "conflict"),
    ("jnp.where(t > 0, t, i)", [f32(64), f32(64)], [P("data"), P("model")], "conflict"),
    ("lax.dynamic_update_slice(t, i, (0,))", [f32(64), f32(32)], [P("data"), P()], "conflict"),
    ("t[:6] * i", [f32(64), f32()], [P("data"), P()], "uneven"),
    ("jnp.pad(t, 1) * i", [f32(64), f32()], [P("data"), P()], "uneven"),
    ("jnp.tile(t, (2, 1)) * i", [f32(64, 64), f32()], [P("data"), P()], "whole-axis"),
    ("jnp.unstack(t)[0] * i", [f32(64, 8), f32()], [P("data"), P()], "whole-axis"),
    ("jnp.linalg.svd(t)[1] * i", [f32(64, 64), f32()], [P("data"), P()], "whole-axis"),
    ("jnp.roll(t, 1, 0) * i", [f32(64, 8), f32()], [P("data"), P()], "whole-axis"),
    ("jnp.einsum('bij,bjk->bik', t, i)", [f32(8, 4, 4), f32(8, 4, 4)], [P("data"), P("model")], "batch"),
    ("t @ i", [f32(64, 64), f32(64, 64)], [P("data"), P(None, "data")], "axis-twice"),
    ("lax.conv(t, i, (1, 1), 'SAME')", [f32(8, 4, 8, 8), f32(4, 4, 3, 3)],
     [P("data", "model"), P("data")], None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "args", "specs", "kind"), EXPRESSIONS, ids=[e[0] for e in EXPRESSIONS]
)
def test_what_is_proposed_traces(text, args, specs, kind):
    cell = Cell(f"def f(t, i):\n    return {text}", args, specs)
    assert cell.report.error == "ShardingTypeError"
    assert kind in (None, cell.report.kind)
    assert cell.report.fixes
    assert cell.report.checked
    for fix in cell.report.fixes:
        cell.fixed(fix)


def test_a_pending_sum_is_to_be_done_before_what_is_not_linear():
    cell = Cell(
        """
        def f(a, b):
            c = jnp.einsum("ij,jk->ik", a, b, out_sharding=P("data", None, unreduced={"model"}))
            return jnp.tanh(c)
        """,
        [f32(64, 64), f32(64, 64)],
        [P("data", "model"), P("model", None)],
    )
    assert cell.report.kind == "unreduced"
    assert cell.report.values[0].unreduced == ("model",)
    assert cell.report.fixes[0] == "return jnp.tanh(jax.sharding.reshard(c, P('data', None)))"
    cell.fixed(cell.report.fixes[0])


def test_an_error_deep_in_a_library_is_told_at_the_users_line():
    cell = Cell(
        """
        def f(a, b):
            c = a * 2
            return jax.nn.softmax(c + b)
        """,
        [f32(64, 64), f32(64, 64)],
        [P("data"), P("model")],
    )
    assert cell.report.location.line == 3
    assert cell.report.expression == "c + b"


@pytest.mark.parametrize(
    ("text", "specs", "kind"),
    [
        ("NamedSharding(mesh, P('dta'))", [P()], "unknown-axis"),
        ("lax.with_sharding_constraint(t, P('data', 'model'))", [P()], "rank"),
        ("lax.with_sharding_constraint(t, NamedSharding(mesh, P(('data', 'data'))))", [P()], "axis-twice"),
        ("jax.shard_map(lambda x: x, mesh=mesh, in_specs=P('data', 'model'), out_specs=P())(t)", [P()], "rank"),
        ("jax.shard_map(lambda x: x, mesh=mesh, in_specs=P('rows'), out_specs=P())(t)", [P()], "unknown-axis"),
    ],
)  # fmt: skip
def test_specs_that_fit_nothing(text, specs, kind):
    cell = Cell(f"def f(t):\n    return {text}", [f32(8)], specs, axes="auto")
    assert cell.report.kind == kind


def test_the_in_specs_of_a_shard_map_under_explicit_axes():
    cell = Cell(
        """
        def f(t):
            return jax.shard_map(lambda x: x, in_specs=P("data"), out_specs=P("data"))(t)
        """,
        [f32(8)],
        [P("model")],
    )
    assert cell.report.kind == "in-specs"


@pytest.mark.parametrize(
    "text", ["1 / 0", "undefined", "t + 'x'", "jnp.zeros((2, 3)) @ jnp.zeros(4)"]
)
def test_other_errors_pass_through(text):
    cell = Cell(f"def f(t):\n    return {text}", [f32(8)], [P()])
    assert cell.report is None


def test_an_explanation_that_fails_leaves_the_error_alone_and_is_logged(monkeypatch, caplog):
    def broken(*args):
        raise RuntimeError("broken")

    monkeypatch.setattr(explaining, "_draft", broken)
    with pytest.raises(RuntimeError, match="broken"):
        explain_error(ValueError("x"))
    monkeypatch.delenv("SHARDNB_STRICT")
    assert explain_error(ValueError("x")) is None
    assert caplog.records[0].name == "shardnb"
    assert "the explanation of an error is not shown (RuntimeError: broken)" in caplog.text


def test_an_error_says_that_a_part_of_jax_is_gone(monkeypatch):
    monkeypatch.setattr(parts, "_gone", {parts.SHARD_MAP_CHECK: None})
    cell = Cell("def f(t):\n    return jnp.sort(t) * 2", [f32(64)], [P("data")])
    said = f"{parts.SHARD_MAP_CHECK.lost}: {parts.SHARD_MAP_CHECK.what} is not available with jax"
    assert said in cell.report.cause


def test_without_jaxs_frames_and_full_tracebacks_an_error_is_told_by_its_class(monkeypatch):
    monkeypatch.setattr(parts, "_gone", {})
    gone = replace(parts.TRACEBACK_FILTERING, attribute="gone")
    monkeypatch.setattr(parts, "TRACEBACK_FILTERING", gone)
    before = jax.config.jax_traceback_filtering
    jax.config.update("jax_traceback_filtering", "quiet_remove_frames")  # IPython keeps them
    try:
        cell = Cell("def f(t):\n    return jnp.sort(t) * 2", [f32(64)], [P("data")])
    finally:
        jax.config.update("jax_traceback_filtering", before)
    assert cell.report.expression == "jnp.sort(t)"
    assert gone.lost in cell.report.cause


def test_without_its_own_check_of_a_shard_map_only_jaxs_first_error_is_told(monkeypatch):
    monkeypatch.setattr(parts, "_gone", {})
    monkeypatch.delattr("jax._src.shard_map._check_specs_vs_args")
    with shard_map_arguments_checked_by(lambda *_: None):
        assert parts.SHARD_MAP_CHECK in parts._gone


def test_explaining_leaves_no_trace_in_the_caches_of_jax():
    cell = Cell("def f(t):\n    return jnp.sort(t) * 2", [f32(64)], [P("data")])
    with pytest.raises(type(cell.error)):
        cell.trace(cell.text)


def test_the_report_names_the_cell_line_in_its_text():
    cell = Cell("def f(t):\n    return jnp.sort(t)", [f32(64)], [P("data")])
    lines = [line.strip() for line in str(cell.report).splitlines()]
    assert lines[1:3] == ["2      return jnp.sort(t)", "in cell, at jnp.sort(t)"]


def test_names_that_hold_other_arrays_by_now_do_not_mislead():
    # A cell's inputs are tracers while it is traced, and the user's arrays afterwards.
    grid = make_grid("data=4,model=2", axes="explicit")
    names = {**NAMES, "x": jnp.ones((8, 8)), "w": jnp.ones((8, 8))}
    body = compile("y = x @ w\n", "<cell>", "exec")

    def cell(x, w):
        kept = names["x"], names["w"]
        names["x"], names["w"] = x, w
        try:
            exec(body, names)  # noqa: S102 - a cell
        finally:
            names["x"], names["w"] = kept

    args = [
        jax.ShapeDtypeStruct((8, 8), jnp.float32, sharding=NamedSharding(grid.mesh, spec))
        for spec in (P("data", "model"), P("model", None))
    ]
    with full_tracebacks(), jax.set_mesh(grid.mesh), pytest.raises(Exception) as caught:  # noqa: PT011
        jax.jit(cell).trace(*args)
    report = explain_error(caught.value, texts=of_cell("y = x @ w\n"), grid=grid)
    assert types(report) == [("x", (("data",), ("model",))), ("w", (("model",), ()))]
    assert report.fixes[0] == "y = jnp.matmul(x, w, out_sharding=P('data', None))"


def test_an_error_inside_a_library_stands_at_the_line_that_calls_it():
    nnx = pytest.importorskip("flax.nnx")
    graph, state = nnx.split(nnx.Linear(64, 64, use_bias=False, rngs=nnx.Rngs(0)))
    grid = make_grid("data=4,model=2", axes="explicit")

    def program(state, x):
        layer = nnx.merge(graph, state)
        return layer(x)

    def shape(leaf, spec):
        sharding = NamedSharding(grid.mesh, spec)
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding)

    kernel = jax.tree.map(lambda leaf: shape(leaf, P("model", None)), state)
    x = shape(jnp.ones((64, 64)), P("data", "model"))
    with full_tracebacks(), jax.set_mesh(grid.mesh), pytest.raises(Exception) as caught:  # noqa: PT011
        jax.jit(program).trace(kernel, x)
    report = explain_error(caught.value, grid=grid)
    assert report.kind == "ambiguous-contraction"
    assert report.expression == "layer(x)"
    assert report.location.line == program.__code__.co_firstlineno + 2


def texts_of_jax():
    """Yield the texts of every ShardingTypeError in the installed JAX, as far as they are plain."""
    for file in sorted(Path(jax.__file__).parent.rglob("_src/**/*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("ShardingTypeError"):
                parts = [n.value for n in ast.walk(node) if isinstance(n, ast.Constant)]
                yield "".join(part for part in parts if isinstance(part, str))


def test_every_text_of_a_sharding_type_error_gets_a_sentence():
    try:
        jax.jit(lambda x: jnp.sort(x)).trace(  # noqa: PLW0108
            jax.ShapeDtypeStruct(
                (8,),
                jnp.float32,
                sharding=NamedSharding(make_grid("data=4", "explicit").mesh, P("data")),
            )
        )
    except Exception as error:  # noqa: BLE001 - for its class
        kind = type(error)
    found = list(texts_of_jax())
    assert len(found) > 40
    for text in found:
        report = explain_error(kind(text))
        assert report.error == "ShardingTypeError"
        assert report.message == text
        assert report.sentence


def test_an_out_spec_that_promises_another_pending_sum():
    more = 'out_specs=P("data", None, unreduced={"model"})'
    cell = Cell(MAPPED.format(more=more), [f32(256, 512), f32(512, 1024)], [P(), P()], axes="auto")
    assert (cell.report.error, cell.report.kind) == ("ValueError", "unreduced-spec")


def test_a_shard_map_outside_of_jit_is_not_taken_for_its_own_check():
    mesh = make_grid("data=8").mesh
    x = jax.device_put(np.ones((64, 64), np.float32), NamedSharding(mesh, P("data")))
    with pytest.raises(ValueError, match="replication") as caught:
        jax.shard_map(lambda q: q.sum(), mesh=mesh, in_specs=P("data"), out_specs=P())(x)
    report = explain_error(caught.value)
    assert (report.kind, report.fixes, report.values) == ("missing-collective", (), ())


def test_an_array_inside_of_an_operation_is_not_called_by_the_users_name():
    cell = Cell(
        "def f(x):\n    return x.at[0:3].set(1.)", [f32(64, 64)], [P("data")], mesh="data=8"
    )
    assert "an array inside this line" in cell.report.sentence
    assert not any("jnp.pad" in fix for fix in cell.report.fixes)


def test_a_spec_that_does_not_fit_a_structure_is_not_logged_as_a_bug(monkeypatch, caplog):
    monkeypatch.delenv("SHARDNB_STRICT")
    with pytest.raises(ValueError, match=r"did you mean P\('data', None\)\?"):
        explain(jnp.sum, jnp.ones((8, 4)), mesh="data=4", in_specs=(("data", None),))
    assert caplog.records == []
