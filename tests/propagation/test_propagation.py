"""Why each value has its sharding: expected by hand, from Shardy's rules of each operation."""

# ruff: noqa: RET504 (a value has to have a name to be asked for)

from __future__ import annotations

import textwrap
from dataclasses import replace

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

from shardnb import propagation
from shardnb.compiler import build
from shardnb.compiler.call import read_call
from shardnb.findings import report_of_program
from shardnb.mesh import make_grid
from shardnb.report import Location, Report, Source, Value
from shardnb.report.why import chain
from shardnb.sources.statements import statement_at, statements
from shardnb.views.layout import copies
from tests.causes.cases import f32

OLD_JAX = jax.__version__.startswith("0.11")


def report_of(fn, *args, mesh="data=4,model=2", axes=None, specs=None, out=None):
    grid = make_grid(mesh, axes)
    return report_of_program(build(read_call(fn, args).request(grid, specs, out)))


def one(report, name):
    (value,) = (value for value in report.values if value.name == name)
    return value


def came_from(report, name):
    """For each axis of a value: kind and name of its origin, and the way from there."""
    index = report.values.index(one(report, name))
    return {
        origin.axis: (
            origin.kind,
            origin.name,
            [(step.op, step.direction) for step in chain(report, index, origin.axis) or ()],
        )
        for origin in report.values[index].origins
    }


def stopped(report, name):
    return {(b.axis, b.value, b.reason) for b in one(report, name).blocked}


def inferred(x, w):
    a = x * 2
    b = x.sum(0)
    c = x.sum(1)
    d = x.T
    e = x.reshape(16, 8)
    h = x @ w
    return a, b, c, d, e, h


@pytest.fixture(scope="module")
def six():
    return report_of(
        inferred, f32(8, 16), f32(16, 32), specs=[P("data", "model"), P("model", None)]
    )


@pytest.mark.parametrize(
    ("name", "spec", "op", "lost"),
    [
        ("a", (("data",), ("model",)), "mul", set()),
        ("b", (("model",),), "reduce_sum", {("data", "x", "reduction")}),
        ("c", (("data",),), "reduce_sum", {("model", "x", "reduction")}),
        ("d", (("model",), ("data",)), "transpose", set()),
        ("e", (("data",), ()), "reshape", {("model", "x", "reshape")}),
        ("h", (("data",), ()), "dot_general", {("model", "x", "reduction")}),
    ],
)
def test_sharding_by_inference(six, name, spec, op, lost):
    value = one(six, name)
    assert value.spec == spec
    assert value.propagated is None
    axes = [axis for dim in spec for axis in dim]
    assert came_from(six, name) == {axis: ("input", "x", [(op, "forward")]) for axis in axes}
    assert stopped(six, name) == lost
    assert six.source.line(value.location.line).strip().startswith(f"{name} = ")


def test_a_constraint_is_an_origin_and_travels_backward():
    def fn(x, w):
        h = x @ w
        y = jnp.tanh(h)
        z = lax.with_sharding_constraint(y, P(None, "model"))
        return z.sum(0)

    report = report_of(fn, f32(256, 512), f32(512, 64), specs=[P("data", "model"), P("model")])
    stated = ("constraint", "P(None, 'model')")
    assert came_from(report, "h") == {
        "data": ("input", "x", [("dot_general", "forward")]),
        "model": (*stated, [("tanh", "backward")]),
    }
    assert came_from(report, "y") == {"model": (*stated, [])}
    assert stopped(report, "y") == {("data", "h", "constraint")}
    origin = one(report, "z").origins[0]
    assert "with_sharding_constraint" in report.source.line(origin.location.line)
    (last,) = (value for value in report.values if value.name.startswith("reduce_sum at line"))
    assert last.spec == (("model",),)


def test_an_output_spec_travels_backward():
    def fn(x):
        a = x * 2
        b = a.T
        return b.reshape(4, 2, 8)

    report = report_of(fn, f32(8, 8), out=P("data"))
    assert one(report, "a").spec == ((), ("data",))
    way = [("reshape", "backward"), ("transpose", "backward")]
    assert came_from(report, "a") == {"data": ("output", "result", way)}
    assert came_from(report, "b") == {"data": ("output", "result", way[:1])}


