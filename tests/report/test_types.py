"""What is said of types and errors is plain data, as a report is."""

import msgspec
import pytest

from shardnb.report import Axis, Location, Mesh, Report, Source, Value
from shardnb.report.typed import TypedLine, TypedValue
from shardnb.report.types import (
    Annotation,
    Candidate,
    CheckStep,
    Column,
    Comparison,
    ErrorReport,
    ExplicitPlan,
    MissingCollective,
    ProgramDiff,
    Shard,
    ShardMapCheck,
    SpecProblem,
    TypedProgram,
)

MESH = Mesh((Axis("data", 4, "explicit"),), (0, 1, 2, 3))
X = Value("x", "f32", (8, 4), (("data",), ()), (2, 4))
HERE = Location(0, 2, "f")
CELL = Source("cell", "def f(x):\n    return x @ x\n")
REPORT = Report("f", MESH)
PROBLEM = SpecProblem("uneven", "input", "x", "no", (7,), fitting=(("data", 1),))
ERROR = ErrorReport(
    "ambiguous-contraction",
    "ShardingTypeError",
    "...",
    "x @ x sums over what both split",
    "cause",
    (X,),
    MESH,
    location=HERE,
    expression="x @ x",
    fixes=("return jnp.matmul(x, x, out_sharding=P())",),
    candidates=(
        Candidate("jnp.matmul(...)", "P()", (("all-reduce", ("data",)),), 96, chosen=True),
    ),
    sources=(CELL,),
    problems=(PROBLEM,),
)
LINE = TypedLine("pvary", (TypedValue("a", "f32[2]", "f32", (2,), ((),)),), ("x",), inserted=True)
DIFF = ProgramDiff("auto", "explicit", "identical")
CHECK = ShardMapCheck(
    accepted=False,
    mesh=MESH,
    error="ValueError",
    steps=(CheckStep("the body traces", None),),
    inputs=(Shard("x", "P('data')", (8,), (2,), "f32", ("data",)),),
    lines=(LINE,),
    missing=(MissingCollective("result", ("data",), "psum", "partial", "jax.lax.psum(x, 'data')"),),
    report=REPORT,
)
PLAN = ExplicitPlan(
    (Annotation("reshard", "x", "P()", "x", "reshard(x)", from_auto=True, location=HERE),),
    REPORT,
    REPORT,
    DIFF,
)


@pytest.mark.parametrize(
    "data",
    [
        ERROR,
        CHECK,
        PLAN,
        Comparison((Column("auto", REPORT), Column("explicit", error=ERROR)), (DIFF,)),
        TypedProgram((LINE,), (CELL,)),
    ],
    ids=lambda data: type(data).__name__,
)
def test_it_survives_json(data):
    text = msgspec.json.encode(data)
    assert msgspec.json.decode(text, type=type(data)) == data


def test_a_coercion_is_marked_in_the_typed_view():
    assert str(LINE) == "a:f32[2] = pvary x    # inserted by JAX"
