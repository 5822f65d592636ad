"""`%%shard --from torch`: what the report says, and what the cell leaves."""

import warnings

import pytest

pytest.importorskip("torchax", reason="needs torch and torchax")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import torch

SETUP = """
import torch, torch.nn as nn, torch.nn.functional as F, shardnb.torch as xs
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(16, 32), nn.Linear(32, 16)
        self.norm = nn.BatchNorm1d(16)
    def forward(self, x):
        return self.norm(self.fc2(F.relu(self.fc1(x))))
mesh = xs.SpmdMesh(range(8), (4, 2), ("data", "model"))
torch.manual_seed(0)
model, x, t = Net(), torch.randn(8, 16), torch.randn(8, 16)
same = Net(); same.load_state_dict(model.state_dict())
"""
MARK = """
xs.mark_sharding(x, mesh, ("data", None))
xs.mark_sharding(model.fc1.weight, mesh, ("model", None))
xs.mark_sharding(model.fc2.weight, mesh, (None, "model"))
"""
STEP = """
opt.zero_grad()
y = model(x)
loss = F.mse_loss(y, t)
loss.backward()
opt.step()
"""
NONE = "%%shard --from torch --view none --save report\n"


@pytest.fixture
def names(run, ip):
    run("%mesh data=4,model=2")
    run(SETUP)
    return ip.user_ns


def close(a, b):
    return torch.allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("optimizer", ["SGD(p, 0.1, momentum=0.9)", "Adam(p, 0.01, eps=1e-2)"])
def test_a_training_step_leaves_what_a_plain_cell_leaves(run, names, optimizer):
    for name in ("model", "same"):
        run(f"p = list({name}.parameters()); {name}_opt = torch.optim.{optimizer}")
    run("opt = model_opt")
    for _ in range(2):
        run(NONE + MARK + STEP)
        loss, y = names["loss"], names["y"]
        run(STEP.replace("model", "same").replace("opt.", "same_opt."))
        assert close(loss, names["loss"].detach())
        assert close(y, names["y"].detach())
    model, same = names["model"], names["same"]
    for ours, theirs in zip(model.parameters(), same.parameters(), strict=True):
        assert isinstance(ours, torch.nn.Parameter)
        assert close(ours, theirs)
        assert close(ours.grad, theirs.grad)
    for ours, theirs in zip(model.buffers(), same.buffers(), strict=True):
        assert close(ours, theirs)
    assert type(loss) is type(y) is torch.Tensor
    names_of = {value.name for value in names["report"].inputs}
    assert {"model.fc1.weight", "x", "t", "model.norm.running_mean"} <= names_of


def test_gradients_add_up_until_they_are_taken_away(run, names):
    for _ in range(2):
        run(NONE + "loss = model.fc1(x).pow(2).mean()\nloss.backward()")
        run("same.fc1(x).pow(2).mean().backward()")
        assert close(names["model"].fc1.weight.grad, names["same"].fc1.weight.grad)
    assert "model.fc1.weight.grad" in {value.name for value in names["report"].outputs}
    run(NONE + "model.zero_grad()\nz = x + 1")
    assert names["model"].fc1.weight.grad is None


def test_the_report_is_at_the_lines_of_the_cell(run, names):
    run(NONE + MARK.strip() + "\ny = model.eval()(x)")
    (sent,) = [c for c in names["report"].collectives if c.axes == ("model",)]
    assert (sent.kind, sent.shape, sent.module) == ("all-reduce", (2, 16), "model.fc2")
    assert [frame.function for frame in sent.frames] == ["Net.forward", "<module>"]
    assert sent.frames[-1].line == 5
    about = [f.location.line for f in names["report"].findings if f.kind == "annotation"]
    assert sorted(about) == [2, 3, 4]


def test_a_result_keeps_its_sharding_for_the_next_cell(run, names):
    run(NONE + MARK + "h = model.fc1(x)")
    run(NONE + "s = h.sum(0)")
    assert {v.name: v.spec for v in names["report"].inputs} == {"h": (("data",), ("model",))}
    assert [c.axes for c in names["report"].collectives] == [("data",)]


def test_a_marked_tensor_may_take_the_place_of_its_name(run, names):
    run(NONE + 'x = xs.mark_sharding(x, mesh, ("data", None))\nz = x * 2')
    assert isinstance(names["x"], names["xs"].XLAShardedTensor)
    run(NONE + "w = x.sum(0)")
    assert {v.name: v.spec for v in names["report"].inputs} == {"x": (("data",), ())}
    assert [c.kind for c in names["report"].collectives] == ["all-reduce"]


def test_containers_and_attributes_hold_the_results(run, names):
    run(NONE + "d = {'a': [x + 1]}\nmodel.kept = x * 2\nx[0] = 0\nlast = x[1]", fails=False)
    assert close(names["model"].kept[1], names["last"] * 2)
    assert torch.equal(names["x"][0], torch.zeros(16))
    assert close(names["d"]["a"][0][1], names["x"][1] + 1)


