"""Assertions on what a program sends and holds, for tests.

from shardnb.testing import assert_collectives

def test_the_layer_sends_one_all_reduce():
    assert_collectives(layer, (x, w), mesh="data=4,model=2", expect={"all-reduce": 1})

pytest finds them as fixtures of the same names as well (see `shardnb.pytest_plugin`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from shardnb.cost import Given, on_hardware
from shardnb.cost.sizes import read_size
from shardnb.engine import explain
from shardnb.guards import Rule
from shardnb.report import Collective, InvalidInput, Report
from shardnb.report.golden import Golden
from shardnb.report.invalid_input import place
from shardnb.terms.collectives import KINDS
from shardnb.views import golden as golden_words
from shardnb.views import guards as words

Tree = Any
Program = Callable[..., Tree] | Report
"""A function, which is compiled for its arguments, or the report of a program."""


def assert_collectives(
    program: Program,
    args: Sequence[Tree] = (),
    *,
    expect: Mapping[str, int],
    max_wire_bytes: int | None = None,
    **options: Any,
) -> Report:
    """Compile `program(*args)`, assert which collectives it has, and return the report.

    `expect` maps each kind, or each kind over axes (`all-reduce[model]`, `all-gather[data,model]`),
    to how many there should be; any other collective fails the test. `max_wire_bytes` limits the
    bytes that each device sends per call. `options` are those of `shardnb.explain`, such as `mesh`
    and `in_specs`. In place of a function it takes a report, such as one of `sn.watch`.

    Raises `AssertionError` with the full report, and `ValueError` for a kind that does not exist.

    >>> import jax, jax.numpy as jnp
    >>> from jax.sharding import PartitionSpec as P
    >>> x = jax.ShapeDtypeStruct((8, 16), jnp.float32)
    >>> report = assert_collectives(
    ...     jnp.sum, (x,), mesh="data=8", in_specs=(P("data"),), expect={"all-reduce[data]": 1}
    ... )
    """
    __tracebackhide__ = True
    for key in expect:
        if key.partition("[")[0] not in KINDS:
            raise ValueError(f"{key!r} is not a collective; the kinds are {', '.join(KINDS)}")
    report = _report(program, args, options)
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


def assert_no_inferred(
    program: Program,
    args: Sequence[Tree] = (),
    *,
    allow: Sequence[str] = (),
    allow_typical: bool = False,
    **options: Any,
) -> Report:
    """Compile `program(*args)`, and assert that the compiler inserted no collective.

    `allow` has kinds that may be there all the same, such as `all-reduce` or `all-reduce[data]`;
    with `allow_typical` those may that are typical of a strategy, such as the sum of a gradient in
    data parallelism. The rest is as for `assert_collectives`.

    Raises `AssertionError` with each collective, its line, what is sent and why; one whose asker is
    unknown counts as inserted.

    >>> import jax, jax.numpy as jnp
    >>> from jax.sharding import PartitionSpec as P
    >>> x = jax.ShapeDtypeStruct((8, 16), jnp.float32)
    >>> report = assert_no_inferred(jnp.tanh, (x,), mesh="data=8", in_specs=(P("data"),))
    """
    __tracebackhide__ = True
    rule = Rule(("inferred",), tuple(allow), allow_typical)
    report = _report(program, args, options)
    if broken := rule.broken(report):
        raise AssertionError(words.failed(report.title, broken))
    return report


def assert_fits(
    program: Program,
    args: Sequence[Tree] = (),
    *,
    memory: int | str | None = None,
    hardware: Given | None = None,
    **options: Any,
) -> Report:
    """Compile `program(*args)`, and assert that each device can hold what it needs.

    `memory` is what a device has, in bytes or as `16GiB`. Without it, it is that of `hardware`,
    such as `v5e` or `h100:4x8`, else that of the devices it is compiled for (`on="v5e:4x4"`). The
    program's memory is that of the compiler that compiles it. The rest is as for
    `assert_collectives`.

    Raises `AssertionError` with what the memory is for, and if it is not known; `ValueError` if the
    memory of a device is not known.

    >>> import jax, jax.numpy as jnp
    >>> x = jax.ShapeDtypeStruct((1024, 1024), jnp.float32)
    >>> report = assert_fits(jnp.tanh, (x,), mesh="data=8", memory=16 * 2**20)
    """
    __tracebackhide__ = True
    report = _report(program, args, options)
    priced = report if hardware is None else on_hardware(report, hardware)
    what, has = "the memory that is given", None if memory is None else read_size(memory)
    if has is None:
        has = priced.cost.memory_size if priced.cost else None
        what = f"the memory of {priced.cost.hardware}" if priced.cost else ""
    if has is None:
        raise ValueError(
            "the memory of these devices is not known: pass memory=16 * 2**30, or hardware='v5e'"
        )
    if report.memory is None or report.memory.total > has:
        message = words.holds_too_much(report, has, what)
        raise AssertionError(words.failed(report.title, [message]))
    return report


def assert_golden(
    program: Program,
    args: Sequence[Tree] = (),
    *,
    path: str | Path,
    update: bool = False,
    **options: Any,
) -> Report:
    """Compile `program(*args)`, and assert that it sends what the golden report in `path` says.

    A golden report has each collective by the text of its line, its operation, kind and axes, with
    how many there are and the bytes sent. It holds across versions of JAX where they compile to the
    same collectives. With `update` it is written. The rest is as for `assert_collectives`.

    Raises `AssertionError` with what changed, where and why, and if there is no golden report yet;
    `InvalidInput` for a file that is not one.

    >>> import jax, jax.numpy as jnp, tempfile
    >>> x = jax.ShapeDtypeStruct((8, 16), jnp.float32)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = f"{folder}/tanh.json"
    ...     report = assert_golden(jnp.tanh, (x,), path=path, update=True, mesh="data=8")
    ...     report = assert_golden(jnp.tanh, (x,), path=path, mesh="data=8")
    """
    __tracebackhide__ = True
    report, path = _report(program, args, options), Path(path)
    after = golden_words.golden_of(report)
    if update:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(after.to_json(), encoding="utf-8")
        return report
    if not path.is_file():
        raise AssertionError(golden_words.missing(report.title, path.name))
    with place(str(path)):
        try:
            before = Golden.from_json(path.read_text(encoding="utf-8"))
        except UnicodeDecodeError as error:
            raise InvalidInput(f"this is not a golden report: {error}") from error
    if lines := golden_words.differences(before, after):
        raise AssertionError(golden_words.differs(report.title, path.name, lines))
    return report


def _report(program: Program, args: Sequence[Tree], options: Mapping[str, Any]) -> Report:
    if not isinstance(program, Report):
        return explain(program, *args, **options)
    if args or options:
        raise TypeError("a report is taken as it is: pass no arguments or options with it")
    return program


def _key(collective: Collective, expect: Mapping[str, int]) -> str:
    """Name a collective as `expect` does: with its axes if `expect` names them."""
    named = f"{collective.kind}[{','.join(collective.axes or ())}]"
    return named if named in expect or collective.kind not in expect else collective.kind
