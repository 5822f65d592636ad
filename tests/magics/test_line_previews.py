"""Previews of an edited `%%shard` line: what a compile of that line gives, and nothing else."""

from __future__ import annotations

import gc
import json
import threading
import weakref

import jax
import pytest
from IPython.utils.capture import capture_output

from shardnb.compiler import shardy_passes
from shardnb.jax_compat.process_lock import names_traced
from shardnb.magics import compiled_cell, preview_channel
from shardnb.magics.specs import NeedsRun, plain_value
from shardnb.mesh import make_grid
from shardnb.report import Report
from shardnb.report.spec import type_text

LINE = "x=P('data', 'model') W=P('model')"
BODY = "h = x @ W\ny = jnp.tanh(h)"


@pytest.fixture
def notebook(ip, run):
    run("%mesh data=4,model=2")
    run("x, W = jnp.ones((16, 8)), jnp.ones((8, 32))")
    return ip


@pytest.fixture
def magics(notebook):
    return notebook.magics_manager.registry["ShardMagics"]


@pytest.fixture
def compiled(notebook):
    """Run a `%%shard` cell with an id; give its report."""

    def compiled(line=LINE, body=BODY, cell="a", options="--view none"):
        with capture_output():
            code = f"%%shard {options} {line}\n{body}"
            notebook.run_cell(code, cell_id=cell).raise_error()
        return notebook.magics_manager.registry["ShardMagics"].session.last

    return compiled


@pytest.fixture
def ask(magics):
    """Ask what a line leads to; an answer is data that a front end reads as JSON."""

    def ask(line, body=BODY, cell="a"):
        answer = magics.session.previews.answer(cell, f"%%shard {line}\n{body}")
        assert json.loads(json.dumps(answer)).keys() == answer.keys()
        return answer

    return ask


def types(report: Report):
    """The types of a compiled report's named values at lines, by source, line and name."""
    return {
        (v.location.source, v.location.line, v.name): type_text(v)
        for v in (*report.outputs, *report.values)
        if v.location is not None and v.name.isidentifier()
    }


def previewed(answer):
    assert answer["kind"] == "preview", answer
    return {(source, line, name): text for source, line, name, text in answer["types"]}


# By hand: h is sharded as the rows of x and the columns of W; what they contract is summed.
@pytest.mark.parametrize(
    ("line", "h"),
    [
        ("x=P('data') W=P(None, 'model')", "f32[16@data, 32@model]"),
        ("x=P(None, 'model') W=P('model')", "f32[16, 32]"),
        ("x=P(('data', 'model'))", "f32[16@(data,model), 32]"),
        ("W=P(None, 'data')", "f32[16, 32@data]"),
        ("", "f32[16, 32]"),
        ("--mesh data=2,model=8 x=P('data') W=P(None, 'model')", "f32[16@data, 32@model]"),
        ("--mesh rows=2 x=P('rows')", "f32[16@rows, 32]"),
        ("x=P('model') --out h=P(None, 'data')", "f32[16@model, 32@data]"),
    ],
)
def test_a_preview_is_what_a_compile_gives(compiled, ask, line, h):
    compiled()
    found = previewed(ask(line))
    assert found[(0, 2, "h")] == h
    assert found == types(compiled(line))


PROGRAMS = {
    "embedding": ("e = E[t]\ns = jax.nn.softmax(e @ W)", "E=P('data') t=P(None, 'model')"),
    "loop": (
        (
            "def f(c, _):\n    c = jnp.tanh(c @ W) @ W.T\n    return c, c.sum()\n"
            "y, sums = jax.lax.scan(f, x, None, length=3)"
        ),
        "x=P(None, 'data') W=P(None, 'model')",
    ),
    "attention": (
        (
            "s = jnp.einsum('bqhd,bkhd->bhqk', q, q)\n"
            "o = jnp.einsum('bhqk,bkhd->bqhd', jax.nn.softmax(s), q)\nr = o.reshape(8, 16, 32)"
        ),
        "q=P('data', None, 'model')",
    ),
    "gradient": (
        (
            "def loss(W):\n    return (jnp.tanh(x @ W) ** 2).mean()\n"
            "l, g = jax.value_and_grad(loss)(W)\nW2 = W - g"
        ),
        "x=P('data') W=P(None, 'model')",
    ),
    "shapes": (
        (
            "a = jnp.concatenate([x, x * 2])\nc = jnp.sort(a, axis=0)\nd = jnp.cumsum(c, axis=1)\n"
            "e = d[::2]\nf = jnp.pad(e, 1)"
        ),
        "x=P('model', 'data')",
    ),
    "constraint": (
        "h = x @ W\nk = jax.lax.with_sharding_constraint(h, P('data', 'model'))\nm = k.T",
        "x=P('model') W=P('data')",
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_preview_of_programs_of_many_kinds_is_what_a_compile_gives(run, compiled, ask, name):
    run("P = jax.sharding.PartitionSpec\nE, t = jnp.ones((128, 8)), jnp.zeros((16, 8), jnp.int32)")
    run("q = jnp.ones((8, 16, 4, 8))")
    body, line = PROGRAMS[name]
    compiled("", body)
    assert previewed(ask(line, body)) == types(compiled(line, body))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x=P('data') --out y=P('data', 'model')", "x=P('data')"),
        ("x=P('data') --out y=P('data', 'model')", "x=P('data') --out y=P(None, 'model')"),
        ("x=P('data') --out y=P('data', 'model')", "--mesh rows=4 x=P('rows') --out y=P('rows')"),
        ("x=P('data')", "x=P('data') --out h=P('data', 'model')"),
    ],
)
def test_the_specs_of_outputs_count(compiled, ask, before, after):
    compiled(before)
    assert previewed(ask(after)) == types(compiled(after))


