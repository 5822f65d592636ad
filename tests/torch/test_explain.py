"""`sn.explain` of torch modules and functions of tensors."""

import warnings

import jax
import jax.numpy as jnp
import pytest

import shardnb as sn

pytest.importorskip("torchax", reason="needs torch and torchax")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import torch
    import torch.nn.functional as F  # noqa: N812 - as torch's own examples do
    from torch import nn

    import shardnb.torch as xs

MESH = xs.SpmdMesh(range(8), (4, 2), ("data", "model"))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, x):
        h = F.relu(self.fc1(x))
        return self.fc2(h)


def sharded(model):
    xs.mark_sharding(model.fc1.weight, MESH, ("model", None))
    xs.mark_sharding(model.fc2.weight, MESH, (None, "model"))
    return model


def data():
    x = torch.zeros(8, 16)
    xs.mark_sharding(x, MESH, ("data", None))
    return x


def line_of(report, collective):
    source = report.sources[collective.frames[0].source]
    return source.text.splitlines()[collective.frames[0].line - source.first_line].strip()


def findings(report):
    return {f.subject or "value": f.message for f in report.findings if f.kind == "annotation"}


def test_a_module_sends_what_the_same_program_in_jax_does():
    """2 x 16 partial sums per device over `model`: a ring of two sends each float once."""
    report = sn.explain(sharded(Net()), data())
    (sent,) = report.collectives
    assert (sent.kind, sent.axes, sent.shape, sent.wire_bytes) == (
        ("all-reduce", ("model",), (2, 16), 2 * 16 * 4)
    )
    assert (sent.asked_by, sent.reason) == ("inferred", "partial-sum")
    assert line_of(report, sent) == "return self.fc2(h)"
    assert sent.module == "model.fc2"
    assert report.title == "Net"
    weights = {v.name: (v.spec, v.shard_shape) for v in report.inputs}
    assert weights["model.fc1.weight"] == ((("model",), ()), (16, 16))
    assert weights["x"] == ((("data",), ()), (2, 16))


def test_jax_agrees():
    def net(w1, b1, w2, b2, x):
        return jax.nn.relu(x @ w1.T + b1) @ w2.T + b2

    shapes = [(32, 16), (32,), (16, 32), (16,), (8, 16)]
    args = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
    specs = (jax.P("model"), jax.P(), jax.P(None, "model"), jax.P(), jax.P("data"))
    expected = sn.explain(net, *args, mesh="data=4,model=2", in_specs=specs)
    report = sn.explain(sharded(Net()), data())
    sent = [(c.kind, c.axes, c.wire_bytes) for c in report.collectives]
    assert sent == [(c.kind, c.axes, c.wire_bytes) for c in expected.collectives]


def test_shapes_and_meta_tensors_hold_no_data():
    with torch.device("meta"):
        model = Net()
    x = jax.ShapeDtypeStruct((8, 16), jnp.float32)
    report = sn.explain(sharded(model), x, in_specs=(jax.P("data"),))
    assert [(c.kind, c.axes) for c in report.collectives] == [("all-reduce", ("model",))]
    assert {v.name: v.spec for v in report.inputs}["x"] == (("data",), ())


def test_the_backward_pass_is_at_the_lines_of_the_forward_one():
    model, x = sharded(Net()), data()

    def step(x):
        loss = model(x).pow(2).mean()
        loss.backward()
        return loss

    report = sn.explain(step, x)
    gradients = [c for c in report.collectives if c.phase == "backward" and c.shape]
    lines = {(line_of(report, c), c.module) for c in gradients}
    assert ("h = F.relu(self.fc1(x))", "model.fc1") in lines
    assert ("return self.fc2(h)", "model.fc2") in lines
    names = {value.name for value in report.outputs}
    assert {"result", "model.fc1.weight.grad", "model.fc2.bias.grad"} <= names
    assert model.fc1.weight.grad is None


def test_each_annotation_of_data_says_what_is_uploaded():
    said = findings(sn.explain(sharded(Net()), data()))
    assert set(said) == {"model.fc1.weight", "model.fc2.weight", "x"}
    weight = said["model.fc2.weight"]
    assert "as P(None, 'model'): it is data" in weight
    assert "uploads 1.0 KiB to each device, and 2.0 KiB without" in weight
    # A replicated weight is sliced on each device, so that the same partial sums are added.
    assert weight.endswith("Without it the program has the same collectives")
    assert "gradient" not in weight