def test_an_axis_goes_sideways_to_another_operand():
    def fn(a, b):
        h = jnp.tanh(b)
        y = h + a
        return y

    report = report_of(fn, f32(8, 8), f32(8, 8), specs=[P("data"), None])
    assert came_from(report, "h") == {"data": ("input", "a", [("add", "sideways")])}
    assert came_from(report, "y") == {"data": ("input", "a", [("add", "forward")])}


def test_operands_in_conflict():
    def fn(a, b):
        h = a + b
        return h

    report = report_of(fn, f32(8, 8), f32(8, 8), specs=[P("data"), P("model")])
    assert one(report, "h").spec == ((), ())
    assert stopped(report, "h") == {("data", "a", "conflict"), ("model", "b", "conflict")}


def test_an_axis_that_another_dimension_has_is_in_conflict():
    def fn(a, b):
        h = a @ b
        return h

    report = report_of(fn, f32(8, 8), f32(8, 8), mesh="data=8", specs=[P("data"), P(None, "data")])
    assert came_from(report, "h") == {"data": ("input", "a", [("dot_general", "forward")])}
    assert stopped(report, "h") == {("data", "b", "conflict")}


def test_an_op_of_the_compilers_own_hands_its_batch_on():
    def fn(x):
        best = lax.top_k(x, 2)[0]
        return best * 2

    report = report_of(fn, f32(8, 16), specs=[P("data", "model")])
    assert came_from(report, "best") == {"data": ("input", "x", [("top_k", "forward")])}
    assert stopped(report, "best") == {("model", "x", "whole-axis")}


def looped(x, ws):
    def body(c, w):
        k = c @ w
        n = jnp.tanh(k)
        return n, None

    y = lax.scan(body, x, ws)[0]
    z = y * 3
    return z


def test_a_loop_hands_its_carry_on():
    report = report_of(looped, f32(8, 8), f32(3, 8, 8), specs=[P("data"), None])
    # JAX keeps traces of its own functions: their lines may be those of an earlier program.
    named = {v.name: v.spec for v in report.values if v.name in "yzkn"}
    assert named == dict.fromkeys("yzkn", (("data",), ()))
    if OLD_JAX:
        assert came_from(report, "k") == {"data": ("input", "x", [])}
        assert one(report, "k").origins[0].steps is None
        assert "loop" in report.notes[0]
        assert "through which ops is unknown" in report.why("k")
    else:
        assert came_from(report, "y") == {"data": ("input", "x", [("loop", "forward")])}
        back = [("loop", "sideways"), ("tanh", "backward")]
        assert came_from(report, "k") == {"data": ("input", "x", back)}


def test_inside_a_shard_map_a_value_is_one_devices():
    mesh = make_grid("data=4,model=2").mesh

    def fn(x):
        w = x + 1

        def body(a):
            s = a * 2
            t = lax.psum(s, "data")
            return t

        y = jax.shard_map(body, mesh=mesh, in_specs=P("data"), out_specs=P(), axis_names={"data"})(
            w
        )
        v = y * 3
        return v

    report = report_of(fn, f32(8, 8))
    assert came_from(report, "w") == {"data": ("shard_map", "", [])}
    assert "shard_map" in report.source.line(one(report, "w").origins[0].location.line)
    inner = one(report, "s")
    assert (inner.manual, inner.shape, inner.spec) == (("data",), (2, 8), ((), ()))
    assert one(report, "t").manual == ("data",)
    assert one(report, "v").manual == ()
    # s is x's block of each device of data; its psum is the same on all of them.
    assert (inner.varying, one(report, "t").varying) == (("data",), ())
    assert report.why("s").endswith("inside a shard_map over data: it varies over data")
    assert report.why("t").endswith("inside a shard_map over data: it is the same along data")


