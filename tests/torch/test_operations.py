"""Values, types and gradients of traced torch code: torch itself, on the CPU, says what is right."""

import warnings

import jax
import numpy as np
import pytest

pytest.importorskip("torchax", reason="needs torch and torchax")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import torch
    import torch.nn.functional as F  # noqa: N812 - as torch's own examples do
    from torch import nn

    import shardnb.torch as xs
    from shardnb.compiler.torch_program import torch_types
    from shardnb.torch.arrays import array_of, dtype_of, tensor_of
    from shardnb.torch.extra import torchax
    from shardnb.torch.trace import Trace, current, tracing
    from shardnb.torch.traced import tracer_of

torchax()


class Block(nn.Module):
    """Attention and a feed-forward layer, as a transformer has them."""

    def __init__(self):
        super().__init__()
        self.embedding, self.norm = nn.Embedding(16, 8), nn.LayerNorm(8)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.up, self.down, self.out = nn.Linear(8, 16), nn.Linear(16, 8), nn.Linear(8, 16)

    def forward(self, ids):
        h = self.embedding(ids)
        n = self.norm(h)
        h = h + self.attention(n, n, n, need_weights=False)[0]
        return self.out(h + self.down(F.gelu(self.up(h))))


def written(w, ids):
    a = torch.zeros(16, 8)
    a[2:4] = w[2:4]
    return a.add_(1).mul_(2).pow(2).sum()


def attention(w, ids):
    q = w.reshape(1, 2, 4, 16)
    return F.scaled_dot_product_attention(q, q, q, is_causal=True).pow(2).sum()


IMAGE = (1, 1, 16, 8)
FUNCTIONS = {
    "einsum": lambda w, ids: torch.einsum("ij,kj->ik", w, w).pow(2).sum(),
    "attention": attention,
    "one hot": lambda w, ids: (F.one_hot(ids, 16).float() @ w).sum(),
    "index": lambda w, ids: w[1:3, ::2].sum() + w[ids].pow(2).sum(),
    "convolution": lambda w, ids: (
        F.conv2d(w.reshape(IMAGE), w[:9].reshape(8, 1, 3, 3)).relu().sum()
    ),
    "batch norm": lambda w, ids: F.batch_norm(w, None, None, training=True).pow(3).sum(),
    "rms norm": lambda w, ids: F.rms_norm(w, (8,)).pow(3).sum(),
    "max pool": lambda w, ids: F.max_pool2d(w.reshape(IMAGE), 2).pow(2).sum(),
    "interpolate": lambda w, ids: F.interpolate(w.reshape(IMAGE), scale_factor=2).pow(2).sum(),
    "softmax": lambda w, ids: F.softmax(w, -1).log().mean(),
    "cross entropy": lambda w, ids: F.cross_entropy(w, ids.reshape(-1)[:1].repeat(16) % 8),
    "mask": lambda w, ids: w.tril().masked_fill(w > 0, -1e9).logsumexp(-1).sum(),
    "cumulative": lambda w, ids: w.cumsum(0).max(-1).values.sum(),
    "chunks": lambda w, ids: sum((i + 1) * c.sum() for i, c in enumerate(w.chunk(2, 0))),
    "largest": lambda w, ids: torch.cat([w, w * 2]).topk(2).values.sum() + w.std() + w.norm(),
    "flatten and T": lambda w, ids: (w.flatten() @ w.T.flatten()).sum(),
    "written in place": written,
}


def traced(function, tensors):
    """Run a function of tensors in JAX; gives its result, its type, and the gradients."""
    types = {}

    def run(*values):
        trace = Trace()
        for tensor, value in zip(tensors, values, strict=True):
            trace.add(tensor, value, name="x")
        with tracing(trace):
            result = function(*tensors)
            types["result"] = result.dtype
            result.backward()
            gradients = [t.grad for t in tensors if t.is_floating_point()]
        return tracer_of(result), [tracer_of(gradient) for gradient in gradients]

    with torch_types():
        result, gradients = jax.jit(run)(*map(array_of, tensors))
    return np.asarray(result), types["result"], list(map(np.asarray, gradients))


