"""`%%shard` in a shell: what it compiles, what it runs, and what the names hold after it."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

MESH = "%mesh data=4,model=2"
ARRAYS = """
x = jnp.arange(16 * 8, dtype=jnp.float32).reshape(16, 8)
W = jnp.ones((8, 4))
host = np.ones(3)
"""


@pytest.fixture
def cell(ip, run):
    run(MESH)
    run(ARRAYS)
    return run


def session(ip):
    return ip.magics_manager.registry["ShardMagics"].session


def last(ip):
    return session(ip).last


def kinds(report):
    return [c.kind for c in report.collectives]


# What is compiled, and what it gives


def test_a_cell_runs_on_the_mesh(ip, cell):
    cell("%%shard x=P('data', 'model') W=P('model')\ny = x @ W")
    y = ip.user_ns["y"]
    np.testing.assert_allclose(y, ip.user_ns["x"] @ ip.user_ns["W"])
    assert len(y.sharding.device_set) == 8
    assert kinds(last(ip)) == ["all-reduce"]


def test_the_report_is_displayed_once(cell):
    shown = cell("%%shard x=P('data')\ny = x * 2")
    assert len(shown.reports) == 1
    assert len(shown.data) == 1


def test_the_lines_are_those_of_the_cell(ip, cell):
    cell("%%shard x=P('data', 'model') W=P('model')\n\n# a comment\ny = (x\n     @ W)")
    (collective,) = last(ip).collectives
    assert collective.line in (4, 5)
    assert last(ip).source.text.splitlines()[3] == "y = (x"


def test_blank_lines_above_the_magic_count(ip, cell):
    cell("\n\n%%shard x=P('data', 'model') W=P('model')\ny = x @ W")
    assert last(ip).collectives[0].line == 4


def test_a_function_of_another_cell_is_a_second_source(ip, cell):
    cell("def f(v):\n    return v @ W")
    cell("%%shard x=P('data', 'model') W=P('model')\ny = f(x)")
    (collective,) = last(ip).collectives
    assert [(frame.source, frame.line, frame.function) for frame in collective.frames] == [
        (1, 2, "f"),
        (0, 2, "<module>"),
    ]
    assert last(ip).sources[1].text.startswith("def f(v):")


def test_cells_that_are_not_reached_are_no_sources(ip, cell):
    cell("def g(v): return v")
    cell("%%shard x=P('data', 'model') W=P('model')\ny = x @ W")
    assert len(last(ip).sources) == 1


def test_inputs_and_outputs_have_the_names_of_the_notebook(ip, cell):
    cell("params = {'w': W, 'n': 3}")
    cell("%%shard x=P('data')\ny = {'a': x @ params['w'] * params['n']}")
    assert [value.name for value in last(ip).inputs] == ["x", "params['w']"]
    assert [value.name for value in last(ip).outputs] == ["y['a']"]


def test_a_name_that_only_a_function_of_the_cell_reads_is_an_input(ip, cell):
    cell("%%shard\ndef f(v): return v @ W\ny = f(x)")
    assert {value.name for value in last(ip).inputs} == {"x", "W"}


def test_running_a_cell_again_does_not_make_its_results_inputs(ip, cell):
    for _ in range(2):
        cell("%%shard x=P('data')\nh = x * 2\ny = h + 1")
    assert [value.name for value in last(ip).inputs] == ["x"]


def test_the_placement_of_an_output_can_be_stated(ip, cell):
    cell("%%shard x=P('data') --out y=P('data', 'model')\ny = x * 2\nz = x * 3")
    assert ip.user_ns["y"].sharding.spec == P("data", "model")
    assert ip.user_ns["z"].shape == (16, 8)


def test_the_placement_of_the_last_expression_can_be_stated(ip, cell):
    shown = cell("%%shard x=P('data') --out Out=P('data', 'model')\nx * 2")
    assert shown.result.result.sharding.spec == P("data", "model")


def test_an_input_under_another_name_can_be_placed(ip, cell):
    cell("%%shard x=P('data') --out y=P(None, 'model')\ny = x")
    assert ip.user_ns["y"].sharding.spec == P(None, "model")
    assert len(ip.user_ns["x"].sharding.device_set) == 1


def test_a_part_of_a_pytree_has_a_spec_of_its_own(ip, cell):
    cell("layers = [{'w': jnp.ones((8, 8)), 'b': jnp.ones(8)} for _ in range(2)]")
    body = "h = x\nfor layer in layers:\n    h = h @ layer['w'] + layer['b']"
    cell(f"%%shard layers=P('model') layers[*]['w']=P(None, 'model') layers[1]['b']=P()\n{body}")
    specs = {value.name: value.spec for value in last(ip).inputs}
    column, shard = ((), ("model",)), (("model",),)
    assert {name: spec for name, spec in specs.items() if name != "x"} == {
        "layers[0]['b']": shard,
        "layers[0]['w']": column,
        "layers[1]['b']": ((),),
        "layers[1]['w']": column,
    }


def test_arrays_without_a_spec_keep_their_sharding_beside_a_part_that_has_one(ip, cell):
    cell("both = {'x': x, 'W': W}")
    cell("%%shard both['x']=P('data')\ny = both['x'] @ both['W']")
    specs = {value.name: value.spec for value in last(ip).inputs}
    assert specs == {"both['x']": (("data",), ()), "both['W']": ((), ())}


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("both['y']=P()", "the spec of both['y']: both has no array there; it has both['x'], for"),
        ("both['x']=3", "expected a spec for both['x'] such as P('data'), got the int 3"),
        ("none.x=P()", "none is not defined"),
    ],
)
def test_the_spec_of_no_part_is_refused(ip, cell, line, says):
    cell("both = {'x': x, 'W': W}")
    assert says in cell(f"%%shard {line}\ny = both['x'] * 2", fails=True).err


def test_a_pytree_prefix_is_a_spec(ip, cell):
    cell("params = {'w': W, 'b': W[0]}")
    cell("%%shard x=P('data') params={'w': P('model'), 'b': None}\ny = x @ params['w']")
    specs = {value.name: value.spec for value in last(ip).inputs}
    assert specs["params['w']"] == (("model",), ())
    assert specs["params['b']"] == ((),)


def test_p_means_a_partition_spec_whatever_the_notebook_calls_p(ip, cell):
    cell("P = np.ones((4, 8), np.float32)")
    cell("%%shard x=P('data') P=P(None, 'model')\ny = P @ x.T")
    assert ip.user_ns["y"].shape == (4, 16)


# What the names hold


def test_what_is_no_array_is_bound_as_in_any_cell(ip, cell):
    cell("%%shard\nimport math as m\nn = 3\ndef f(v): return v * n\nclass A: pass\ny = f(x)")
    space = ip.user_ns
    assert (space["n"], space["m"].pi > 3, space["f"](2), space["A"].__name__) == (3, True, 6, "A")


def test_the_last_expression_shows(cell):
    shown = cell("%%shard\nx.sum()")
    assert float(shown.result.result) == np.arange(128).sum()


def test_a_semicolon_silences_the_last_expression(cell):
    assert cell("%%shard\nx.sum();").result.result is None


def test_a_statement_at_the_end_shows_nothing(cell):
    assert cell("%%shard\ny = x.sum()").result.result is None


def test_an_input_that_is_not_touched_stays_the_users_object(ip, cell):
    x = ip.user_ns["x"]
    cell("%%shard x=P('data')\ny = x * 2\nsame = x")
    assert ip.user_ns["x"] is x
    assert ip.user_ns["same"] is x


def test_options_go_over_lines_that_end_in_a_backslash(ip, cell):
    cell("%%shard x=P('data', 'model') \\\n  W=P('model') \\\n  --no-run\ny = 1\nz = x @ W")
    assert [value.spec for value in last(ip).inputs] == [(("data",), ("model",)), (("model",), ())]
    assert [one.frames[0].line for one in last(ip).collectives] == [5]
    assert last(ip).sources[0].text.splitlines()[4] == "z = x @ W"
    assert "z" not in ip.user_ns


def test_two_names_of_one_result_are_one_array(ip, cell):
    cell("%%shard\na = b = x * 2")
    assert ip.user_ns["a"] is ip.user_ns["b"]


def test_a_dictionary_that_the_cell_changes_is_changed_in_place(ip, cell):
    cell("params = {'w': W, 'b': W[0], 'n': 1}\nalias, b = params, params['b']")
    cell("%%shard\nparams['w'] = params['w'] * 2\nparams['n'] += 1")
    alias = ip.user_ns["alias"]
    assert alias is ip.user_ns["params"]
    assert list(alias) == ["w", "b", "n"]
    assert alias["n"] == 2
    np.testing.assert_array_equal(alias["w"], 2 * ip.user_ns["W"])
    assert alias["b"] is ip.user_ns["b"]


def test_a_list_that_was_empty_gets_the_results(ip, cell):
    cell("losses = []\nalias = losses")
    cell("%%shard\nlosses.append(x.sum())\nlosses.append('done')")
    assert [float(ip.user_ns["alias"][0]), ip.user_ns["alias"][1]] == [8128.0, "done"]


def test_a_container_under_two_names_stays_one(ip, cell):
    cell("params = {'w': W}\nstate = [params]")
    cell("%%shard\nstate[0]['w'] = params['w'] + 1")
    assert ip.user_ns["state"][0] is ip.user_ns["params"]
    assert float(ip.user_ns["params"]["w"][0, 0]) == 2


def test_a_function_of_the_notebook_may_change_its_dictionary(ip, cell):
    cell("params = {'w': W}\ndef step(): params['w'] = params['w'] + 1")
    cell("%%shard\nstep()")
    assert float(ip.user_ns["params"]["w"][0, 0]) == 2


def test_a_function_of_the_notebook_may_assign_a_global(ip, cell):
    cell(
        "total = np.zeros(8, np.float32)\ndef add(v):\n    global total\n    total = total + v.sum(0)"
    )
    cell("%%shard\nadd(x)")
    np.testing.assert_allclose(ip.user_ns["total"], ip.user_ns["x"].sum(0))


def test_del_unbinds(ip, cell):
    cell("%%shard\ny = x + W.sum()\ndel W")
    assert "W" not in ip.user_ns


def test_what_is_assigned_on_one_path_only(ip, cell):
    cell("%%shard\nif x.shape[0] > 3:\n    big = x * 2\nelse:\n    small = x")
    assert "big" in ip.user_ns
    assert "small" not in ip.user_ns


@pytest.mark.parametrize(
    "body",
    [
        "if (n := x.sum()) is not None: y = n",
        "for v in [x, x]: y = v.sum()",
        "with jax.named_scope('a') as s: y = x.sum()",
        "try:\n    raise ValueError\nexcept ValueError as e:\n    y = x.sum()",
        "from math import *\ny = x.sum() * floor(1.5)",
        "y, *_ = x.sum(), 2",
        "class A:\n    v = x.sum()\ny = A.v * 1",
        "y = [a for a in (x, x)][0].sum()",
        "def f():\n    global y\n    y = x.sum()\nf()",
        "y = (lambda a: a.sum())(x)",
        "globals()['y'] = x.sum()",
    ],
)
def test_ways_to_assign(ip, cell, body):
    cell(f"%%shard x=P('data')\n{body}")
    assert float(ip.user_ns["y"]) == 8128.0


# Effects


def test_the_body_is_executed_once(ip, cell):
    cell("calls = [0]\nclass Count:\n    n = 0")
    shown = cell("%%shard x=P('data')\nprint('once')\nCount.n += 1\ny = x * 2")
    assert shown.out.count("once") == 1
    assert ip.user_ns["Count"].n == 1


def test_compiling_alone_changes_no_name_and_prints_nothing(ip, cell):
    shown = cell("%%shard --no-run x=P('data')\nprint('hello')\nn = 3\ny = x * 2\ny")
    assert (shown.out, shown.err, shown.result.result) == ("", "", None)
    assert not {"n", "y"} & set(ip.user_ns)
    assert len(shown.reports) == 1


@pytest.mark.parametrize("options", ["--no-run", "--mesh data=2"])
def test_only_a_run_has_effects_on_objects(ip, cell, options):
    cell("from collections import deque\ncalls = deque()\nclass Count:\n    n = 0")
    cell(f"%%shard {options}\nCount.n += 1\ncalls.append('call')\ny = x * 2")
    expected = 0 if options == "--no-run" else 1
    assert (ip.user_ns["Count"].n, len(ip.user_ns["calls"])) == (expected, expected)


def test_compiling_alone_leaves_containers_alone(ip, cell):
    cell("params = {'w': W}\nlosses = []")
    cell("%%shard --no-run\nparams['w'] = params['w'] * 2\nlosses.append(x.sum())")
    assert ip.user_ns["params"]["w"] is ip.user_ns["W"]
    assert ip.user_ns["losses"] == []


def test_with_shapes_nothing_runs_and_the_next_cell_can_go_on(ip, cell):
    cell("s = jax.ShapeDtypeStruct((1 << 20, 1 << 20), jnp.float32)")
    shown = cell("%%shard s=P('data')\nprint('hello')\nt = s * 2\ndef f(v): return v.sum()")
    assert shown.out == ""
    assert ip.user_ns["t"].sharding.spec == P("data")
    cell("%%shard\nu = f(t)")
    assert ip.user_ns["u"].shape == ()
    assert kinds(last(ip)) == ["all-reduce"]


def test_a_mesh_that_would_hang_the_kernel_is_compiled_for_only(ip, cell):
    cell("v = np.ones(512, np.float32)")
    cell("%%shard --mesh data=512 v=P('data')\ntotal = v.sum()")
    assert "total" not in ip.user_ns
    (note,) = [note for note in last(ip).notes if note.startswith("nothing ran")]
    assert "the mesh has 512; a smaller mesh runs" in note


def test_nothing_of_the_kernel_changes(ip, cell):
    before = (jax.devices(), jax.sharding.get_mesh(), dict(jax.config.values))
    cell("%%shard x=P('data')\ny = x * 2")
    assert (jax.devices(), jax.sharding.get_mesh(), dict(jax.config.values)) == before


# Tracers


def holds_no_tracer(ip):
    assert not [n for n, v in ip.user_ns.items() if isinstance(v, jax.core.Tracer)]


def test_a_closure_over_a_traced_value_holds_the_result(ip, cell):
    cell("make = lambda a: (lambda v: v + a)")
    cell("%%shard\ng = make(x.sum())\ny = x * 2")
    assert float(ip.user_ns["g"](1)) == 8129.0


def test_an_object_that_is_no_pytree_holds_the_result(ip, cell):
    cell("class Trainer:\n    w = 0\n    def step(self, v): self.w = v.sum()\nt = Trainer()")
    cell("%%shard\nt.step(x)\ny = x * 2")
    assert float(ip.user_ns["t"].w) == 8128.0
    assert {value.name for value in last(ip).outputs} == {"y", "t.w"}


def test_arrays_of_an_object_that_is_no_pytree_are_closed_over_by_name(ip, cell):
    cell("class Layer: pass\nlayer = Layer()\nlayer.w = jnp.ones((8, 4))")
    cell("%%shard x=P('data')\ny = x @ layer.w")
    (closed,) = [value for value in last(ip).inputs if value.closed_over]
    assert closed.name == "layer.w"


# Types of axes


def test_explicit_axes_are_checked_in_the_cell(ip, cell):
    shown = cell("%%shard --axes explicit x=P('data')\nprint(jax.typeof(x))\ny = x * 2")
    assert "float32[16@data,8]" in shown.out
    assert [axis.type for axis in last(ip).mesh.axes] == ["explicit", "explicit"]


def test_over_manual_axes_the_cell_is_the_body_of_one_device(ip, cell):
    shown = cell(
        "%%shard --axes manual x=P('data', 'model') --out total=P()\n"
        "print(x.shape)\n"
        "total = jax.lax.psum(x.sum(), ('data', 'model'))"
    )
    assert "(4, 4)" in shown.out
    assert float(ip.user_ns["total"]) == 8128.0
    assert {c.asked_by for c in last(ip).collectives} == {"called"}


def test_over_manual_axes_a_missing_spec_names_the_outputs(cell):
    shown = cell("%%shard --axes manual x=P('data')\ny = x * 2\nn = 3\nx + 1", fails=True)
    assert "--out y=P(...) Out=P(...) (Out is the value of the last expression)" in shown.err


def test_over_manual_axes_what_is_thrown_away_needs_no_spec(ip, cell):
    cell("%%shard --axes manual x=P('data') --out y=P('data')\ny, _ = x * 2, x + 1")
    assert ip.user_ns["y"].shape == (16, 8)


def test_axes_of_two_types(ip, cell):
    cell(
        "%%shard --mesh data=4,model=2:manual x=P('data', 'model') W=P('model') --out y=P()\n"
        "y = jax.lax.psum(x @ W, 'model')"
    )
    np.testing.assert_allclose(ip.user_ns["y"], ip.user_ns["x"] @ ip.user_ns["W"])
    assert [axis.type for axis in last(ip).mesh.axes] == ["auto", "manual"]


# Options


def test_a_report_is_saved_under_a_name(ip, cell):
    cell("%%shard --save r\ny = x * 2")
    assert ip.user_ns["r"] is last(ip)


def test_a_forbidden_collective_is_an_error_behind_the_report_and_nothing_runs(ip, cell):
    shown = cell("%%shard --forbid inferred x=P(None, 'model') W=P('model')\ny = x @ W", fails=True)
    error = shown.result.error_in_exec
    assert type(error).__name__ == "ForbiddenCollectives"
    assert "all-reduce f32[16,4] over model at line 2" in str(error)
    assert len(shown.reports) == 1
    assert "y" not in ip.user_ns


def test_what_is_forbidden_and_not_there_does_no_harm(ip, cell):
    cell("%%shard --forbid all-gather,called x=P(None, 'model') W=P('model')\ny = x @ W")
    assert "y" in ip.user_ns


def test_a_brief_view_is_short_text_and_the_report_for_the_editor_and_the_panel(cell):
    shown = cell("%%shard --view brief x=P(None, 'model') W=P('model')\ny = x @ W")
    (data,) = shown.data
    assert "all-reduce" in data["text/plain"]
    assert "Memory" not in data["text/plain"]
    assert "text/html" not in data
    assert shown.reports[0]["view"] == "brief"


def test_no_view_shows_nothing(cell):
    assert cell("%%shard --view none\ny = x * 2").data == []


# Which mesh


def test_a_mesh_for_one_cell(ip, cell):
    cell("%%shard --mesh rows=2 x=P('rows')\ny = x * 2")
    assert last(ip).mesh.shape == {"rows": 2}
    cell("%%shard x=P('data')\nz = x * 2")
    assert last(ip).mesh.shape == {"data": 4, "model": 2}


def test_a_mesh_of_the_notebook_by_its_name(ip, cell):
    cell("m = jax.make_mesh((1,), ('one',), axis_types=(jax.sharding.AxisType.Auto,))")
    cell("%%shard --mesh m x=P('one')\ny = x * 2")
    assert last(ip).mesh.shape == {"one": 1}
    assert ip.user_ns["y"].sharding.mesh is ip.user_ns["m"]


def test_the_mesh_of_the_arguments_comes_before_the_notebooks(ip, cell):
    cell("%%shard --mesh rows=2 x=P('rows')\ny = x * 2")
    cell("%%shard\nz = y + 1")
    assert last(ip).mesh.shape == {"rows": 2}
    assert [value.spec for value in last(ip).inputs] == [(("rows",), ())]


def test_the_mesh_of_a_stated_sharding_counts(ip, cell):
    cell("%%shard --mesh rows=2 x=P('rows')\ny = x * 2")
    cell("%%shard x=NamedSharding(y.sharding.mesh, P('rows'))\nz = x + 1")
    assert last(ip).mesh.shape == {"rows": 2}


def test_the_types_of_the_notebooks_mesh_stay_for_arrays_on_it(ip, cell):
    cell("%%shard x=P('data')\ny = x * 2")
    cell("%mesh data=4,model=2 --axes manual")
    cell("%%shard y=P('data') --out z=P('data')\nz = y * y.shape[0]")
    assert float(ip.user_ns["z"][0, 1]) == 8.0


def test_the_mesh_of_set_mesh_is_the_last_resort(ip, run):
    run(ARRAYS + "m = jax.make_mesh((1,), ('one',), axis_types=(jax.sharding.AxisType.Auto,))")
    with jax.set_mesh(ip.user_ns["m"]):
        run("%%shard x=P('one')\ny = x * 2")
    assert last(ip).mesh.shape == {"one": 1}


def test_without_a_mesh_the_error_shows_the_form(run):
    run(ARRAYS)
    assert "run `%mesh data=4,model=2` first" in run("%%shard\ny = x * 2", fails=True).err


# Errors


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("%%shard z=P()\ny = x", "z is not defined"),
        ("%%shard X=P()\ny = x", "X is not defined; did you mean x?"),
        ("%%shard len=P()\ny = x * len([1])", "len is not defined"),
        ("%%shard W=P()\ny = x", "the cell does not read W; it reads x"),
        ("%%shard W=P()\ny = x @ w", "it reads x, and w, which is not defined"),
        ("%%shard y=P('data')\ny = x", "y is assigned by the cell, not read"),
        (
            "%%shard x=('data', None)\ny = x",
            "got the tuple ('data', None); did you mean P('data', None)?",
        ),
        ("%%shard x=P('dat')\ny = x", "the axes are data, model; did you mean 'data'?"),
        ("%%shard --mesh 8\ny = x", "got the int 8; did you mean data=8?"),
        ("%%shard x=Q()\ny = x", "the spec x=Q(): NameError: name 'Q' is not defined"),
        ("%%shard x=P('rows')\ny = x", "names the mesh axis 'rows'; the axes are data, model"),
        ("%%shard x=P('data',None,None)\ny = x", "has 3 entries, but x has 2 dimensions"),
        ("%%shard x=3\ny = x", "expected a spec for x such as P('data'), got the int 3"),
        ("%%shard --out z=P()\ny = x * 2", "--out names z; the cell's outputs are y"),
        ("%%shard --mesh 4x2\ny = x", "got '4x2': did you mean data=4,model=2?"),
        ("%%shard --mesh 4y\ny = x", "or the name of a Mesh, got '4y': SyntaxError"),
        ("%%shard x=data\ny = x", "name 'data' is not defined; did you mean x=P('data')?"),
        ("%%shard x=data, model\ny = x", "did you mean x=P('data', 'model')?"),
        ("%%shard x=P(data, None)\ny = x", "did you mean x=P('data', None)?"),
        ("%%shard x=P('data'),W=P()\ny = x", "put a blank between two specs, not a comma"),
        (
            "%%shard --mesh host\ny = x",
            "expected a mesh such as data=4,model=2, got the ndarray array([",
        ),
        ("%%shard --on moon\ny = x", "'moon' is not a target"),
        ("%%shard f(x)\ny = x", "'f(x)' is neither an option nor a spec"),
        ("%%shard\ny = x\n!ls -l", "line 3: `!ls -l` is not Python"),
        ("%%shard\ny = x\n%time 3", "line 3: `%time 3` is not Python"),
        ("%%shard\n\nx?", "line 3: `x?` is not Python"),
        ("%%shard\nfiles = !ls", "line 2: `files = !ls` is not Python"),
        ("%%shard\n%%time\ny = x", "line 2: `%%time` is not Python"),
        ("%%shard\ny = x\nawait y", "line 3: `await` outside a function"),
        ("%%shard\nreturn x", "line 2: `return` outside a function"),
    ],
)
def test_bad_input_is_an_error_of_one_line(cell, text, says):
    shown = cell(text, fails=True)
    assert shown.result.success is False
    assert shown.err.startswith("UsageError: ")
    assert shown.err.count("\n") == 1
    assert says in shown.err


def test_a_syntax_error_is_pythons_own_at_its_line(cell):
    shown = cell("%%shard x=P('data')\ny = x\nz = y +\n", fails=True)
    assert type(shown.result.error_in_exec) is SyntaxError
    assert shown.result.error_in_exec.lineno == 3
    assert "line 3" in shown.out
    assert "run_cell_magic" not in shown.out


def test_the_next_syntax_error_is_shown_as_ever(ip, cell):
    cell("%%shard\nz = y +\n", fails=True)
    assert "showsyntaxerror" not in vars(ip)


def test_an_error_in_the_cell_shows_the_users_frames_alone(ip, cell):
    cell("def f(v):\n    raise KeyError('boo')")
    shown = cell("%%shard x=P('data')\nhalf = x * 2\n\nf(half)", fails=True)
    assert "----> 4 f(half)" in shown.out
    assert "----> 2     raise KeyError('boo')" in shown.out
    assert "shardnb" not in shown.out
    assert "run_cell_magic" not in shown.out
    assert shown.out.count("KeyError") == 3  # the head, the line of f, the message


def test_an_error_of_jax_shows_no_frame_of_jax(cell):
    cell("def f(v):\n    return v @ v")
    shown = cell("%%shard x=P('data')\ny = jax.vmap(f)(x[None])", fails=True)
    assert "----> 2     return v @ v" in shown.out
    assert "jax/_src" not in shown.out
    assert shown.result.error_in_exec.__traceback__ is not None


def test_an_error_in_the_cell_leaves_no_name_behind(ip, cell):
    before = dict(ip.user_ns)
    cell("%%shard x=P('data')\nx = x * 2\nhalf = 1\nraise KeyError", fails=True)
    assert ip.user_ns["x"] is before["x"]
    assert "half" not in ip.user_ns
    holds_no_tracer(ip)


def test_an_interrupt_leaves_everything_as_it_was(ip, cell):
    x, mesh = ip.user_ns["x"], jax.sharding.get_mesh()
    shown = cell("%%shard x=P('data')\nx = x * 2\nhalf = x\nraise KeyboardInterrupt", fails=True)
    assert isinstance(shown.result.error_in_exec, KeyboardInterrupt)
    assert ip.user_ns["x"] is x
    assert "half" not in ip.user_ns
    assert jax.sharding.get_mesh() == mesh
    cell("%%shard x=P('data')\ny = x * 2")


def test_a_program_that_fails_to_run_has_shown_its_report(cell, monkeypatch):
    from shardnb import engine

    def fails(*_):
        raise RuntimeError("out of memory")

    monkeypatch.setattr(engine, "ran", fails)
    shown = cell("%%shard x=P('data')\ny = x * 2", fails=True)
    assert len(shown.reports) == 1
    assert isinstance(shown.result.error_in_exec, RuntimeError)


# %shard and %mesh


def test_a_call_is_explained_and_not_run(ip, cell):
    cell("def f(v, w, n=1):\n    print('traced')\n    return (v @ w) * n")
    shown = cell("%shard f(x, W, n=2) x=P('data', 'model') W=P('model')")
    assert shown.out == ""
    assert kinds(last(ip)) == ["all-reduce"]
    assert last(ip).collectives[0].line == 3
    assert last(ip).source.text.startswith("def f(v, w, n=1):")
    assert last(ip).title == "f(x, W, n=2)"


def test_a_call_in_the_middle_of_a_cell(ip, cell):
    cell("def f(v):\n    return v.sum()\n\n%shard f(x) x=P('data')\nn = 3")
    assert last(ip).collectives[0].line == 2
    assert ip.user_ns["n"] == 3


def test_an_error_in_a_call_is_shown_at_its_line(cell):
    cell("def f(v):\n    return v.nope")
    shown = cell("a = 1\n%shard f(x)", fails=True)
    assert "AttributeError" in shown.out
    assert "----> 2     return v.nope" in shown.out
    assert "magics/" not in shown.out


def test_the_last_report_is_shown_again(cell):
    cell("%%shard --view none x=P('data')\ny = x * 2")
    assert len(cell("%shard").reports) == 1
    assert cell("%shard --view brief").reports[0]["view"] == "brief"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("%shard", "there is no report yet"),
        ("%shard x=P()", "expected the call first"),
        ("%shard f(", "expected a call such as %shard f(x, W), got 'f('"),
        ("%shard f(x) --no-run", "there is no option --no-run"),
        ("%mesh data", "or the name of a Mesh, got 'data': NameError: name 'data' is not"),
        ("%mesh 8", "expected a mesh such as data=4,model=2, got the int 8; did you mean data=8?"),
        ("%mesh (4,2)", "got the tuple (4, 2); did you mean data=4,model=2?"),
        ("%mesh (4,'x')", "expected a mesh such as data=4,model=2, got the tuple (4, 'x')"),
        ("%mesh", "no mesh is set: run `%mesh data=4,model=2` first"),
        ("%mesh data:4", "got 'data:4': did you mean data=4?"),
        ("%mesh data:4, model:2", "got 'data:4, model:2': did you mean data=4,model=2?"),
        ("%mesh {'data': 4}", "got the dict {'data': 4}; did you mean data=4?"),
        ("%mesh ('data', 'model')", "got the tuple ('data', 'model')"),
        ("%mesh data=0", "the mesh axis 'data' has size 0"),
        ("%mesh data=4 --axes any", "'any' is not an axis type"),
    ],
)
def test_bad_lines(run, text, says):
    shown = run(text, fails=True)
    assert shown.err.startswith("UsageError: ")
    assert says in shown.err


def test_a_name_of_a_mesh_that_is_nearly_right(run):
    run("from shardnb.mesh import make_grid\nmesh = make_grid('c=2').mesh")
    assert "got 'mesg': did you mean mesh?" in run("%mesh mesg", fails=True).err


def test_a_spec_for_what_is_no_array(cell):
    cell("n = 3")
    shown = cell("%%shard n=P()\ny = x * n", fails=True)
    assert "expected arrays for the spec of n, but it holds none: its type is int" in shown.err


def test_the_mesh_is_shown(cell):
    assert cell("%mesh").out == "data=4 (auto), model=2 (auto): 8 emulated cpu devices\n"


def test_without_a_mesh_there_is_nothing_to_show(run):
    assert "no mesh is set" in run("%mesh", fails=True).err


def test_the_types_of_the_mesh_can_be_changed(cell):
    assert "data=4 (explicit)" in cell("%mesh --axes explicit").out
    assert "data=4 (explicit)" in cell("%mesh").out


def test_a_bad_mesh_leaves_the_mesh_as_it_was(cell):
    cell("%mesh data=0", fails=True)
    assert "data=4" in cell("%mesh").out


def test_loading_twice_is_loading_once(ip):
    matchers = len(ip.Completer.custom_matchers)
    ip.run_line_magic("load_ext", "shardnb")
    ip.run_line_magic("reload_ext", "shardnb")
    assert len(ip.Completer.custom_matchers) == matchers


def test_unloading_leaves_nothing(ip):
    ip.run_line_magic("unload_ext", "shardnb")
    assert ip.find_cell_magic("shard") is None
    assert ip.find_line_magic("mesh") is None
    ip.run_line_magic("load_ext", "shardnb")


def test_a_body_that_is_traced_once_more_has_no_further_effect(ip, cell, monkeypatch):
    from shardnb import engine

    def twice(request):
        program, report = compile_and_analyse(request)
        request.trace()
        return program, report

    compile_and_analyse = engine.compile_and_analyse
    monkeypatch.setattr(engine, "compile_and_analyse", twice)
    cell("class Count:\n    n = 0\nlosses = []")
    shown = cell("%%shard\nCount.n += 1\nlosses.append(x.sum())\nprint('once')\ny = x * 2")
    assert (shown.out, ip.user_ns["Count"].n, len(ip.user_ns["losses"])) == ("once\n", 1, 1)
    holds_no_tracer(ip)


@pytest.mark.parametrize(
    "call",
    [
        "sn.explain(f, v).mesh",
        "sn.explore(f, v).report.mesh",
        "sn.plan(f, v).plans[0].mesh",
    ],
)
def test_functions_take_the_mesh_of_the_notebook(run, ip, call):
    run("import shardnb as sn\nv = jax.ShapeDtypeStruct((8, 8), 'float32')\nf = lambda v: v + v")
    run("%mesh a=2,b=4")
    run(f"found = {call}")
    assert [(axis.name, axis.size) for axis in ip.user_ns["found"].axes] == [("a", 2), ("b", 4)]


def test_the_mesh_of_the_arguments_comes_before_that_of_the_notebook(run, ip):
    run("import shardnb as sn\n%mesh a=2,b=4")
    run("from shardnb.mesh import make_grid\nmesh = make_grid('c=2').mesh")
    run("spec = jax.sharding.NamedSharding(mesh, jax.P('c'))")
    run("v = jax.ShapeDtypeStruct((8, 8), 'float32', sharding=spec)")
    run("found = sn.explain(lambda v: v + v, v).mesh")
    assert [axis.name for axis in ip.user_ns["found"].axes] == ["c"]


def test_a_notebook_that_is_unloaded_has_no_mesh(run):
    run("import shardnb as sn\n%mesh a=2,b=4\n%unload_ext shardnb")
    with pytest.raises(ValueError, match="no mesh is given"):
        run("sn.explain(lambda: jnp.ones(8))")
    run("%load_ext shardnb")