def partial_sums(**options):
    mesh = make_grid("data=4,model=2").mesh
    specs = {"in_specs": (P("data", "model"), P("model")), "out_specs": P("data")}

    def fn(x, w):
        def body(x, w):
            part = x @ w
            total = lax.psum(part, "model")
            return total

        return jax.shard_map(body, mesh=mesh, **specs, **options)(x, w)

    return report_of(fn, f32(8, 16), f32(16, 8), specs=list(specs["in_specs"]))


def test_each_device_has_its_own_partial_sum_inside_a_shard_map():
    report = partial_sums()
    part, total = one(report, "part"), one(report, "total")
    assert (part.varying, total.varying) == (("data", "model"), ("data",))
    assert report.why("part").startswith("part is f32[2, 8]{V:(data,model)} at line ")
    assert report.why("part").endswith(
        "one device's part inside a shard_map over data, model: it varies over data and model"
    )
    assert report.why("total").endswith("it varies over data, it is the same along model")
    # 8 devices: no two hold the same partial sum, and the 2 along model hold the same total.
    assert copies(part, report.mesh) == ""
    assert copies(total, report.mesh) == "replicated over model (x2)"


def test_what_a_line_uses_up_itself_is_not_the_value_that_it_makes():
    mesh = make_grid("data=8").mesh

    def fn(x):
        def body(x):
            mean = lax.pmean(x.mean(0), "data")
            return mean

        return jax.shard_map(body, mesh=mesh, in_specs=P("data"), out_specs=P())(x)

    # Two divisions of f32[8]: by the rows of a block, then by the devices.
    report = report_of(fn, f32(64, 8), mesh="data=8", specs=[P("data")])
    assert (one(report, "mean").op, one(report, "mean").varying) == ("div", ())


def test_without_check_vma_it_is_not_known_what_varies():
    report = partial_sums(check_vma=False)
    assert one(report, "part").varying is None
    assert report.why("part").endswith("whether it varies over data and model is unknown")
    assert copies(one(report, "part"), report.mesh) == ""


@pytest.mark.parametrize("axes", ["manual", "explicit"])
def test_a_per_device_body_is_one_devices_where_nothing_propagates(axes):
    mesh = make_grid("data=4", axes).mesh if axes == "explicit" else None

    def body(x):
        h = x * 2
        return lax.psum(h, "data")

    def mapped(x):
        return jax.shard_map(body, mesh=mesh, in_specs=P("data"), out_specs=P())(x)

    if axes == "manual":
        report = report_of(body, f32(8, 8), mesh="data=4", axes=axes, specs=[P("data")], out=P())
    else:
        report = report_of(mapped, f32(8, 8), mesh="data=4", axes=axes, specs=[P("data")])
    value = one(report, "h")
    assert (value.shape, value.manual, value.origins) == ((2, 8), ("data",), ())


def test_nothing_goes_to_the_kernels_stderr(capfd):
    report_of(looped, f32(8, 8), f32(3, 8, 8), specs=[P("data"), None])
    assert capfd.readouterr() == ("", "")


def test_a_constraint_that_repeats_an_inputs_placement_is_the_inputs():
    def fn(x):
        y = lax.with_sharding_constraint(x, P("data"))
        z = y * 2
        return z

    report = report_of(fn, f32(8, 8), specs=[P("data")])
    assert came_from(report, "z") == {"data": ("input", "x", [("mul", "forward")])}


def layer(x, w):
    h = x @ w
    h = jax.nn.gelu(h)
    return h


def train(ws, x):
    def body(c, w):
        c = jax.checkpoint(layer)(c, w)
        return c, c.mean()

    def loss(ws):
        y, means = lax.scan(body, x, ws)
        s = lax.switch(1, [lambda v: v * 2, jnp.sin, lambda v: v], y)
        total = (s**2).mean() + means.sum()
        return total

    value, gradient = jax.value_and_grad(loss)(ws)
    new = ws - 0.1 * gradient
    return value, new


def test_a_training_step_is_explained_as_the_compiler_placed_it():
    given = [P(None, None, "model"), P("data")]
    report = report_of(train, f32(3, 8, 8), f32(8, 8), specs=given)
    names = {value.name for value in report.values}
    assert {"h", "s", "total", "new"} <= names
    assert all(value.propagated is None for value in report.values)
    origins = [origin for value in report.values for origin in value.origins]
    assert {(o.axis, o.kind, o.name) for o in origins} == {
        ("model", "input", "ws"),
        ("data", "input", "x"),
    }


