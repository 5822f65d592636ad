"""Building and running programs, and what is left as it was."""

from __future__ import annotations

import os
import tempfile

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.compiler import Request, build
from shardnb.compiler.dumps import captured_fd2, recording
from shardnb.jax_compat.compilation_cache import without_compilation_cache
from shardnb.mesh import make_grid

GRID = make_grid("data=4,model=2")
X = np.arange(32 * 16, dtype=np.float32).reshape(32, 16) / 100
W = np.arange(16 * 8, dtype=np.float32).reshape(16, 8) / 100


def matmul(x, w):
    return jnp.tanh(x @ w)


def built(fn, args, grid=GRID, **stated):
    return build(Request(fn, args, grid, **stated))


def test_the_result_of_a_run_is_right():
    program = built(matmul, {"x": X, "w": W}, in_specs={"x": P("data", "model"), "w": P("model")})
    np.testing.assert_allclose(program.run(), np.tanh(X @ W), rtol=1e-5)


def test_arguments_keep_their_order_whatever_their_names():
    program = built(lambda z, a: z - a, {"z": X, "a": X * 2})
    np.testing.assert_allclose(program.run(), -X, rtol=1e-6)


def test_parameters_are_arrays_closed_over_then_the_arguments_that_are_used():
    bias = jnp.ones((32, 16))
    program = built(lambda unused, x, w: (x + bias) @ w, {"unused": X, "x": X, "w": W})
    # Inputs 0, 1, 2 are the arguments and 3 is bias: XLA gets bias, x and w.
    assert program.parameters == (3, 1, 2)


@pytest.mark.parametrize("axes", ["auto", "explicit"])
def test_a_body_for_the_whole_array(axes):
    grid = make_grid("data=4,model=2", axes)
    program = built(lambda x: x * 2, {"x": X}, grid, in_specs={"x": P("data")}, out_specs=P("data"))
    assert program.run().sharding.spec == P("data")


def test_a_body_for_one_device():
    seen = []

    def body(x):
        seen.append(x.shape)
        return jax.lax.psum(x.sum(), ("data", "model"))

    grid = make_grid("data=4,model=2", "manual")
    program = built(
        body,
        {"x": X},
        grid,
        in_specs={"x": P("data", "model")},
        out_specs=P(),
    )
    assert seen == [(8, 8)]
    np.testing.assert_allclose(program.run(), X.sum(), rtol=1e-5)


def test_axes_of_two_types():
    grid = make_grid("data=4,model=2:manual")
    program = built(
        lambda x, w: jax.lax.psum(x @ w, "model"),
        {"x": X, "w": W},
        grid,
        in_specs={"x": P("data", "model"), "w": P("model")},
        out_specs=P(),
    )
    np.testing.assert_allclose(program.run(), X @ W, rtol=1e-5)


def test_results_over_axes_of_two_types():
    grid = make_grid("data=4,model=2:manual")
    program = built(
        lambda x: x * 2,
        {"x": X},
        grid,
        in_specs={"x": P("data", "model")},
        out_specs=P("data", "model"),
    )
    result = program.run()
    assert result.sharding.spec == P("data", "model")
    np.testing.assert_allclose(result, X * 2, rtol=1e-6)


def test_an_error_of_jax_names_the_function_of_the_user():
    def mine(x):
        return x.sum() + "text"

    with pytest.raises(TypeError) as caught:
        built(mine, {"x": X})
    assert "request.py" not in str(caught.value)


def test_a_closed_over_array_stays_an_argument_with_its_sharding():
    w = jax.device_put(np.ones((16, 8), np.float32), NamedSharding(GRID.mesh, P("model")))

    @jax.jit
    def layer(x):
        return x @ w

    layer(jax.device_put(X, NamedSharding(GRID.mesh, P())))  # traced before, with w inside
    program = built(
        lambda x: jax.lax.scan(lambda c, _: (c + layer(x).sum(), None), 0.0, None, length=3)[0],
        {"x": X},
        in_specs={"x": P("data", "model")},
        in_jit=False,
    )
    assert program.closed_over == (w,) or program.closed_over[0] is w
    assert "all-reduce" in program.optimized
    np.testing.assert_allclose(program.run(), 3 * (X @ np.ones((16, 8))).sum(), rtol=1e-5)