def test_a_pytree_takes_prefixes_of_specs(notebook, run, compiled, ask):
    run("p = {'W': W, 'b': jnp.ones(32)}")
    body = "q = x @ p['W'] + p['b']"
    compiled("x=P('data')", body)
    line = "x=P('data') p={'W': P(None, 'model'), 'b': P('model')}"
    assert previewed(ask(line, body)) == types(compiled(line, body))


def test_a_part_of_a_pytree_has_a_spec_of_its_own(notebook, run, compiled, ask):
    run("p = {'W': W, 'b': jnp.ones(32)}")
    body = "q = x @ p['W'] + p['b']"
    compiled("x=P('data')", body)
    line = "x=P('data') p['W']=P(None, 'model')"
    found = previewed(ask(line, body))
    assert found[(0, 2, "q")] == "f32[16@data, 32@model]"
    assert found == types(compiled(line, body))


def test_an_array_that_has_its_own_sharding_keeps_it(notebook, run, compiled, ask):
    """The first run leaves p sharded, which counts in the second one."""
    run("p = jnp.ones((16, 8))")
    body = "p = p + x"
    compiled("p=P('data') x=P('data')", body)
    assert previewed(ask("", body)) == {(0, 2, "p"): "f32[16@data, 8]"}
    assert types(compiled("", body)) == {(0, 2, "p"): "f32[16@data, 8]"}


def test_the_cell_of_a_called_function_has_types_too(run, notebook, compiled, ask):
    notebook.run_cell("def f(x):\n    g = x * 2\n    return g", cell_id="f").raise_error()
    body = "y = f(x)"
    report = compiled("x=P('data')", body)
    found = previewed(ask("x=P('model')", body))
    assert [source.cell_id for source in report.sources] == ["a", "f"]
    assert found[(1, 2, "g")] == "f32[16@model, 8]"


@pytest.mark.parametrize(
    "line",
    [
        LINE,
        "W=P('model')   x=P('data','model')",
        f"{LINE} --fix --view brief",
        "x=P('data', 'model') W=P('model', None)",
        f"--mesh data=4,model=2 {LINE}",
    ],
)
def test_a_line_that_states_the_compiled_program_is_known_as_such(compiled, ask, line):
    compiled()
    assert ask(line) == {"kind": "compiled"}


def test_a_line_may_go_on_below(compiled, magics):
    compiled()
    code = f"%%shard x=P('data') \\\n  W=P(None, 'model')\n{BODY}"
    assert magics.session.previews.answer("a", code)["kind"] == "preview"


@pytest.mark.parametrize("body", [BODY.replace("tanh", "sin"), f"{BODY}\nz = 1", "h = x @ W", ""])
def test_another_body_has_no_preview(compiled, ask, body):
    compiled()
    assert ask("x=P('data')", body) == {"kind": "unknown"}


def test_a_cell_that_was_not_compiled_here_has_no_preview(compiled, ask, magics):
    compiled()
    assert ask("x=P('data')", cell="b") == {"kind": "unknown"}
    assert magics.session.previews.answer("a", "x = 1") == {"kind": "unknown"}