def test_an_explicit_type_is_its_own_reason():
    def fn(a, b):
        h = jnp.einsum("ij,jk->ik", a, b, out_sharding=P("data", None))
        y = h * 2
        return y

    given = [P("data", "model"), P("model", None)]
    report = report_of(fn, f32(8, 16), f32(16, 8), axes="explicit", specs=given)
    for name in ("h", "y"):
        assert one(report, name).spec == (("data",), ())
        assert came_from(report, name) == {"data": ("type", "", [])}
    assert "it is in its type" in report.why("h")


def test_a_part_of_an_axis():
    def fn(x):
        y = x.reshape(4, 4)
        z = y * 2
        return z

    report = report_of(fn, f32(16), mesh="data=8", specs=[P("data")])
    assert one(report, "y").spec == (("data:(1)4",), ("data:(4)2",))
    way = [("reshape", "forward"), ("mul", "forward")]
    assert came_from(report, "z") == {
        "data:(1)4": ("input", "x", way),
        "data:(4)2": ("input", "x", way),
    }


def test_a_closed_over_array_keeps_the_names_of_the_others():
    table = jnp.ones((8, 8))

    def fn(x, y):
        h = y * table
        return h, x + 1

    report = report_of(fn, f32(8, 8), f32(8, 8), specs=[None, P("data")])
    assert came_from(report, "h") == {"data": ("input", "y", [("mul", "forward")])}


def test_a_statement_that_runs_again_has_its_name_again():
    def fn(x, ws):
        for i in range(2):
            h = x @ ws[i]
            x = x + h
        return x

    report = report_of(fn, f32(8, 8), f32(2, 8, 8), specs=[P("data"), None])
    assert [value.name for value in report.values] == ["h", "x", "h", "x"]


def test_a_value_of_a_gradient_is_not_taken_for_the_statements():
    def loss(w, x):
        h = jnp.tanh(x @ w)
        return h.sum()

    def fn(w, x):
        return jax.grad(loss)(w, x)

    report = report_of(fn, f32(8, 8), f32(8, 8), specs=[None, P("data")])
    assert all(value.op == "tanh" for value in report.values if value.name == "h")


def test_what_is_not_one_array_is_called_by_its_op():
    def fn(x):
        pair = x * 2, x + 1
        both = {"a": jnp.sin(x)}
        alike = dict(a=jnp.exp(x), b=jnp.exp(x + 1))  # noqa: C408 - a call, which has a name
        first, second = jnp.cos(x), -x
        return pair, both, alike, first, second

    report = report_of(fn, f32(8, 8), specs=[P("data")])
    assert {value.op for value in report.values} == {"mul", "add", "sin", "exp", "cos", "neg"}
    assert all(value.name.startswith(f"{value.op} at line ") for value in report.values)


def test_a_lambdas_values_do_not_get_the_name_of_its_statement():
    def fn(x):
        y = lax.cond(x[0, 0] > 0, lambda a: a * 2, lambda a: a + 1, x)
        return y

    report = report_of(fn, f32(8, 8), specs=[P("data")])
    assert one(report, "y").op == "cond"


def test_the_compiled_program_is_trusted():
    spec, given = (("data",), ()), (("model",), ())
    value = Value("h", "f32", (8, 8), spec, (2, 8), propagated=given)
    report = replace(report_of(looped, f32(8, 8), f32(3, 8, 8)), values=(value,))
    assert report.why("h").endswith(
        "Shardy chose P('model'), but the compiled program has P('data'), which counts"
    )


def test_why_in_words(six):
    line = one(six, "h").location.line
    assert six.why("h") == (
        f"h is f32[8@data, 32] at line {line}: data came from x, forward through dot_general "
        f"at line {line}; model of x was not kept: dimension 1 of x is contracted, so each device "
        "holds a partial sum"
    )
    assert six.why(line=line) == six.why("h")
    assert six.why("x") == "x is f32[8@data, 16@model]: an input with this sharding"
    assert len(six.why().splitlines()) == len(six.values)


