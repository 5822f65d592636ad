"""Collectives that autodiff adds inside a shard_map: who asked, the pass, and whose gradient."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

import shardnb as sn
from shardnb.report import Collective

NEXT = [(i, (i + 1) % 8) for i in range(8)]


def _array(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def _collectives(
    function: Any, *arguments: Any, specs: Any, mesh: str = "data=8"
) -> list[Collective]:
    return list(sn.explain(function, *arguments, mesh=mesh, in_specs=specs).collectives)


def test_the_transpose_of_a_pvary_is_autodiffs_and_the_gradient_of_what_was_cast() -> None:
    def transposed_pvary(x: Any, w: Any) -> Any:
        def inner(x: Any, w: Any) -> Any:
            return lax.psum(jnp.sum(jnp.sin(x @ w)), "data")

        loss = jax.shard_map(inner, in_specs=(P("data"), P()), out_specs=P())
        return jax.grad(loss, 1)(x, w)

    (one,) = _collectives(transposed_pvary, _array(16, 4), _array(4, 4), specs=(P("data"), P()))
    assert (one.kind, one.shape, one.phase) == ("all-reduce", (4, 4), "backward")
    assert (one.asked_by, one.by_autodiff) == ("called", True)
    assert (one.role, one.role_of, one.reason) == ("gradient", "w", "partial-sum")


def test_what_transposes_an_all_gather_is_autodiffs_and_the_gather_stays_called() -> None:
    def gathered(x: Any, w: Any) -> Any:
        def inner(x: Any, w: Any) -> Any:
            whole = lax.all_gather(w, "model", tiled=True)
            return lax.pmean((jnp.tanh(x @ whole) ** 2).sum(), "data")

        loss = jax.shard_map(
            inner, in_specs=(P("data"), P("model")), out_specs=P(), check_vma=False
        )
        return jax.value_and_grad(lambda w: loss(x, w))(w)

    specs = (P("data"), P("model"))
    found = _collectives(gathered, _array(16, 8), _array(8, 8), specs=specs, mesh="data=4,model=2")
    by_pass = {(one.kind, one.phase): one for one in found}
    gather = by_pass["all-gather", "forward"]
    assert (gather.asked_by, gather.role, gather.role_of) == ("called", "parameter-gather", "w")
    scatter = by_pass["reduce-scatter", "backward"]
    assert (scatter.by_autodiff, scatter.role_of) == (True, "w")
    assert not by_pass["all-reduce", "forward"].by_autodiff
    assert {one.by_autodiff for one in found if one.phase == "backward"} == {True}


def test_all_to_alls_of_one_channel_are_told_apart_by_line_and_pass() -> None:
    def ulysses(x: Any, w: Any) -> Any:
        def inner(x: Any, w: Any) -> Any:
            y = lax.all_to_all(x @ w, "data", 1, 0, tiled=True)
            z = lax.all_to_all(jnp.exp(y), "data", 0, 1, tiled=True)
            return lax.psum((z**2).sum(), "data")

        loss = jax.shard_map(inner, in_specs=(P("data"), P()), out_specs=P())
        return jax.grad(loss)(x, w)

    found = _collectives(ulysses, _array(32, 8, 4), _array(4, 4), specs=(P("data"), P()))
    asked = [(one.by_autodiff, one.phase, one.producer, one.consumer) for one in found]
    assert asked == [
        (False, "forward", "x @ w", "exp"),
        (False, "forward", "jnp.exp(y)", "mul"),
        (True, "backward", "result of mul", "mul"),
        (True, "backward", "result of mul", "dot_general"),
    ]
    texts = str(
        sn.explain(
            ulysses, _array(32, 8, 4), _array(4, 4), mesh="data=8", in_specs=(P("data"), P())
        )
    )
    assert texts.count("autodiff added this") == texts.count("you called this collective") == 2


def test_psum_in_a_custom_vjp_is_called_by_the_user() -> None:
    @jax.custom_vjp
    def same(x: Any) -> Any:
        return x

    def forward(x: Any) -> Any:
        return x, None

    def backward(_: None, cotangent: Any) -> Any:
        return (lax.psum(cotangent, "data"),)

    same.defvjp(forward, backward)

    def program(x: Any, w: Any) -> Any:
        def inner(x: Any, w: Any) -> Any:
            return jnp.sum(jnp.sin(x @ same(w)))[None]

        loss = jax.shard_map(inner, in_specs=(P("data"), P()), out_specs=P("data"), check_vma=False)
        return jax.grad(lambda w: loss(x, w).sum())(w)

    found = _collectives(program, _array(16, 4), _array(4, 4), specs=(P("data"), P()))
    # The one of `backward`, and the one that the shard_map adds for `w`, which it has on all devices.
    assert [(one.by_autodiff, one.phase) for one in found] == [
        (False, "backward"),
        (True, "backward"),
    ]


def test_steps_of_an_unrolled_ring_are_told_apart_by_what_they_send() -> None:
    def unrolled_ring(k: Any, v: Any) -> Any:
        def inner(k: Any, v: Any) -> Any:
            total = k * 0
            for _ in range(3):
                total += jnp.tanh(k) @ v.T @ k
                k, v = lax.ppermute((k, v), "data", NEXT)
            return total

        return jax.shard_map(inner, in_specs=P("data"), out_specs=P("data"))(k, v)

    found = _collectives(unrolled_ring, _array(32, 4), _array(32, 4), specs=(P("data"), P("data")))
    assert sorted(str(one.producer) for one in found) == [
        "k",
        "result of ppermute",
        "result of ppermute",
        "v",
    ]


def test_permutes_of_one_channel_are_told_apart_by_their_lines() -> None:
    def halo(u: Any) -> Any:
        def inner(u: Any) -> Any:
            up = lax.ppermute(u[-1:], "data", NEXT)
            down = lax.ppermute(jnp.sin(u[:1]), "data", [(j, i) for i, j in NEXT])
            return jnp.concatenate([up, u, down])

        return jax.shard_map(inner, in_specs=P("data"), out_specs=P("data"))(u)

    found = _collectives(halo, _array(16, 4), specs=(P("data"),))
    assert {(one.producer, one.consumer) for one in found} == {
        ("slice of u", "concatenate"),
        ("jnp.sin(u[:1])", "concatenate"),
    }
