"""Findings: what they say, and that they stay silent where there is nothing."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import shardnb as sn
from tests.causes.cases import CASES, f32


def findings(fn, *args, kind, **options):
    report = sn.explain(fn, *args, mesh="data=8", **options)
    return [finding for finding in report.findings if finding.kind == kind]


def of_case(name, kind):
    case = CASES[name]
    return findings(case.fn, *case.args, kind=kind, in_specs=case.specs, out_specs=case.out)


def test_a_sum_over_steps_could_be_reduced_once():
    (finding,) = of_case("18 gradient accumulation", "accumulation")
    assert finding.wasted_bytes == 3 * (2 * 64 * 64 * 4 * 7 // 8)


@pytest.mark.parametrize("name", ["16 scan", "17 gradient of a scan"])
def test_other_loops_and_programs_accumulate_nothing(name):
    assert of_case(name, "accumulation") == []


def test_a_sum_that_each_step_reads_is_no_accumulation():
    def reads_the_total(w, xs):
        def step(total, x):
            return total + (x @ (w + total)).T @ x, None

        return lax.scan(step, jnp.zeros_like(w), xs)[0]

    assert (
        findings(
            reads_the_total,
            f32(64, 64),
            f32(4, 32, 64),
            kind="accumulation",
            in_specs=(P(), P(None, "data", None)),
        )
        == []
    )


def test_the_gradient_of_a_bias_that_a_scan_adds_up_is_accumulated_with_the_others():
    def loss(params, x):
        def step(h, x):
            return jnp.tanh(x @ params["w"] + h + params["b"]), None

        return jnp.sum(lax.scan(step, jnp.zeros((16, 8)), x)[0] ** 2)

    params = {"w": f32(16, 8), "b": f32(8)}
    specs = {"w": P(), "b": P()}, P(None, "data")
    kind = "accumulation"
    (finding,) = findings(jax.grad(loss), params, f32(5, 16, 16), kind=kind, in_specs=specs)
    # 4 of the 5 sums of [16, 8] and of [8] floats, each sent by the ring over 8 devices.
    assert finding.wasted_bytes == 4 * (2 * 16 * 8 * 4 * 7 // 8 + 2 * 8 * 4 * 7 // 8)


def accumulated(step, *start):
    """Return the findings of a scan over 5 batches of 16 rows that starts with a carry."""

    def accumulate(w, xs):
        return lax.scan(lambda carry, x: step(carry, x, w), start, xs)

    specs, arguments = (P(), P(None, "data")), (f32(16, 8), f32(5, 16, 16))
    return findings(accumulate, *arguments, kind="accumulation", in_specs=specs, out_specs=P())


def loss(w, x):
    return jnp.mean(jnp.cosh(x @ w))


# 16x8 floats in an all-reduce over 8 devices: each sends 2 * 512 * 7/8 bytes, and a number 7 bytes.
OF_A_GRADIENT, OF_A_LOSS = 896, 7


def test_a_stacked_loss_that_is_sent_with_the_gradient_is_not_added_up():
    def step(carry, x, w):
        value, gradient = jax.value_and_grad(loss)(w, x)
        return (carry[0] + gradient,), value

    (finding,) = accumulated(step, jnp.zeros((16, 8)))
    assert finding.wasted_bytes == 4 * OF_A_GRADIENT
    assert len(finding.collectives) == 1


def test_a_mean_that_is_added_up_counts_with_the_gradient():
    def step(carry, x, w):
        value, gradient = jax.value_and_grad(loss)(w, x)
        return (carry[0] + gradient, carry[1] + value), None

    told = accumulated(step, jnp.zeros((16, 8)), jnp.zeros(()))
    assert sum(finding.wasted_bytes for finding in told) == 4 * (OF_A_GRADIENT + OF_A_LOSS)


def test_the_gradients_of_two_parameters_are_one_finding_with_the_bytes_of_both():
    def step(carry, x, w):
        gradients = jax.grad(lambda both: jnp.mean((jnp.tanh(x @ both[0]) @ both[1]) ** 2))
        return jax.tree.map(jnp.add, carry, gradients((w, w.T))), None

    (finding,) = accumulated(step, jnp.zeros((16, 8)), jnp.zeros((8, 16)))
    assert finding.wasted_bytes == 4 * 2 * OF_A_GRADIENT
    assert "one of each after the loop" in finding.message


def test_the_inverse_of_a_sum_is_no_sum_of_inverses():
    def step(carry, x, w):
        return (carry[0] + 2 / loss(w, x),), None

    assert accumulated(step, jnp.zeros(())) == []


def test_a_collective_in_a_loop_condition():
    def until_small(x):
        return lax.while_loop(lambda x: x.sum() > 1, lambda x: x / 2, x)

    (finding,) = findings(until_small, f32(64), kind="loop condition", in_specs=(P("data"),))
    assert "condition of a loop" in finding.message


def test_a_result_that_lost_its_split_silently():
    (finding,) = of_case("19 uneven constraint", "silent replication")
    assert "was asked to be P('data') and is P(): 17 is not divisible by 8" in finding.message
    assert finding.wasted_bytes == 17 * 16 * 4 - 17 * 16 * 4 // 8


def test_a_result_that_is_as_stated_is_nothing_to_say():
    assert of_case("15 a partial sum into a split output", "silent replication") == []


def test_a_donation_that_no_result_can_take():
    def total(x, y):
        return x + 1, y.sum()

    options = {"in_specs": (P("data"), P()), "donate_argnums": (0, 1)}
    (finding,) = findings(total, f32(8, 8), f32(16, 8), kind="donation", **options)
    assert finding.message.startswith("y was donated")
    assert finding.wasted_bytes == 16 * 8 * 4


def test_a_donation_that_happened_is_nothing_to_say():
    options = {"in_specs": (P("data"),), "donate_argnums": (0,)}
    assert findings(lambda x: x + 1, f32(8, 8), kind="donation", **options) == []


def test_numbers_of_parameters_survive_unused_and_lifted_arrays():
    bias = jnp.ones((8, 8))

    def step(unused, x):
        return x + bias

    options = {"in_specs": (P(), P("data")), "donate_argnums": (1,)}
    assert findings(step, f32(4, 4), f32(8, 8), kind="donation", **options) == []
    assert jax.devices()


def test_a_full_rematerialisation_shows_both_placements():
    def steps(x):
        y = lax.with_sharding_constraint(x.reshape(8, 8, 32), P("data", None, "model"))
        return lax.with_sharding_constraint(jnp.tanh(y), P(None, ("model", "data")))

    report = sn.explain(steps, f32(64, 32), mesh="data=4,model=2", in_specs=P("data"))
    (finding,) = [f for f in report.findings if f.kind == "full rematerialisation"]
    assert finding.message.endswith("(2 collectives)")
    assert [(v.shape, v.spec, v.shard_shape) for v in finding.values] == [
        ((8, 8, 32), (("data",), (), ("model",)), (2, 8, 16)),
        ((8, 8, 32), ((), ("model", "data"), ()), (8, 1, 32)),
    ]


def test_uneven_blocks_say_what_they_pad():
    def doubled(x):
        return 2 * lax.with_sharding_constraint(jnp.sin(x), P("data"))

    (finding,) = findings(doubled, f32(30, 16), kind="uneven")
    assert finding.message.endswith(": 30 over 8 parts is padded to 32")
    # Two rows of 16 numbers, on 8 devices.
    assert finding.wasted_bytes == 2 * 16 * 4 // 8


def test_a_gather_of_this_steps_weights_is_needed():
    def steps(x, ws):
        def step(x, w):
            return jnp.tanh(x @ lax.with_sharding_constraint(w, P())), None

        return lax.scan(step, x, ws)[0]

    args = f32(16, 64), f32(4, 64, 64)
    specs = (P("data"), P(None, "data"))
    assert findings(steps, *args, kind="loop", in_specs=specs) == []


def test_a_constraint_that_is_padded_without_a_collective():
    def doubled(x):
        return lax.with_sharding_constraint(2 * x, P("data")).sum()

    (finding,) = findings(doubled, f32(30, 16), kind="uneven")
    assert "(30) is not divisible by the 8 devices along `data`" in finding.message
    assert finding.message.endswith("XLA pads it to 32")
    assert finding.wasted_bytes == 2 * 16 * 4 // 8


def test_a_constraint_that_divides_is_nothing_to_say():
    def doubled(x):
        return lax.with_sharding_constraint(2 * x, P("data")).sum()

    assert findings(doubled, f32(32, 16), kind="uneven") == []