def test_a_cell_whose_last_compile_failed_has_no_preview(notebook, compiled, ask):
    compiled()
    with capture_output():
        assert not notebook.run_cell(f"%%shard x=P('no')\n{BODY}", cell_id="a").success
    assert ask("x=P('data')") == {"kind": "unknown"}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("x=P('dat')", "did you mean 'data'?"),
        ("x=P('data', 'data')", "uses the mesh axis 'data' twice"),
        ("x=P('data', None, 'model')", "x has 2 dimensions"),
        ("x=P('data", "not a Python expression"),
        ("x=", "needs a spec"),
        ("x=data", "did you mean x=P('data')?"),
        ("w=P('data')", "did you mean W?"),
        ("y=P('data')", "assigned by the cell, not read"),
        ("--mesh data", "expected a mesh such as data=4,model=2"),
        ("--mesh data=0", "size 0"),
        ("--mesh data=3 x=P('data')", "is not divisible"),
        ("--mesh data=99999999999", "at most 2,048 devices"),
        ("--mehs data=4", "did you mean --mesh?"),
        ("--out y=P('data', 'data')", "uses the mesh axis 'data' twice"),
        ("nonsense", "neither an option nor a spec"),
    ],
)
def test_a_wrong_line_is_refused_with_the_reason(compiled, ask, line, said):
    compiled()
    answer = ask(line)
    assert answer["kind"] == "refused"
    assert said in answer["said"]
    assert ask("x=P('data')")["kind"] == "preview"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--axes explicit x=P('data')", "part of the types"),
        ("--mesh data=8:manual x=P('data')", "part of the types"),
        ("--compare auto,explicit", "--compare compiles other programs"),
        ("--watch", "--watch compiles other programs"),
        ("--on v5e:2x4", "for other devices the cell is compiled again"),
        ("x=spec()", "only known when the cell runs"),
        ("--out z=P()", "the compiled program has no output z"),
    ],
)
def test_a_line_that_needs_a_compile_says_so(run, compiled, ask, line, said):
    run("def spec():\n    raise AssertionError")
    compiled()
    answer = ask(line)
    assert (answer["kind"], said in answer["said"]) == ("none", True), answer


def test_a_cell_over_explicit_axes_says_why_it_has_no_preview(compiled, ask):
    compiled("--axes explicit x=P('data')")
    assert "part of the types" in ask("--axes explicit x=P('model')")["said"]


def test_a_numpy_array_is_an_input_or_a_constant(notebook, run, compiled, ask):
    run("n = np.ones((16, 8), np.float32)")
    body = "y = x + n"
    compiled("x=P('data')", body)
    assert "n was not an input" in ask("x=P('data') n=P('data')", body)["said"]
    compiled("x=P('data') n=P('data')", body)
    assert "without a spec, n is a constant" in ask("x=P('data')", body)["said"]
    assert ask("x=P('data') n=P()", body)["kind"] == "preview"


def test_one_array_of_several_names_is_placed_by_a_compile(notebook, run, compiled, ask):
    run("u = v = {'x': x}")
    body = "y = u['x'] + v['x']"
    compiled("u=P('data')", body)
    assert "several names" in ask("v=P('data')", body)["said"]
    assert ask("u=P('model')", body)["kind"] == "preview"


def test_an_input_that_is_another_array_now_needs_a_compile(notebook, run, compiled, ask):
    compiled()
    run("x = jnp.ones((32, 8))")
    assert "x has another shape or type" in ask("x=P('data')")["said"]
    run("x = 3")
    assert "x is not an array any more" in ask("W=P('data')")["said"]


def test_a_program_that_names_an_axis_itself_needs_it(notebook, run, compiled, ask):
    body = "y = jax.lax.with_sharding_constraint(x, jax.sharding.PartitionSpec('model'))"
    compiled("x=P('data')", body)
    assert "uses model" in ask("--mesh rows=4 x=P('rows')", body)["said"]
    line = "--mesh model=4 x=P('model')"
    assert previewed(ask(line, body)) == types(compiled(line, body))


def test_a_large_program_has_no_preview(monkeypatch, compiled, ask):
    monkeypatch.setattr(compiled_cell, "SIZE_LIMIT", 10)
    compiled()
    assert "the program is large" in ask("x=P('data')")["said"]


def test_nothing_of_the_users_runs(notebook, run, compiled, ask):
    run("calls = []\nclass Table:\n    def __getitem__(self, at):\n        calls.append(at)\n")
    run("table, specs = Table(), {'x': jax.sharding.PartitionSpec('data')}")
    compiled("x=specs['x']")
    before = dict(notebook.user_ns)
    for line in ("x=table['x']", "x=calls.append(1)", "x=[calls.append(1)][0]", "x=calls.copy()"):
        assert "only known when the cell runs" in ask(line)["said"]
    assert ask("x=specs['x'] W=jax.sharding.PartitionSpec(None, 'model')")["kind"] == "preview"
    assert notebook.user_ns["calls"] == []
    after = notebook.user_ns
    assert after.keys() == before.keys()
    assert all(after[name] is before[name] for name in before)


@pytest.mark.parametrize(
    "text", ["f()", "a.b", "(lambda: 1)()", "a + a", "P(**d)", "[x for x in a]", "{**d}", "P(*s)"]
)
def test_only_plain_expressions_have_values_without_running_code(text):
    names = {"P": jax.sharding.PartitionSpec, "f": print, "a": 1, "d": {}, "s": "xy"}
    with pytest.raises(NeedsRun):
        plain_value(text, names)


