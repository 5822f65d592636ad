"""What is mutated: programs for CPU and TPU, compiled here, for GPU, written by hand; and reports."""

from __future__ import annotations

import json
import tempfile
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from matplotlib import pyplot as plt

import shardnb as sn
from shardnb.compiler.dump_folders import programs_of
from shardnb.mesh import make_grid
from shardnb.report import Fix, Location, Report
from shardnb.views import html

GPU = """\
HloModule jit_step, is_scheduled=true, entry_computation_layout={(f32[16,32]{1,0}, f32[8,32]{1,0})->f32[16,32]{1,0}}, allow_spmd_sharding_propagation_to_output={true}, num_partitions=4, frontend_attributes={fingerprint_before_lhs="6b7d"}

FileNames
1 "model/train.py"

FunctionNames
1 "step"

FileLocations
1 {file_name_id=1 function_name_id=1 line=12 end_line=12 column=8 end_column=20}

StackFrames
1 {file_location_id=1 parent_frame_id=1}

%add.clone (x.1: f32[], y.1: f32[]) -> f32[] {
  %x.1 = f32[] parameter(0)
  %y.1 = f32[] parameter(1)
  ROOT %add.2 = f32[] add(%x.1, %y.1)
}

%body (carry: (s32[], f32[8,32])) -> (s32[], f32[8,32]) {
  %carry = (s32[], f32[8,32]{1,0}) parameter(0)
  %i = s32[] get-tuple-element(%carry), index=0
  %h = f32[8,32]{1,0} get-tuple-element(%carry), index=1
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  %permute-start = (f32[8,32]{1,0}, f32[8,32]{1,0}) collective-permute-start(%h), channel_id=7, source_target_pairs={{0,1},{1,0},{2,3},{3,2}}, metadata={op_name="jit(step)/while/body/ppermute" stack_frame_id=1}, backend_config={"operation_queue_id":"0","wait_on_operation_queues":[],"collective_backend_config":{"is_sync":false,"no_parallel_custom_call":false}}
  %permute-done = f32[8,32]{1,0} collective-permute-done(%permute-start)
  ROOT %turn = (s32[], f32[8,32]{1,0}) tuple(%next, %permute-done)
}

%condition (carry.1: (s32[], f32[8,32])) -> pred[] {
  %carry.1 = (s32[], f32[8,32]{1,0}) parameter(0)
  %i.1 = s32[] get-tuple-element(%carry.1), index=0
  %end = s32[] constant(6)
  ROOT %less = pred[] compare(%i.1, %end), direction=LT
}

%inner (in: f32[4,32]) -> f32[16,32] {
  %in = f32[4,32]{1,0} parameter(0)
  ROOT %gather = f32[16,32]{1,0} all-gather(%in), channel_id=2, replica_groups=[1,4]<=[4], dimensions={0}, use_global_device_ids=true
}

ENTRY %main.9_spmd (param.1: f32[16,32], param: f32[8,32]) -> f32[16,32] {
  %param.1 = f32[16,32]{1,0} parameter(0), sharding={replicated}, metadata={op_name="params[\\'w\\']"}
  %param = f32[8,32]{1,0} parameter(1), sharding={devices=[2,1,2]<=[4] last_tile_dim_replicate}, metadata={op_name="x"}
  %zero = s32[] constant(0)
  %start = (s32[], f32[8,32]{1,0}) tuple(%zero, %param)
  %while = (s32[], f32[8,32]{1,0}) while(%start), condition=%condition, body=%body, backend_config={"known_trip_count":{"n":"6"},"known_init_step":{"init":"0","step":"1"}}
  %rows = f32[8,32]{1,0} get-tuple-element(%while), index=1
  %all-reduce-start = (f32[16,32]{1,0}, f32[8,32]{1,0}) all-reduce-start(%param.1, %rows), channel_id=1, replica_groups={{0,1},{2,3}}, use_global_device_ids=true, to_apply=%add.clone, metadata={op_name="jit(step)/dot_general" stack_frame_id=1}
  %part = f32[4,32]{1,0} slice(%rows), slice={[0:4], [0:32]}
  %async = ((f32[4,32]{1,0}), f32[16,32]{1,0}) async-start(%part), calls=%inner
  %joined = f32[16,32]{1,0} async-done(%async)
  %all-reduce-done = (f32[16,32]{1,0}, f32[8,32]{1,0}) all-reduce-done(%all-reduce-start)
  %summed = f32[16,32]{1,0} get-tuple-element(%all-reduce-done), index=0
  ROOT %result = f32[16,32]{1,0} add(%summed, %joined), metadata={op_name="jit(step)/add" source_file="model/train.py" source_line=14}
}
"""


