"""Cells on two hosts of four emulated devices each, which gloo joins over loopback."""

import re

import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from shardnb.hosts.engines import HostError
from shardnb.hosts.remote_array import RemoteArray
from tests.hosts.conftest import COMPILES, interrupt, when_busy

CONFLICT = "%%shard --axes explicit x=P(None, 'model') w=P('model')\nbad = x @ w"
PRODUCT = "%%shard x=P('data', 'model') w=P('model') --save report\ny = x @ w"


@pytest.fixture(scope="module")
def product(notebook):
    return notebook.run(PRODUCT)


def test_the_mesh_says_that_its_devices_are_on_hosts(notebook):
    shown = notebook.run("%mesh data=4,model=2 --hosts 2")
    assert shown.out.strip() == "data=4 (auto), model=2 (auto): 8 emulated cpu devices on 2 hosts"


def test_the_same_hosts_serve_another_mesh(notebook, product):
    before = notebook.engines
    notebook.run("%mesh rows=8 --hosts 2")
    notebook.run("%%shard x=P('rows') --view none\nrows = x + 1")
    notebook.run("%mesh data=4,model=2 --hosts 2")
    assert notebook.engines is before
    assert notebook["rows"].spec == P("rows")


def test_a_cell_runs_on_all_hosts_and_its_result_stays_there(notebook, product):
    y = notebook["y"]
    assert isinstance(y, RemoteArray)
    assert (y.shape, y.dtype, y.ndim, y.size) == ((8, 6), np.dtype("float32"), 2, 48)
    assert y.spec == P("data")


def test_a_remote_array_prints_its_sharding_and_what_each_host_holds(notebook, product):
    # Four rows of devices, two of them on each host: rows 0 to 4 of 8 are on host 0.
    assert repr(notebook["y"]).splitlines() == [
        "float32[8, 6] on 2 hosts, sharded P('data',) over data=4,model=2",
        "  host 0: [0:4, 0:6]",
        "  host 1: [4:8, 0:6]",
    ]


def test_values_are_fetched_on_request(notebook, product):
    expected = np.arange(32.0, dtype=np.float32).reshape(8, 4) @ np.ones((4, 6), np.float32)
    np.testing.assert_array_equal(notebook["y"].fetch(), expected)
    np.testing.assert_array_equal(np.asarray(notebook["y"]), expected)
    with pytest.raises(ValueError, match="without a copy"):
        np.asarray(notebook["y"], copy=False)


def test_the_report_is_of_all_hosts_devices(notebook, product):
    report = notebook["report"]
    assert len(product.reports) == 1
    assert report.mesh.hosts == (0, 0, 0, 0, 1, 1, 1, 1)
    # Each device sums over its two columns of x: a partial sum of 2 x 6 floats over model.
    (collective,) = report.collectives
    assert (collective.kind, collective.axes, collective.bytes) == ("all-reduce", ("model",), 48)
    assert report.run.run_seconds > 0


def test_the_report_says_what_is_sent_within_and_between_hosts(notebook, product):
    notebook.run("%%shard --view none --save report\ntotal = y.sum(0)")
    # An all-reduce of 6 floats over 4 devices: each sends 2 x 24 x 3/4 = 36 bytes by the ring. To
    # the other host goes half of 2 x 24 bytes, shared by the 2 devices of each host.
    assert "data: 24 B within hosts, 12 B between hosts per run" in notebook["report"].notes
    assert [c.wire_bytes for c in notebook["report"].collectives] == [36]


def test_the_next_cell_reads_a_remote_array_without_a_transfer(notebook, product, monkeypatch):
    monkeypatch.setattr(RemoteArray, "fetch", None)
    sent = notebook.engines.releasable()
    notebook.run("%%shard --view none\nz = y.sum(0)")
    monkeypatch.undo()
    assert not sent
    # Column sums of x @ ones: 4 * 8 rows of sums, which are those of all 32 numbers.
    np.testing.assert_array_equal(notebook["z"].fetch(), np.full(6, 496.0))


def test_an_array_of_the_kernel_is_sent_once(notebook, product):
    key = notebook.engines.key_of(notebook["x"])
    notebook.run("%%shard --view none\nagain = x * 2")
    assert key is not None
    assert notebook.engines.key_of(notebook["x"]) == key


def test_arrays_without_a_name_are_dropped_on_the_hosts(notebook):
    from shardnb.hosts import process

    notebook.run("%%shard --view none\ngone = x + 3")
    key = notebook["gone"].key
    notebook.run("del gone")
    notebook.run("%%shard --view none\nother = x + 4")
    with pytest.raises(HostError, match="KeyError"):
        notebook.engines.call(process.blocks, key)


def test_objects_of_the_notebook_stay_the_same_objects(notebook):
    notebook.run("params = {'w': w, 'b': x}; log = []; kept = params['b']")
    notebook.run(
        "%%shard --view none\nparams['w'] = w + 1\nlog.append(w.shape)\nsame = params\nn = 3"
    )
    assert notebook["same"] is notebook["params"]
    assert notebook["params"]["b"] is notebook["kept"]
    assert notebook["log"] == [(4, 6)]
    assert notebook["n"] == 3
    np.testing.assert_array_equal(notebook["params"]["w"].fetch(), np.full((4, 6), 2.0))


