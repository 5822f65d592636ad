"""Reports built by hand, so that no view's test needs a compiler."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from shardnb.report import (
    Axis,
    Collective,
    Finding,
    Fix,
    Location,
    Memory,
    Mesh,
    Report,
    Run,
    Source,
    Value,
)

CODE = "h = x @ W\ny = jnp.tanh(h)\n"
KiB = 1024
MiB = 1024 * KiB


def mesh_of(**sizes: int) -> Mesh:
    """Return an emulated mesh."""
    axes = tuple(Axis(name, size) for name, size in sizes.items())
    return Mesh(axes, tuple(range(math.prod(sizes.values()))), emulated=True)


def sketch() -> Report:
    """Return the report of the look's sketch: one all-reduce at the first line."""
    mesh = mesh_of(data=4, model=2)
    return Report(
        title="cell",
        mesh=mesh,
        inputs=(
            Value("x", "f32", (256, 512), (("data",), ("model",)), (64, 256)),
            Value("W", "f32", (512, 1024), (("model",), ()), (256, 1024)),
        ),
        outputs=(Value("y", "f32", (256, 1024), (("data",), ()), (64, 1024)),),
        collectives=(all_reduce(),),
        memory=Memory(arguments=64 * KiB + MiB, outputs=256 * KiB, temporaries=0),
        sources=(Source("cell", CODE),),
        versions={"jax": "0.12.0.1"},
        run=Run(compile_seconds=0.18),
    )


def all_reduce() -> Collective:
    """Return the sketch's collective, explained."""
    return Collective(
        id=0,
        kind="all-reduce",
        axes=("model",),
        groups=((0, 1), (2, 3), (4, 5), (6, 7)),
        dtype="f32",
        shape=(64, 1024),
        wire_bytes=256 * KiB,
        generated=True,
        asked_by="inferred",
        reason="partial-sum",
        why="both operands of x @ W are sharded over model on the contracting dim, "
        "so each device holds a partial sum.",
        fixes=(Fix("x=P('data') W=P(None, 'model')", (1, 0), (256 * KiB, 0), (0, 128 * KiB)),),
        frames=(Location(0, 1),),
        instruction="%all-reduce = f32[64,1024] all-reduce(%dot), replica_groups=[4,2]<=[8]",
    )


