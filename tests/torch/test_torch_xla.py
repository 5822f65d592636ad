"""The facts of `test_spmd`, and the adapter, against torch_xla itself where it is installed."""

import json
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given

from shardnb.torch import SpmdMesh, from_text
from tests.torch.test_spmd import PRINTED, shardings

SCRIPT = """
import os, sys, json
os.environ.update(PJRT_DEVICE="CPU", CPU_NUM_DEVICES="8")
import numpy as np, torch, torch_xla, torch_xla.runtime as xr, torch_xla.distributed.spmd as xs
from shardnb.torch import SpmdMesh, sharding_of
xr.use_spmd()
tuples = lambda value: tuple(map(tuples, value)) if isinstance(value, list) else value
seen = []
for ids, shape, names, spec, tensor in json.load(sys.stdin):
    mesh = xs.Mesh(np.array(ids), tuple(shape), names and tuple(names))
    x = xs.mark_sharding(torch.zeros(tensor).to(torch_xla.device()), mesh, tuples(spec))
    shards = [[s.replica_id, list(s.unpadded_data.shape)] for s in x.local_shards]
    read = sharding_of(x, SpmdMesh(ids, shape, names and tuple(names)))
    assert read.hlo == x.sharding_spec, (read.hlo, x.sharding_spec)
    seen.append([x.sharding_spec, x.sharding_type.name, shards])
assert sharding_of(torch.zeros(8).to(torch_xla.device()), SpmdMesh(range(8), (8,))) is None
print(json.dumps(seen))
"""


@given(shardings())
def test_a_text_is_read_as_the_sharding_that_prints_it(case):
    sharding, _ = case
    read = from_text(sharding.hlo, sharding.rank, sharding.mesh)
    assert read.hlo == sharding.hlo
    assert read.tiles == sharding.tiles


def test_a_text_that_no_axes_make():
    mesh = SpmdMesh(range(8), (2, 4))
    with pytest.raises(ValueError, match="no axes of"):
        from_text("{devices=[8]0,2,1,3,4,5,6,7}", 1, mesh)
    with pytest.raises(ValueError, match="the tensor is manual"):
        from_text("{manual}", 2, mesh)


@pytest.mark.skipif(find_spec("torch_xla") is None, reason="needs torch_xla")
def test_torch_xla_prints_the_facts():
    cases = [(list(range(8)), *fact[:4]) for fact in PRINTED]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    seen = json.loads(done.stdout.splitlines()[-1])
    for (shape, names, spec, tensor, *_), (text, kind, shards) in zip(PRINTED, seen, strict=True):
        sharding = SpmdMesh(range(8), shape, names).sharding(spec)
        assert (sharding.hlo, sharding.kind) == (text, kind)
        assert from_text(text, len(tensor), sharding.mesh).hlo == text
        ours = sharding.shards(tensor)
        sizes = [list(np.empty(tensor)[shard.index].shape) for shard in ours]
        assert [[shard.replica_id, size] for shard, size in zip(ours, sizes, strict=True)] == shards