def test_functions_closures_jitted_functions_and_classes_of_the_notebook_travel(notebook):
    notebook.run(
        "from dataclasses import dataclass\n"
        "import functools\n"
        "@jax.tree_util.register_dataclass\n"
        "@dataclass\n"
        "class State:\n"
        "    a: jax.Array\n"
        "    def up(self):\n"
        "        return State(self.a + scale)\n"
        "scale = 10\n"
        "def made(k):\n"
        "    def inner(s):\n"
        "        return State(s.up().a * k)\n"
        "    return inner\n"
        "step = jax.jit(made(2))\n"
        "state = State(x)\n"
    )
    notebook.run("%%shard --view none state=P('data')\nstate = step(state)")
    assert type(notebook["state"]) is notebook["State"]
    expected = (np.arange(32.0).reshape(8, 4) + 10) * 2
    np.testing.assert_array_equal(notebook["state"].a.fetch(), expected)


def test_random_numbers_are_the_same_on_all_hosts_and_go_on_in_the_kernel(notebook):
    notebook.run("np.random.seed(5); u = np.random.normal()\nnp.random.seed(5)")
    notebook.run("%%shard --view none\nv = float(np.random.normal())\nr = x * v")
    after = notebook.run("np.random.get_state()[2]").result.result
    assert notebook["v"] == notebook["u"]
    assert after > 0


def test_random_keys_stay_on_the_hosts(notebook):
    notebook.run("%%shard --view none\nkey = jax.random.key(7)\nbits = jax.random.bits(key, (8,))")
    notebook.run("%%shard --view none\nmore = jax.random.bits(key, (8,))")
    np.testing.assert_array_equal(notebook["key"].fetch(), [0, 7])
    np.testing.assert_array_equal(notebook["more"].fetch(), notebook["bits"].fetch())


def test_output_is_shown_by_host(notebook):
    shown = notebook.run("%%shard --view none\nprint('here')\nr = x + 1")
    assert {"host 0: here", "host 1: here"} <= set(shown.out.splitlines())


def test_without_a_run_no_name_changes(notebook):
    notebook.run("%%shard --no-run\nnever = x + 1")
    assert "never" not in notebook.shell.user_ns
    shown = notebook.run("%shard jnp.sin(x)")
    assert len(shown.reports) == 1


def test_shapes_are_bound_to_shapes(notebook):
    notebook.run("shape = jax.ShapeDtypeStruct((8, 4), jnp.float32)")
    notebook.run("%%shard --view none shape=P('data')\ndouble = shape * 2")
    assert notebook["double"].shape == (8, 4)
    assert notebook["double"].sharding.spec == P("data")


def test_a_cell_that_differs_by_host_is_refused_with_the_line_that_differs(notebook):
    error = notebook.error("%%shard\ndiffers = x + jax.process_index()")
    message = str(error)
    assert "host 0 and host 1 compiled different programs, so nothing ran" in message
    assert "dense<0.000000e+00>" in message
    assert "dense<1.000000e+00>" in message
    assert "differs" not in notebook.shell.user_ns


def test_a_cell_that_fails_on_one_host_names_it(notebook):
    cell = "%%shard\nif jax.process_index() == 1:\n    raise ValueError('not here')\nr = x + 1"
    error = notebook.error(cell)
    assert "on host 1: ValueError: not here" in str(error)
    lines = re.sub(r"\x1b\[[\d;]*m", "", "\n".join(error.failed.lines))
    assert "raise ValueError('not here')" in lines


def test_an_error_of_every_host_is_explained_once(notebook):
    error = notebook.error("%%shard x=P('nowhere')\nr = x + 1")
    assert "names the mesh axis 'nowhere'; the axes are data, model" in str(error)


@pytest.mark.parametrize(
    "option", ["--fix", "--check", "--watch", "--compare auto,explicit", "--profile"]
)
def test_what_is_not_for_hosts_says_so(notebook, option):
    assert "cannot be combined with the hosts of %mesh" in str(
        notebook.error(f"%%shard {option}\nr = x + 1")
    )


def test_a_value_that_cannot_be_sent_is_named(notebook):
    notebook.run("numbers = (n for n in range(3))")
    error = notebook.error("%%shard\nr = x + next(numbers)")
    assert "the hosts need numbers (a generator), which cannot be sent" in str(error)


def test_a_value_that_cannot_be_sent_back_is_refused_before_anything_runs(notebook):
    error = notebook.error("%%shard\nresult = x + 5\nlazy = (n for n in range(3))")
    assert "the cell assigns what the hosts cannot send back" in str(error)
    assert "lazy" not in notebook.shell.user_ns


def test_an_error_of_jax_about_shardings_is_explained(notebook):
    shown = notebook.run(CONFLICT, fails=True)
    error = shown.result.error_in_exec
    assert error.failed.explanation is not None
    assert any("text/html" in data for data in shown.data)


def test_other_devices_on_the_line_are_the_kernels(notebook):
    notebook.run("%%shard --on cpu --view none x=P('data')\nhere = x + 1")
    assert not isinstance(notebook["here"], RemoteArray)


def test_an_interrupt_ends_what_the_hosts_do_and_they_stay(notebook, product, tmp_path):
    notebook.run(f"import os, time\nfolder = {str(tmp_path)!r}")
    thread = when_busy(notebook, interrupt)
    error = notebook.error(COMPILES)
    thread.join()
    assert isinstance(error, KeyboardInterrupt)
    assert "compiled" not in notebook.shell.user_ns
    assert notebook["y"].fetch().shape == (8, 6)
