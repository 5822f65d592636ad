"""Assertions on the collectives of a program, for tests.

from shardnb.testing import assert_collectives

def test_the_layer_sends_one_all_reduce():
    assert_collectives(layer, (x, w), mesh="data=4,model=2", expect={"all-reduce": 1})
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax

from shardnb.engine import explain
from shardnb.report import Collective, Report
from shardnb.terms.collectives import KINDS

Tree = Any


def assert_collectives(
    fn: Callable[..., Tree],
    args: Sequence[Tree],
    *,
    expect: Mapping[str, int],
    mesh: str | jax.sharding.Mesh | None = None,
    max_wire_bytes: int | None = None,
    **options: Any,
) -> Report:
    """Compile `fn(*args)`, assert which collectives it has, and return the report.

    `expect` maps each kind, or each kind over axes (`all-reduce[model]`, `all-gather[data,model]`),
    to how many there should be; any other collective fails the test. `max_wire_bytes` limits the
    bytes that each device sends per call. `options` are those of `shardnb.explain`.

    Raises `AssertionError` with the full report, and `ValueError` for a kind that does not exist.

    >>> import jax, jax.numpy as jnp
    >>> from jax.sharding import PartitionSpec as P
    >>> x = jax.ShapeDtypeStruct((8, 16), jnp.float32)
    >>> report = assert_collectives(
    ...     jnp.sum, (x,), mesh="data=8", in_specs=(P("data"),), expect={"all-reduce[data]": 1}
    ... )
    """
    for key in expect:
        if key.partition("[")[0] not in KINDS:
            raise ValueError(f"{key!r} is not a collective; the kinds are {', '.join(KINDS)}")
    report = explain(fn, *args, mesh=mesh, **options)
    counts = Counter(_key(collective, expect) for collective in report.collectives)
    wrong = [
        f"{counts[key]} {key} (expected {expect.get(key, 0)})"
        for key in sorted({*counts, *expect})
        if counts[key] != expect.get(key, 0)
    ]
    if max_wire_bytes is not None and report.wire_bytes > max_wire_bytes:
        wrong.append(f"each device sends {report.wire_bytes} bytes, more than {max_wire_bytes}")
    if wrong:
        raise AssertionError(f"{report.title} has {'; '.join(wrong)}\n\n{report}")
    return report


def _key(collective: Collective, expect: Mapping[str, int]) -> str:
    """Name a collective as `expect` does: with its axes if `expect` names them."""
    named = f"{collective.kind}[{','.join(collective.axes or ())}]"
    return named if named in expect or collective.kind not in expect else collective.kind