def test_an_array_of_the_kernel_itself_is_lifted_too():
    bias = jnp.arange(8.0) + 1
    program = built(lambda x, w: x @ w + bias, {"x": X, "w": W}, in_specs={"x": P("data")})
    np.testing.assert_allclose(program.run(), X @ W + np.arange(1, 9), rtol=1e-5)


def test_a_shape_alone_compiles_and_does_not_run():
    shape = jax.ShapeDtypeStruct((32, 16), jnp.float32)
    program = built(lambda x: x * 2, {"x": shape}, in_specs={"x": P("data")})
    assert program.abstract
    with pytest.raises(ValueError, match="no data to run on"):
        program.run()


def test_numbers_of_64_bits_become_those_that_jax_has():
    program = built(lambda x: x * 2, {"x": np.ones((8, 8))}, in_specs={"x": P("data")})
    assert program.run().dtype == np.float32


def test_a_key_is_placed():
    program = built(lambda k: jax.random.normal(k, (8,)), {"k": jax.random.key(0)})
    np.testing.assert_allclose(program.run(), jax.random.normal(jax.random.key(0), (8,)), rtol=1e-5)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (P("dat"), r"names the mesh axis 'dat'; the axes are data, model"),
        (P("data", None, "model"), r"has 3 entries, but x has 2 dimensions"),
        (P("data", "data"), r"uses the mesh axis 'data' twice"),
        (P(None, ("data", "model")), None),
        ("data", r"expected a spec for x .* got the str 'data'; did you mean P\('data'\)\?"),
    ],
)
def test_a_bad_spec_is_named(spec, message):
    if message is None:
        built(lambda x: x * 2, {"x": X}, in_specs={"x": spec})
        return
    with pytest.raises((ValueError, TypeError), match=message):
        built(lambda x: x * 2, {"x": X}, in_specs={"x": spec})


def test_a_size_that_does_not_divide_comes_with_those_that_do():
    with pytest.raises(ValueError, match=r"\(257\) is not divisible by the 4 devices.*256 or 260"):
        built(lambda x: x, {"x": np.ones((257, 2))}, in_specs={"x": P("data")})


def test_a_spec_for_nothing_is_refused():
    with pytest.raises(ValueError, match="there is no argument y; the arguments are x"):
        built(lambda x: x, {"x": X}, in_specs={"y": P()})


def test_a_spec_for_a_part_of_a_pytree():
    params = {"layer": {"w": W, "b": np.ones(8, np.float32)}}
    program = built(
        lambda params: params["layer"]["w"].sum() + params["layer"]["b"].sum(),
        {"params": params},
        in_specs={"params": {"layer": {"w": P("model"), "b": None}}},
    )
    specs = jax.tree_util.tree_map(lambda s: s.spec, program.shardings["params"])
    assert specs == {"layer": {"w": P("model"), "b": P()}}


@pytest.mark.parametrize("stated", [dict, nnx.State])
def test_specs_for_a_module_may_be_stated_by_its_names(stated):
    """As Flax itself states them: `nnx.get_partition_spec` gives a State."""
    model = nnx.Linear(16, 8, rngs=nnx.Rngs(0))
    specs = stated({"kernel": P("model"), "bias": P()})
    program = built(lambda m, x: m(x), {"m": model, "x": X}, in_specs={"m": specs})
    placed = jax.tree_util.tree_flatten_with_path(program.shardings["m"])[0]
    assert {jax.tree_util.keystr(path): sharding.spec for path, sharding in placed} == {
        ".kernel.value": P("model"),
        ".bias.value": P(),
    }


@pytest.mark.parametrize(
    ("specs", "message"),
    [
        ({"kernel": P()}, r"have none for m\.bias\.value: give one for each array"),
        (
            {"kernel": P(), "bias": P(), "scale": P()},
            r"have an entry \['scale'\], but m has no such array",
        ),
        ({"kernel": P(), "bias": 3}, r"expected a spec for m\.bias\.value .* got the int 3"),
    ],
)
def test_specs_for_a_module_that_do_not_fit_are_named(specs, message):
    model = nnx.Linear(16, 8, rngs=nnx.Rngs(0))
    with pytest.raises((ValueError, TypeError), match=message):
        built(lambda m, x: m(x), {"m": model, "x": X}, in_specs={"m": specs})