def inputs():
    torch.manual_seed(0)
    return torch.randn(16, 8, requires_grad=True), torch.arange(12).reshape(2, 6)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_and_its_gradient_are_torchs(name):
    w, ids = inputs()
    result, dtype, (gradient,) = traced(FUNCTIONS[name], [w, ids])
    assert w.grad is None  # nothing happened to the user's tensors
    expected = FUNCTIONS[name](w, ids)
    expected.backward()
    assert dtype == expected.dtype
    np.testing.assert_allclose(result, expected.item(), rtol=1e-5)
    np.testing.assert_allclose(gradient, w.grad, rtol=1e-4, atol=1e-5)


def test_a_transformers_block():
    torch.manual_seed(0)
    model, ids = Block(), torch.arange(12).reshape(2, 6)
    parameters = list(model.parameters())

    def loss(*_):
        return F.cross_entropy(model(ids).reshape(-1, 16), ids.reshape(-1))

    result, _, gradients = traced(loss, [ids, *parameters])
    expected = loss()
    expected.backward()
    np.testing.assert_allclose(result, expected.item(), rtol=1e-5)
    for gradient, parameter in zip(gradients, parameters, strict=True):
        np.testing.assert_allclose(gradient, parameter.grad, rtol=1e-4, atol=1e-6)


def test_a_layer_that_is_made_and_initialised_in_the_code():
    def function(w, ids):
        torch.manual_seed(1)
        return nn.LSTM(8, 4)(w.unsqueeze(0))[0].pow(2).sum()

    w, ids = inputs()
    result, _, _ = traced(function, [w, ids])
    np.testing.assert_allclose(result, function(w, ids).item(), rtol=1e-5)


def test_a_view_of_what_has_a_gradient_is_not_written_to():
    w, ids = inputs()
    with pytest.raises(NotImplementedError, match="add_ changes a view of a tensor in place"):
        traced(lambda w, ids: (w * 2)[0].add_(1).sum(), [w, ids])


def test_a_gradient_that_would_stop_is_refused():
    w, ids = inputs()
    before = (w.detach().requires_grad_() * 2).sum()
    with pytest.raises(RuntimeError, match="the gradient would stop there"):
        traced(lambda w, ids: (w * before).sum(), [w, ids])


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64", "int8", "bool", "complex64"])
def test_an_array_has_the_tensors_values_and_type(dtype):
    tensor = torch.arange(6).reshape(2, 3).to(getattr(torch, dtype)).T
    array = array_of(tensor)
    assert array.shape == (3, 2)
    assert dtype_of(tensor.dtype) == array.dtype
    assert torch.equal(tensor_of(array), tensor)


def test_an_array_shares_the_tensors_memory_and_a_meta_tensor_has_a_shape():
    tensor = torch.zeros(4)
    array_of(tensor)[0] = 3
    assert tensor[0] == 3
    shape = array_of(torch.empty(4, 2, dtype=torch.bfloat16, device="meta"))
    assert (shape.shape, str(shape.dtype)) == ((4, 2), "bfloat16")


def test_a_sparse_tensor_is_refused():
    with pytest.raises(ValueError, match="expected a dense tensor for x"):
        array_of(torch.eye(3).to_sparse(), "x")


def test_a_trace_leaves_hooks_modes_and_jaxs_settings_as_they_were():
    hooks = nn.modules.module
    before = len(hooks._global_forward_pre_hooks), len(hooks._global_forward_hooks)
    settings = dict(jax.config.values)
    w, ids = inputs()
    with pytest.raises(ZeroDivisionError):
        traced(lambda w, ids: 1 / 0, [w, ids])
    assert (len(hooks._global_forward_pre_hooks), len(hooks._global_forward_hooks)) == before
    assert current() is None
    assert torch.overrides._get_current_function_mode() is None
    assert dict(jax.config.values) == settings


def test_random_numbers_are_new_in_each_trace_and_the_state_is_repeatable():
    w, ids = inputs()

    def dropped(w, ids):
        return F.dropout(w, 0.5, training=True).pow(2).sum()

    torch.manual_seed(3)
    first, second = traced(dropped, [w, ids])[0], traced(dropped, [w, ids])[0]
    torch.manual_seed(3)
    assert traced(dropped, [w, ids])[0] == first != second