def test_an_annotation_says_which_collective_its_absence_causes():
    """It gathers 2 x 32 floats over `model`; without it the shards give partial sums of 2 x 16."""
    model, x = Net(), data()
    xs.mark_sharding(model.fc1.weight, MESH, ("model", None))

    def forward(x):
        h = F.relu(model.fc1(x))
        xs.mark_sharding(h, MESH, ("data", None))
        return model.fc2(h)

    report = sn.explain(forward, x)
    assert [(c.kind, c.axes) for c in report.collectives] == [("all-gather", ("model",))]
    value = findings(report)["value"]
    assert "needs an all-reduce[model] of f32[2, 16], 128 B per device" in value
    assert "does not need an all-gather[model] of f32[2, 32], 128 B per device" in value


def test_an_annotation_of_a_value_is_one_node_and_two_with_its_gradient():
    model, x = Net(), data()

    def step(x):
        h = F.relu(model.fc1(x))
        xs.mark_sharding(h, MESH, ("data", "model"))
        y = xs.mark_sharding_with_gradients(model.fc2(h), MESH, ("data", "model"))
        loss = y.pow(2).mean()
        loss.backward()
        return loss

    report = sn.explain(step, x)
    messages = [f.message for f in report.findings if f.kind == "annotation"]
    assert "itself moves no bytes; it adds 1 node to the graph" in messages[-2]
    assert "2 nodes to the graph, one for the value and one for its gradient" in messages[-1]
    lines = [f.location.line for f in report.findings if f.kind == "annotation"][-2:]
    assert lines[1] == lines[0] + 1


def test_the_second_annotation_decides_how_the_gradient_is_sharded():
    """The loss is the sum, so its gradient is a broadcast of one, that nothing shards."""
    x, other = torch.zeros(8, 16), torch.zeros(8, 16, requires_grad=True)

    def step(mark):
        def run(other, x):
            y = mark(other * 2, MESH, ("data", None))
            y = getattr(y, "global_tensor", y)
            (y + x).sum().backward()
            return other.grad

        return sn.explain(run, other, x, mesh=MESH)

    (once,) = findings(step(xs.mark_sharding)).values()
    (twice,) = findings(step(xs.mark_sharding_with_gradients)).values()
    assert "gradient is sharded as P(); mark_sharding_with_gradients would" in once
    assert "as P('data'); mark_sharding would leave it as P()" in twice
    shardings = [
        step(m).outputs[0].spec for m in (xs.mark_sharding, xs.mark_sharding_with_gradients)
    ]
    assert shardings == [((), ()), (("data",), ())]


def test_ids_in_another_order_place_the_devices():
    mesh = xs.SpmdMesh([7, 6, 5, 4, 3, 2, 1, 0], (8,), ("x",))
    tensor = torch.zeros(8, 4)
    xs.mark_sharding(tensor, mesh, ("x", None))
    report = sn.explain(lambda tensor: tensor.sum(0), tensor)
    ids = report.mesh.device_ids
    assert list(ids) == sorted(ids, reverse=True)


def test_two_meshes_in_one_program_are_refused():
    model, x = sharded(Net()), torch.zeros(8, 16)
    xs.mark_sharding(x, xs.SpmdMesh(range(8), (8,), ("x",)), ("x", None))
    with pytest.raises(ValueError, match="but this annotation is on"):
        sn.explain(model, x)


def test_a_dimension_that_does_not_divide_is_padded():
    x = torch.zeros(9, 16)
    xs.mark_sharding(x, MESH, ("data", None))
    report = sn.explain(lambda x: x * 2, x)
    assert {value.name: value.spec for value in report.inputs}["x"] == ((), ())


def test_tied_weights_are_one_input():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(8, 4)
            self.out = nn.Linear(4, 8, bias=False)
            self.out.weight = self.embedding.weight

        def forward(self, ids):
            return self.out(self.embedding(ids))

    report = sn.explain(Tied(), torch.zeros(8, dtype=torch.long), mesh="data=4")
    assert [(v.name, v.dtype) for v in report.inputs] == [
        ("model.embedding.weight", "f32"),
        ("ids", "s64"),
    ]


def test_options_of_jax_code_are_refused():
    with pytest.raises(TypeError, match="takes no out_specs"):
        sn.explain(Net(), torch.zeros(8, 16), mesh="data=4", out_specs=jax.P())
    with pytest.raises(ValueError, match="in_specs has 2 entries for 1 arguments"):
        sn.explain(Net(), torch.zeros(8, 16), mesh="data=4", in_specs=(jax.P(), jax.P()))


def test_a_program_runs_and_changes_nothing():
    model, x = sharded(Net()), data()
    report = sn.explain(model, x, run=True)
    assert report.run.run_seconds > 0
    assert model.fc1.weight.grad is None


def test_a_tpu_is_compiled_for_without_one():
    pytest.importorskip("libtpu", reason="needs libtpu")
    report = sn.explain(sharded(Net()), data(), on="v5e:2x4")
    assert report.mesh.kind == "TPU v5 lite"
    assert [c.axes for c in report.collectives] == [("model",)]
