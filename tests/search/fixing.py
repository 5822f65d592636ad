"""What the tests of fixes share: programs, searched."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from shardnb.compiler import Request
from shardnb.compiler.call import texts_of
from shardnb.engine import compile_and_analyse
from shardnb.mesh import make_grid
from shardnb.search.fixes import find_fixes

M42 = "data=4,model=2"
M8 = "data=8"


def f32(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def made(fn, mesh, axes="auto", out_specs=None, **inputs):
    """Build a program of arrays given as `name=(array, spec)`, and its report."""
    return compile_and_analyse(
        Request(
            fn,
            {name: array for name, (array, _) in inputs.items()},
            make_grid(mesh, axes),
            {name: spec for name, (_, spec) in inputs.items()},
            out_specs,
            texts=texts_of(fn),
        )
    )


def searched(*args, seconds=120.0, **options):
    program, report = made(*args, **options)
    return find_fixes(program, report, seconds=seconds)


def operations(report):
    """Count the collectives of a report, combined ones as one."""
    return len({min((c.id, *c.combined_with)) for c in report.collectives})


def edits_of(collective):
    return [fix.edit for fix in collective.fixes]


def tanh_matmul(a, b):
    return jnp.tanh(a @ b)


def case_3():
    a, b = (f32(256, 512), P("data", "model")), (f32(512, 1024), P("model", None))
    return made(tanh_matmul, M42, a=a, b=b)