def test_no_devices_are_made_for_a_mesh_that_is_typed(monkeypatch, compiled, ask):
    compiled()
    monkeypatch.setattr("shardnb.mesh.targets.emulated_devices", pytest.fail)
    assert ask("--mesh data=2048")["kind"] == "preview"


def test_another_thread_knows_the_mesh_of_jax_set_mesh(ip, run, compiled, ask):
    ip.user_ns.pop("x", None)
    ip.magics_manager.registry["ShardMagics"].notebook_mesh.stated = None
    run("x = jnp.ones((16, 8))")
    mesh = make_grid("data=4,model=2").mesh
    answers = []
    with jax.set_mesh(mesh):
        compiled("x=P('data')", "y = x * 2")
        thread = threading.Thread(target=lambda: answers.append(ask("x=P('model')", "y = x * 2")))
        thread.start()
        thread.join()
    assert previewed(answers[0]) == {(0, 2, "y"): "f32[16@model, 8]"}
    compiled("--mesh data=4 x=P('data')", "y = x * 2")
    assert "no mesh is set" in ask("x=P('data')", "y = x * 2")["said"]


def test_a_trace_in_another_thread_is_not_waited_for(compiled, ask):
    compiled()
    begun, over = threading.Event(), threading.Event()

    def tracing():
        with names_traced():
            begun.set()
            over.wait(60)

    thread = threading.Thread(target=tracing)
    thread.start()
    begun.wait(60)
    assert ask("x=P('data')") == {"kind": "busy"}
    over.set()
    thread.join()
    assert ask("x=P('data')")["kind"] == "preview"


def test_an_interrupt_loses_nothing(monkeypatch, compiled, ask):
    compiled()
    before = ask("x=P('data')")

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(shardy_passes.shardy, "read", interrupted)
        with pytest.raises(KeyboardInterrupt):
            ask("x=P('data')")
    assert gc.isenabled()
    assert ask("x=P('data')") == before
    assert types(compiled("x=P('data')")) == previewed(before)


def test_no_array_is_held(notebook, run, compiled, ask):
    run("big = jnp.ones((64, 64)) + 1")
    compiled("big=P('data')", "z = big * 2", options="--view none")
    held = weakref.ref(notebook.user_ns["big"]), weakref.ref(notebook.user_ns["z"])
    assert ask("big=P('model')", "z = big * 2")["kind"] == "preview"
    run("del big, z\nNone")
    jax.clear_caches()
    gc.collect()
    assert [array() for array in held] == [None, None]


def test_only_the_last_cells_are_kept(monkeypatch, compiled, ask):
    monkeypatch.setattr("shardnb.magics.line_previews._KEPT", 2)
    for cell in "abc":
        compiled(cell=cell)
    assert [ask("x=P('data')", cell=cell)["kind"] for cell in "abc"] == [
        "unknown",
        "preview",
        "preview",
    ]


class Channel:
    """A front end's comm."""

    def __init__(self):
        self.sent = []

    def on_msg(self, hear):
        self.hear = lambda data: hear({"content": {"data": data}})

    def send(self, data):
        self.sent.append(data)


def test_a_front_end_asks_over_a_comm(compiled, magics):
    compiled()
    channel = Channel()
    magics.channel._opened(channel, {})
    channel.hear({"number": 7, "cell": "a", "code": f"%%shard x=P('data')\n{BODY}"})
    channel.hear({"number": 8, "cell": "a", "code": "y = 1"})
    assert [(data["number"], data["kind"]) for data in channel.sent] == [
        (7, "preview"),
        (8, "unknown"),
    ]


@pytest.mark.parametrize("data", [None, [], {"number": 1}, {"number": "1", "cell": 2, "code": ""}])
def test_what_is_not_a_question_has_no_answer(compiled, magics, data):
    channel = Channel()
    magics.channel._opened(channel, {})
    channel.hear(data)
    assert channel.sent == []


def test_a_bug_is_answered_too(monkeypatch, compiled, magics):
    compiled()
    monkeypatch.setenv("SHARDNB_STRICT", "0")
    monkeypatch.setattr(magics.session.previews, "answer", lambda *_: 1 / 0)
    channel = Channel()
    magics.channel._opened(channel, {})
    channel.hear({"number": 7, "cell": "a", "code": ""})
    assert channel.sent == [{"number": 7, "kind": "unknown"}]


def test_a_shell_without_the_extension_answers_nobody(notebook):
    manager = preview_channel.get_comm_manager()
    assert preview_channel.TARGET in manager.targets
    notebook.run_line_magic("unload_ext", "shardnb")
    assert preview_channel.TARGET not in manager.targets
    notebook.run_line_magic("load_ext", "shardnb")