def test_evidence_is_kept_and_its_files_are_gone(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    program = built(matmul, {"x": X, "w": W}, in_specs={"x": P("data", "model"), "w": P("model")})
    dumps = program.dumps
    assert dumps.before.startswith("HloModule")
    assert "all-reduce" in dumps.partitioned
    assert "sdy.sharding" in dumps.stated
    assert "sdy.sharding" in dumps.propagated
    assert list(tmp_path.iterdir()) == []


def test_an_error_leaves_the_kernel_as_it_was(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = os.fstat(2), jax.sharding.get_mesh(), jax.config.jax_use_simplified_jaxpr_constants

    def interrupted(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        built(interrupted, {"x": X})
    after = os.fstat(2), jax.sharding.get_mesh(), jax.config.jax_use_simplified_jaxpr_constants
    assert before == after
    assert list(tmp_path.iterdir()) == []


def test_what_goes_to_descriptor_2_is_caught_and_the_descriptor_given_back(capfd):
    with captured_fd2() as text:
        os.write(2, b"a warning from C++")
    os.write(2, b"seen")
    assert text == ["a warning from C++"]
    assert capfd.readouterr().err == "seen"


def test_what_was_caught_is_passed_on_when_the_block_fails(capfd):
    def fail():
        with captured_fd2():
            os.write(2, b"a warning from C++")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert capfd.readouterr().err == "a warning from C++"


def test_the_users_compilation_cache_is_neither_read_nor_switched_off(tmp_path):
    from jax._src import compilation_cache

    state = compilation_cache._cache_checked, compilation_cache._cache_used
    with without_compilation_cache(), recording():
        assert not compilation_cache.is_cache_used(None)
    assert (compilation_cache._cache_checked, compilation_cache._cache_used) == state


def test_the_kernels_own_devices_are_untouched():
    assert len(jax.devices()) == 1
    assert GRID.mesh.size == 8


@pytest.mark.parametrize(("devices", "runs"), [(256, True), (512, False)])
def test_more_devices_exchange_than_the_cpu_client_has_threads_for(devices, runs):
    grid = make_grid(f"data={devices}")
    x = np.ones(512, np.float32)
    program = built(lambda x: x.sum(), {"x": x}, grid, in_specs={"x": P("data")})
    if runs:
        assert program.run() == 512
    else:
        with pytest.raises(ValueError, match=r"more than 256 CPU devices .* the mesh has 512"):
            program.run()


def test_many_devices_that_exchange_nothing_run():
    grid = make_grid("data=512")
    x = np.ones(512, np.float32)
    program = built(lambda x: x * 2, {"x": x}, grid, in_specs={"x": P("data")})
    np.testing.assert_array_equal(program.run(), x * 2)


def on_kernels_mesh(spec, axes=("data",)):
    """An array on the one CPU device of the kernel: a mesh whose axes have size 1."""
    mesh = jax.sharding.Mesh(np.array(jax.devices("cpu")[:1]).reshape((1,) * len(axes)), axes)
    return jax.device_put(jnp.zeros((16, 8)), NamedSharding(mesh, spec))


def test_an_array_keeps_its_own_sharding_on_emulated_devices():
    """The kernel's mesh and the emulated one have the same axes, but not the same devices."""
    report = sn.explain(lambda x: x * 2, on_kernels_mesh(P("data")), mesh="data=1")
    assert report.inputs[0].spec == (("data",), ())
    assert not [note for note in report.notes if "in_specs" in note]


def test_axes_that_the_mesh_does_not_have_are_named():
    x = on_kernels_mesh(P("data"))
    report = sn.explain(lambda x: x.sum(), x, mesh="rows=8")
    assert report.inputs[0].spec == ((), ())
    (note,) = [note for note in report.notes if "in_specs" in note]
    assert note == (
        "x is sharded over a mesh data=1, but the program's mesh is rows=8, so it is replicated "
        "here; give in_specs to shard over this mesh"
    )
    report = sn.explain(lambda x, y: x + y, x, x + 0, mesh="rows=8")
    assert any(note.startswith("x and 1 more are sharded") for note in report.notes)
    specs = (P("rows"), P())
    report = sn.explain(lambda x, y: x + y, x, x + 0, mesh="rows=8", in_specs=specs)
    assert not [note for note in report.notes if "in_specs" in note]