def step(params, x):
    def layer(h, w):
        return jnp.tanh(h @ w), h.sum()

    def loss(params):
        h, sums = jax.lax.scan(layer, x, params)
        return (h**2).mean() + sums.mean()

    return jax.grad(loss)(params)


@cache
def compiled(on: str) -> Report:
    """Return the report of a small training step on 2 x 2 devices."""
    params = jax.ShapeDtypeStruct((3, 16, 16), jnp.float32)
    x = jax.ShapeDtypeStruct((8, 16), jnp.float32)
    specs = (P(None, "model"), P("data"))
    return sn.explain(step, params, x, mesh="data=2,model=2", on=on, in_specs=specs)


def hlo_text(name: str) -> str:
    """Return a program as it is at the end of a compile, or as it is `before` partitioning."""
    match name:
        case "before":
            return compiled("cpu").texts["before partitioning"]
        case "gpu":
            return GPU
        case _:
            return compiled("v5e:2x2" if name == "tpu" else name).texts["optimized"]


@cache
def mlir_texts() -> dict[str, str]:
    """Return StableHLO before and after propagation, with and without a shard_map."""
    return {"stablehlo": compiled("cpu").texts["stablehlo"], "manual": manual().texts["stablehlo"]}


@cache
def manual() -> Report:
    """Return the report of a shard_map that sums over an axis."""

    def body(x):
        return jax.lax.psum(x * 2, "data")

    x = jax.ShapeDtypeStruct((8, 16), jnp.float32)
    mesh = "data=2,model=2"
    return sn.explain(body, x, mesh=mesh, axes="manual", in_specs=P("data"), out_specs=P())


def look(report: Report) -> None:
    """Show a report in every way in which it can be shown."""
    str(report)
    html.render(report)
    report._repr_mimebundle_()
    str(report.diff(report))
    again = Report.from_json(report.to_json())
    assert Report.from_json(again.to_json()) == again


@cache
def reports() -> tuple[dict[str, Any], ...]:
    """Give reports as the data of their JSON: with origins, prices, types, fixes and coordinates."""
    cpu = compiled("cpu")
    first, *others = cpu.collectives
    fix = Fix("x = P('data', None)", (4, 2), (100, 50), (10, 20), Location(0, 1))
    fixed = replace(cpu, collectives=(replace(first, fixes=(fix,)), *others))
    chips = replace(cpu.mesh, coords=((0, 0), (0, 1), (1, 0), (1, 1)), cores=(0, 0, 0, 0))
    priced = replace(cpu, mesh=chips).on_hardware("v5e:2x2")
    data = (cpu, fixed, priced, typed(), sn.explain_hlo(GPU))
    return tuple(json.loads(report.to_json(texts=False)) for report in data)


def typed() -> Report:
    """Return the report of a function with explicit axes, which has a typed view."""
    x = jax.ShapeDtypeStruct((8, 16), jnp.float32)
    w = jax.ShapeDtypeStruct((16, 8), jnp.float32)
    specs = (P("data"), P(None, "model"))
    return sn.explain(jnp.matmul, x, w, mesh="data=2,model=2", axes="explicit", in_specs=specs)


def look_at_figures(report: Report) -> None:
    """Draw what takes longer: the figure, and the seconds where the report has them."""
    plt.close(report.figure())
    with suppress(ValueError):  # the hardware may not have such a mesh
        report.on_hardware("v5e")
    report.on_hardware("h100")
    if report.cost is not None:
        plt.close(report.roofline())


@cache
def folder() -> dict[str, str]:
    """Return what XLA leaves in a folder of the program of `compiled`, by the names of `Dumps`."""
    with tempfile.TemporaryDirectory() as name:
        options = {
            "xla_dump_to": name,
            "xla_dump_hlo_as_text": True,
            "xla_dump_hlo_pass_re": "spmd|shardy",
        }
        mesh = make_grid("data=2,model=2").mesh
        specs = (P(None, "model"), P("data"))
        shapes = ((3, 16, 16), (8, 16))
        args = [
            jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, spec))
            for shape, spec in zip(shapes, specs, strict=True)
        ]
        jax.jit(step).lower(*args).compile(compiler_options=options)
        (program,) = programs_of(Path(name))
        dumps = program.read()
    names = ("before", "partitioned", "stated", "propagated", "optimized", "buffers", "live_ranges")
    return {name: getattr(dumps, name) for name in names}