# Annotations outside of a program


MESH = xs.SpmdMesh(range(8), (4, 2), ("data", "model"))


def test_a_mark_is_remembered_and_shown():
    x = torch.zeros(8, 4)
    marked = xs.mark_sharding(x, MESH, ("data", None))
    assert isinstance(marked, xs.XLAShardedTensor)
    assert marked.global_tensor is x
    assert (marked.mesh_shape, marked.partition_spec) == ((4, 2), ("data", None))
    assert marked.sharding_type == "PARTIAL"
    expected = "{devices=[4,1,2]0,1,2,3,4,5,6,7 last_tile_dim_replicate}"
    assert marked.sharding_spec == expected
    assert [shard.index[0] for shard in marked.local_shards][::2] == [
        slice(start, start + 2) for start in (0, 2, 4, 6)
    ]


def test_placements_know_named_axes():
    from torch.distributed.tensor import Replicate, Shard

    marked = xs.mark_sharding(torch.zeros(8, 4), MESH, (None, "data"))
    assert marked.placements == (Shard(1), Replicate())
    with pytest.raises(ValueError, match="is not known"):
        _ = (marked + 1).placements


def test_operations_unwrap_run_and_wrap_again():
    marked = xs.mark_sharding(torch.ones(8, 4), MESH, ("data", None))
    added = marked + 1
    assert isinstance(added, xs.XLAShardedTensor)
    assert (added.mesh_shape, added.sharding_spec) == (None, "")
    assert torch.equal(added.global_tensor, torch.full((8, 4), 2.0))


def test_data_that_is_sharded_is_cleared_before_it_is_sharded_otherwise():
    x = torch.zeros(8, 4)
    xs.mark_sharding(x, MESH, ("data", None))
    xs.mark_sharding(x, MESH, ("data", None))  # the same again
    with pytest.raises(RuntimeError, match="call clear_sharding first"):
        xs.mark_sharding(x, MESH, ("model", None))
    assert xs.clear_sharding(x) is x
    assert xs.mark_sharding(x, MESH, ("model", None)).sharding_type == "PARTIAL"


def test_what_is_replicated_may_be_sharded():
    x = torch.zeros(8, 4)
    mesh = xs.SpmdMesh(range(8), (8,))
    assert xs.mark_sharding(x, mesh, (None, None)).sharding_spec == "{replicated}"
    assert xs.mark_sharding(x, mesh, (0, None)).sharding_type == "TILED"


@pytest.mark.parametrize("mark", ["mark_sharding", "mark_sharding_with_gradients"])
def test_a_spec_has_an_entry_for_each_dimension(mark):
    with pytest.raises(ValueError, match="one entry for each"):
        getattr(xs, mark)(torch.zeros(8, 4), MESH, ("data",))


def test_what_is_not_a_tensor_or_a_mesh():
    with pytest.raises(TypeError, match="expected a tensor, got the int 3"):
        xs.mark_sharding(3, MESH, ())
    with pytest.raises(TypeError, match="expected a mesh such as"):
        xs.mark_sharding(torch.zeros(8), "data=8", (0,))


def test_jaxs_specs_are_taken():
    from jax.sharding import PartitionSpec as P

    assert xs.mark_sharding(torch.zeros(8, 4), MESH, P("data", "model")).sharding_type == "TILED"


def test_a_tensor_is_manual_in_a_program_only(monkeypatch):
    with pytest.raises(ValueError, match="expected a mesh"):
        xs.enable_manual_sharding(torch.zeros(8), ("data",))
    xs.set_global_mesh(MESH)
    with pytest.raises(RuntimeError, match="only in a program"):
        xs.enable_manual_sharding(torch.zeros(8), ("data",))
    with pytest.raises(RuntimeError, match="expected a manual tensor"):
        xs.disable_manual_sharding(torch.zeros(8), ("data",), (8,))
    from shardnb.torch import annotations

    annotations._GLOBAL.clear()
