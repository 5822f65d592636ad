"""What a report says of a collective beyond its reason: who states which sharding, and what divides."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.causes.names import ValueNames
from shardnb.causes.unpartitioned import Unpartitioned
from shardnb.report.model import Mesh
from shardnb.texts import hlo
from shardnb.texts.instruction import Instruction
from shardnb.texts.shardings import LayoutReader


def f32(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def explained(fn, *arrays, mesh="data=4,model=2", **options):
    return sn.explain(fn, *arrays, mesh=mesh, **options)


def because(fn, *arrays, **options):
    (collective,) = explained(fn, *arrays, **options).collectives
    return collective.why.partition(": ")[2]


# Who states the sharding that is asked for, and as which spec: what was written, and nothing else


def constrained(x):
    return lax.with_sharding_constraint(x, P())


def constrained_later(x):
    return lax.with_sharding_constraint(jnp.sin(x), P())


def mapped(x):
    return jax.shard_map(jnp.sin, in_specs=P(), out_specs=P())(x)


@pytest.mark.parametrize(
    ("fn", "options", "stated"),
    [
        (constrained, {}, "it must be P(), because of a sharding constraint"),
        (constrained_later, {}, "jnp.sin(x) must be P(), because of a sharding constraint"),
        (mapped, {}, "it must be P(), because of the in_specs of a shard_map"),
        (lambda x: x, {"out_specs": P()}, "it must be P(), because of out_specs"),
        (
            lambda x: jax.sharding.reshard(x, P()),
            {"axes": "explicit"},
            "it must be P(), because of a reshard",
        ),
    ],
)
def test_a_sharding_that_was_written_is_quoted_with_what_states_it(fn, options, stated):
    assert because(fn, f32(64, 32), in_specs=P("data"), **options) == (
        f"x is sharded over data on dimension 0, but {stated}."
    )


def test_out_specs_are_quoted_as_they_were_written():
    report = explained(lambda x: x, f32(64, 32), in_specs=P("model"), out_specs=P("data"))
    (moved,) = report.collectives
    assert moved.needed_spec == (("data",), ())
    assert moved.why.endswith("but it must be P('data'), because of out_specs.")


def test_a_constraint_upstream_of_what_it_moves_is_not_quoted_as_that_ones_spec():
    # x is gathered in full, as the rows of x @ w are; P() is in no line of the program.
    def fn(x, w):
        return lax.with_sharding_constraint(x @ w, P(None, "model"))

    said = because(fn, f32(64, 32), f32(32, 16), in_specs=(P("data"), P()))
    assert said.endswith("but x @ w must be P(None, 'model'), because of a sharding constraint.")


def test_what_is_repeated_has_the_sharding_of_what_takes_it_and_disagrees_with_nothing():
    def scaled_for_a_constraint(x, scale):
        return lax.with_sharding_constraint(jnp.sin(x) * scale, P("data"))

    specs = (P(("data", "model")), P())
    (moved,) = explained(scaled_for_a_constraint, f32(64, 32), f32(32), in_specs=specs).collectives
    # Nothing shards scale, nor the rows in which it is repeated: the constraint does.
    assert (moved.reason, moved.asked_by) == ("output-spec", "requested")
    assert moved.why.endswith(
        "jnp.sin(x) * scale must be P('data'), because of a sharding constraint."
    )


def test_the_line_of_a_constraint_is_not_said_to_be_that_of_what_takes_the_value():
    def multiplied_and_constrained(x, w):
        product = jnp.sin(x) @ w
        return lax.with_sharding_constraint(product, P(None, "model"))

    specs = (P("data"), P())
    (moved,) = explained(
        multiplied_and_constrained, f32(64, 32), f32(32, 16), in_specs=specs
    ).collectives
    line = multiplied_and_constrained.__code__.co_firstlineno + 2
    assert moved.line == line
    assert f" before jnp.sin(x) @ w, requested at line {line}: " in moved.why


def test_a_dimension_that_a_constraint_leaves_open_is_not_quoted():
    def fn(x):
        open_columns = P(None, P.UNCONSTRAINED)
        return lax.with_sharding_constraint(jnp.sin(x), open_columns)

    for spec in (P("data", "model"), P("data")):
        said = because(fn, f32(64, 32), in_specs=spec)
        assert said.endswith("must be sharded differently, because of a sharding constraint.")


def test_the_finding_says_what_states_the_sharding_that_undoes_another():
    (finding,) = explained(constrained, f32(64, 32), in_specs=P("data")).findings
    assert finding.message == "x is P('data'), but it must be P(), because of a sharding constraint"


# What an operation needs in full, and what does not divide


@pytest.mark.parametrize(
    ("fn", "said"),
    [
        (lambda x: jnp.cumsum(x, 0), "cumsum needs the full dimension on each device"),
        (lambda x: jnp.linalg.svd(x)[1], "the partitioner does not keep svd sharded here"),
    ],
)
def test_a_gather_for_an_operation_does_not_say_that_each_device_runs_all_of_it(fn, said):
    (finding,) = explained(fn, f32(64, 64), in_specs=P("data")).findings
    assert finding.message == f"x is gathered, because {said}"


def test_rows_of_a_result_that_do_not_divide_are_counted():
    # (40 - 4) / 4 + 1 = 10 rows, over 8 devices.
    def fn(x, kernel):
        return lax.conv_general_dilated(x, kernel, (4,), "VALID", None, None, ("NHC", "HIO", "NHC"))

    report = explained(
        fn, f32(2, 40, 4), f32(4, 4, 4), mesh="data=8", in_specs=(P(None, "data"), P())
    )
    assert report.collectives[0].reason == "uneven"
    assert report.collectives[0].detail == (
        "dimension 1 (10) of the result is not divisible by the 8 devices along data"
    )


# What a reduction does: the computation that the collective applies says it


def summed_up(reduce):
    def local(x):
        return lax.scan(lambda total, row: (total + reduce(row.sum(), "data"), None), 0.0, x)[0]

    return jax.shard_map(local, in_specs=P(None, "data"), out_specs=P())


@pytest.mark.parametrize(
    ("reduce", "said", "findings"),
    [
        (lax.psum, "adds up", ["accumulation"]),
        # max(a, b) + max(c, d) is not max(a + c, b + d), so it cannot wait until after the loop.
        (lax.pmax, "takes the maximum of", []),
        (lax.pmin, "takes the minimum of", []),
    ],
)
def test_what_a_reduction_does_is_read_from_the_program(reduce, said, findings):
    report = explained(summed_up(reduce), f32(16, 64), in_specs=P(None, "data"))
    (collective,) = report.collectives
    assert f": the program {said} what each device along data holds." in collective.why
    assert [finding.kind for finding in report.findings] == findings


def test_a_reduction_that_the_compiler_completes_is_not_called_a_sum():
    assert because(lambda x: (x > 0).any(), f32(64, 32), in_specs=P("data")) == (
        "(x > 0).any() reduces over a dimension sharded over data, so each device has only a "
        "partial result."
    )


# Which dimension and which array are meant


def test_a_gather_picks_from_a_dimension_and_contracts_none():
    indices = jax.ShapeDtypeStruct((1024,), jnp.int32)
    said = because(
        lambda x, i: x[i], f32(1024, 256), indices, mesh="expert=8", in_specs=P("expert")
    )
    assert said.startswith("x is sharded over expert on the dimension that the indices pick from, ")


def test_a_concatenation_needs_the_dimension_that_it_joins_and_not_the_one_it_computes_along():
    def fn(x, y):
        return jnp.concatenate([x, y], 0)

    report = explained(fn, f32(64, 32), f32(64, 32), mesh="data=8", in_specs=(P("data"), P()))
    _, back = report.collectives
    assert back.why.endswith(
        "result of concatenate is sharded over data on dimension 1, "
        "but concatenate needs dimension 0 in full on each device."
    )


def test_an_array_that_only_a_later_operation_takes_is_named_with_that_operation():
    # By hand: data shards the columns of the transposed tile and the rows of y.
    def added(x, y):
        return jnp.tile(x, (1, 2)).T + y

    report = explained(added, f32(64, 32), f32(64, 64), mesh="data=8", in_specs=P("data"))
    assert {c.consumer for c in report.collectives} == {"tile"}
    for collective in report.collectives:
        assert collective.why.endswith(
            "another dimension of y, which the result meets in jnp.tile(x, (1, 2)).T + y."
        )


def test_what_xla_puts_into_a_loop_is_not_called_a_loop():
    reduce, loop = (
        Instruction("i", opcode, "f32[]", "%x", ', metadata={op_name="jit(f)/while"}', "body")
        for opcode in ("reduce", "while")
    )
    names = ValueNames(Unpartitioned(hlo.Module("m", ""), LayoutReader(Mesh((), (0,)))), ())
    assert (names.operation(reduce), names.operation(loop)) == ("reduce", "while")


def test_what_a_loop_or_a_branch_returns_is_said_to_ask_for_its_sharding():
    def turned(x):
        return lax.fori_loop(0, 5, lambda _, h: h.T, x)

    assert because(turned, f32(64, 64), mesh="data=8", in_specs=P("data")) == (
        "carried x is sharded over data on dimension 0, but the loop carries what is computed from "
        "it with another sharding, so carried x is resharded."
    )