def test_why_names_another_source(six):
    value = replace(one(six, "h"), location=Location(1, 7), origins=())
    report = replace(six, values=(value,), sources=(*six.sources, Source("Cell In[1]")))
    assert report.why("h").startswith("h is f32[8@data, 32] at line 7 of Cell In[1]")


def test_why_of_an_unknown_name_says_which_there_are(six):
    with pytest.raises(KeyError, match="no value 'hh'; it has h"):
        six.why("hh")
    with pytest.raises(KeyError, match="at line 1; lines with values"):
        six.why(line=1)


def test_the_round_trip_of_a_report_with_reasons(six):
    assert Report.from_json(six.to_json()) == six


def test_a_chain_goes_on_from_value_to_value():
    def fn(x):
        a = x * 2
        b = a.T
        c = jnp.tanh(b)
        return c

    report = report_of(fn, f32(8, 8), specs=[P("data")])
    last = one(report, "c").origins[0]
    assert (len(last.steps), report.values[last.after].name) == (1, "b")
    steps = chain(report, report.values.index(one(report, "c")), "data")
    assert [(step.source, step.target) for step in steps] == [("x", "a"), ("a", "b"), ("b", "c")]
    assert steps[0].location == Location(
        0, one(report, "a").location.line, steps[0].location.function
    )


def test_many_values_are_cut_with_a_note(monkeypatch):
    monkeypatch.setattr(propagation.values, "VALUE_LIMIT", 2)
    report = report_of(inferred, f32(8, 16), f32(16, 32))
    assert len(report.values) == 2
    assert report.notes == ("of 6 values of these lines, the first 2 are kept",)


def test_a_large_program_is_not_propagated_again(monkeypatch):
    monkeypatch.setattr(propagation.values, "SIZE_LIMIT", 10)
    report = report_of(inferred, f32(8, 16), f32(16, 32), specs=[P("data"), None])
    assert one(report, "a").spec == (("data",), ())
    assert came_from(report, "a") == {"data": ("unknown", "", [])}
    assert "in such a large program" in report.notes[0]


def test_statements_of_a_cell():
    text = textwrap.dedent("""\
        %%shard --mesh data=4 \\
           x=P('data')
        h = (x
             @ w)
        %time
        a, b = h, h
        g = [h * i for i in range(3)]
        f = lambda x: x
        while (y := h) is None:
            h += 1
        with open("f"):
            k: int = 3
        """)
    found = {
        line: (one.first, one.last, one.name, one.repeats)
        for line, (one,) in statements(text).items()
    }
    assert found == {
        3: (3, 4, "h", False),
        4: (3, 4, "h", False),
        6: (6, 6, None, False),
        7: (7, 7, None, True),
        8: (8, 8, None, False),
        9: (9, 9, None, False),
        10: (10, 10, "h", True),
        11: (11, 11, None, False),
        12: (12, 12, "k", False),
    }


def test_statements_of_one_line_are_told_apart_by_their_columns():
    text = "    a = x; b = é; c = a\n    for a in b: a += 1; b = 2"
    by_line = statements(text, first_line=7)
    names = {
        (line, column): getattr(statement_at(by_line[line], line, column), "name", "no statement")
        for line, column in [(7, 8), (7, 15), (7, 21), (7, 9), (7, -1), (8, 13), (8, 16), (8, 24)]
    }
    # An é is two bytes.
    assert names == {
        (7, 8): "a",
        (7, 15): "b",
        (7, 21): "c",
        (7, 9): "no statement",
        (7, -1): "no statement",
        (8, 13): None,
        (8, 16): "a",
        (8, 24): "b",
    }


def test_statements_of_what_is_no_python():
    assert statements("h = (") == {}
    assert statements("") == {}


def test_a_source_is_numbered_from_its_first_line():
    assert list(statements("    h = 1\n", first_line=30)) == [30]
    assert Source("c", "h = 1").line(1) == "h = 1"