def wide(rows: int = 128, columns: int = 16) -> Report:
    """Return a report on a mesh of 2048 devices."""
    mesh = mesh_of(data=rows, model=columns)
    groups = tuple(tuple(range(i * columns, (i + 1) * columns)) for i in range(rows))
    shape = (rows * 8, columns * 64)
    return replace(
        sketch(),
        mesh=mesh,
        inputs=(
            Value("x", "f32", shape, (("data",), ("model",)), (8, 64)),
            Value("W", "f32", shape, (("model",), ()), (rows * 8 // columns, shape[1])),
            Value("b", "f32", (1024,), ((),), (1024,)),
            Value("t", "f32", (2048, 4), (("data", "model"), ()), (1, 4)),
        ),
        outputs=(Value("y", "f32", shape, (("data",), ()), (8, shape[1]), unreduced=("model",)),),
        collectives=(replace(all_reduce(), groups=groups),),
    )


def many(number: int = 5000) -> Report:
    """Return a report of many collectives on 2048 devices, in a handful of kinds and lines."""
    report = wide()
    base = report.collectives[0]
    code = "\n".join(f"step_{i} = f(step_{i - 1})" for i in range(1, 101))
    kinds = ("all-reduce", "all-gather", "reduce-scatter")
    collectives = tuple(
        replace(
            base,
            id=i,
            kind=kinds[i % 3],
            shape=(64, 16 * (i % 7 + 1)),
            frames=(Location(0, i % 100 + 1),),
            trips=None if i % 500 == 0 else i % 5 + 1,
            fixes=None,
        )
        for i in range(number)
    )
    return replace(report, collectives=collectives, sources=(Source("cell", code),))


def finding() -> Finding:
    """Return a finding with a line and a price."""
    return Finding("silent replication", "y is replicated on every device", Location(0, 2), MiB)


def rich() -> Report:
    """Return a report with everything that a view has to say: loops, groups, findings, notes."""
    base = sketch()
    first = base.collectives[0]
    ring = tuple((i, (i + 1) % 8) for i in range(8))
    plain = replace(first, fixes=None, why="", instruction="%c = f32[64,1024] ...")
    collectives = (
        first,
        replace(
            plain,
            id=1,
            kind="all-gather",
            axes=("data",),
            trips=4,
            phase="backward",
            asked_by="requested",
            reason="output-spec",
            groups=((0, 2, 4, 6), (1, 3, 5, 7)),
            wire_bytes=192 * KiB,
            within=("while",),
            full_remat=True,
            consumer="the constraint",
            producer="h",
            producer_spec=(("data",), ()),
            needed_spec=((), ()),
            frames=(Location(1, 3, "layer"), Location(0, 2)),
        ),
        replace(
            plain,
            id=2,
            kind="collective-permute",
            axes=("data", "model"),
            groups=ring,
            generated=False,
            asked_by="called",
            reason=None,
            trips=None,
            combined_with=(3,),
            within=("while",),
            frames=(Location(2, 88, "roll"),),
        ),
        replace(
            plain,
            id=3,
            axes=None,
            groups=((0, 3), (1, 2), (4, 5, 6)),
            asked_by=None,
            reason=None,
            combined_with=(2,),
            frames=(),
            fixes=(),
            seconds=0.00123,
        ),
    )
    heads = Value("k", "bf16", (16, 8, 32, 64), (("data",), ("model",), (), ()), (4, 4, 32, 64))
    return replace(
        base,
        collectives=collectives,
        inputs=(
            *base.inputs,
            heads,
            Value("s", "f32", (), (), ()),
            Value("v", "f32", (64,), (("data", "model"),), (8,), closed_over=True),
            Value(
                "q", "f32", (16, 16), None, (4, 16), grid=(4, 1), blocks=(0, 0, 1, 1, 3, 3, 2, 2)
            ),
            Value("lost", "f32", (16,), None, (16,)),
            Value("e", "f32", (0,), ((),), (0,)),
        ),
        outputs=(
            replace(base.outputs[0], unreduced=("model",)),
            Value("z", "f32", (17, 16), ((), ()), (17, 16), requested=(("data",), ())),
        ),
        values=(Value("h", "f32", (256, 1024), (("data",), ()), (64, 1024), ("model",)),),
        findings=(finding(),),
        notes=("fft's answer depends on the version of jax",),
        sources=(
            Source("cell 4", CODE),
            Source("cell 2", "def layer(x):\n    h = x\n    return h"),
            Source("jax/numpy/lax.py", ""),
        ),
        texts={"jaxpr": "{ lambda ; a:f32[]. let in (a,) }", "optimized": "HloModule m\n" * 20000},
    )


def hostile() -> Report:
    """Return a report whose every text tries to break out of where it stands."""
    bad = "</td></pre></details><script>alert(1)</script>'\"<b>&amp;\x1b[31m\u202e\ud800$x_$"
    base = rich()
    text = f"{bad} = 1\n\t{bad}\n"
    return replace(
        base,
        title=bad,
        mesh=replace(base.mesh, target=bad, kind=bad),
        inputs=tuple(replace(value, name=bad) for value in base.inputs),
        collectives=tuple(
            replace(
                c,
                why=bad if c.id % 2 else "",
                producer=bad,
                consumer=bad,
                op_name=bad,
                instruction=bad,
                detail=bad,
                within=(bad,),
                phase=bad,
                fixes=(Fix(bad, (1, 0), (1, 0), (0, 1)),),
            )
            for c in base.collectives
        ),
        findings=(Finding(bad, bad, Location(0, 1), 1, bad),),
        notes=(bad,),
        sources=tuple(Source(bad, text) for _ in base.sources),
        versions={"jax": bad},
        texts={bad: text},
    )


@pytest.fixture
def report() -> Report:
    """Return the report of the look's sketch."""
    return sketch()


@pytest.fixture
def rich_report() -> Report:
    """Return a report with everything that a view has to say."""
    return rich()


@pytest.fixture
def wide_report() -> Report:
    """Return a report on 2048 devices."""
    return wide()


@pytest.fixture
def many_report() -> Report:
    """Return a report of 5,000 collectives on 2048 devices."""
    return many()


@pytest.fixture
def hostile_report() -> Report:
    """Return a report whose texts try to break out."""
    return hostile()