def test_compiling_alone_changes_nothing(run, names):
    before = {k: v.clone() for k, v in names["model"].state_dict().items()}
    run("opt = torch.optim.Adam(model.parameters())")
    state = torch.get_rng_state()
    run("%%shard --from torch --no-run --view none\n" + MARK + STEP)
    assert all(torch.equal(before[k], v) for k, v in names["model"].state_dict().items())
    assert names["model"].fc1.weight.grad is None
    assert names["opt"].state == {}
    assert "y" not in names
    assert torch.equal(torch.get_rng_state(), state)
    run(NONE + 'xs.mark_sharding(x, mesh, ("model", None))\nz = x + 1')  # it was not marked before


def test_an_error_in_the_cell_changes_nothing(run, names):
    before = names["x"].clone()
    run(NONE + MARK + "x.add_(1)\nmodel.norm(x)\ny = x @ torch.zeros(3, 3)", fails=True)
    assert torch.equal(names["x"], before)
    assert names["model"].norm.num_batches_tracked == 0
    assert "y" not in names


@pytest.mark.parametrize("name", ["x", "model"])
def test_a_spec_for_a_tensor_without_from_torch_names_the_option(run, names, name):
    shown = run(f"%%shard --mesh data=8 {name}=P('data')\nz = {name}", fails=True)
    assert f"{name} is of torch: %%shard --from torch explains torch code" in shown.err


def test_a_traced_value_has_no_numbers_yet(run, names):
    shown = run(NONE + "if x.sum() > 0:\n    y = 1", fails=True)
    assert "TracerBoolConversionError" in shown.out


def test_meta_tensors_are_compiled_and_give_meta_tensors(run, names):
    run("with torch.device('meta'): big = nn.Linear(1 << 16, 1 << 14)")
    run("shape = torch.empty(8, 1 << 16, device='meta')")
    run(NONE + 'xs.mark_sharding(big.weight, mesh, ("model", None))\nout = big(shape)')
    out = names["out"]
    assert (out.device.type, tuple(out.shape)) == ("meta", (8, 1 << 14))
    run(NONE + "two = out * 2")
    assert names["report"].inputs[0].spec == ((), ("model",))


def test_manual_sharding_sends_nothing_on_the_way(run, names):
    """Each device works on its rows; the ways in and out send nothing."""
    run(
        NONE + 'w = xs.enable_manual_sharding(x, ("data", None), mesh)\n'
        "shape, kind = tuple(w.shape), w.sharding_spec\n"
        "v = xs.disable_manual_sharding(w * 2 - w.mean(), ('data', None), (8, 16), mesh)"
    )
    assert (names["shape"], names["kind"]) == ((2, 16), "{manual}")
    assert names["report"].collectives == ()
    x = names["x"]
    expected = torch.cat([rows * 2 - rows.mean() for rows in x.split(2)])
    assert close(names["v"].global_tensor, expected)


def test_clearing_and_marking_otherwise(run, names):
    run(NONE + 'xs.mark_sharding(x, mesh, ("data", None))\ny = x + 1')
    shown = run(NONE + 'xs.mark_sharding(x, mesh, ("model", None))\ny = x + 1', fails=True)
    assert "call clear_sharding first" in shown.out + shown.err
    run(NONE + 'xs.clear_sharding(x)\nxs.mark_sharding(x, mesh, ("model", None))\ny = x + 1')
    assert names["report"].inputs[0].spec == (("model",), ())


def test_specs_on_the_line(run, names):
    line = "%%shard --from torch --view none --save report --mesh data=4,model=2 "
    run(line + "x=P('data') model.fc1.weight=P('model')\ny = model.fc1(x)")
    specs = {value.name: value.spec for value in names["report"].inputs}
    assert specs["x"] == (("data",), ())
    assert specs["model.fc1.weight"] == (("model",), ())
    shown = run(line + "--out y=P('data')\ny = x * 2", fails=True)
    assert "mark a result with shardnb.torch.mark_sharding" in shown.err
    shown = run("%%shard --from torch --mesh data=4:manual\ny = x * 2", fails=True)
    assert "manual mesh axes" in shown.err


def test_random_numbers_differ_from_run_to_run(run, names):
    for name in ("a", "b"):
        run(NONE + f"{name} = F.dropout(x, 0.5)", fails=False)
    assert not torch.equal(names["a"] == 0, names["b"] == 0)


def test_a_call_on_one_line(run, names):
    run("%shard model(x) --from torch --mesh data=4,model=2 --view none --save report")
    assert {"x", "model.fc1.weight"} <= {value.name for value in names["report"].inputs}
