"""A program of the bank: a function, its mesh and specs, and the answers that were judged by hand.

Answers were read out of the programs before and after partitioning, never out of the code under
test. Each line of `expect` is one collective of the optimized program:

    KIND TYPE[SHAPE] | ASKED REASON | PRODUCER -> CONSUMER

`-` stands for no reason, `*` for what is not judged; a number in front counts equal ones.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
from jax.sharding import PartitionSpec as P

from shardnb.causes import Causes, explain_causes, read_user_shardings
from shardnb.collectives.find import find_collectives
from shardnb.compiler import Request, build
from shardnb.mesh import make_grid
from shardnb.report.model import Collective
from shardnb.texts import hlo

BANK: dict[str, Case] = {}
Answer = tuple[str, str, str, str, str, str]


@dataclass(frozen=True)
class Case:
    """One program; `arrays` are its arguments as (shape, spec) or (shape, spec, dtype)."""

    fn: Callable[..., Any]
    mesh: str
    arrays: tuple[Any, ...]
    expect: str
    out: Any = None
    axes: str = "auto"
    expect_jax_0_11: str | None = None

    @property
    def answers(self) -> Counter[Answer]:
        old = jax.__version__.startswith("0.11") and self.expect_jax_0_11 is not None
        return parse(self.expect_jax_0_11 if old else self.expect)


def case(
    mesh: str,
    *arrays: Any,
    expect: str,
    out: Any = None,
    axes: str = "auto",
    expect_jax_0_11: str | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Put a function into the bank."""

    def add(fn: Callable[..., Any]) -> Callable[..., Any]:
        assert fn.__name__ not in BANK, fn.__name__
        BANK[fn.__name__] = Case(fn, mesh, arrays, expect, out, axes, expect_jax_0_11)
        return fn

    return add


_LINE = re.compile(r"(?:(\d+) )?([a-z-]+) (\w+\[[\d,]*\]|\*) \| (\S+) (\S+) \| (.+) -> (.+)")


def parse(text: str) -> Counter[Answer]:
    """Read expected answers."""
    found: Counter[Answer] = Counter()
    for line in filter(None, map(str.strip, text.splitlines())):
        match = _LINE.fullmatch(line)
        assert match, line
        found[match.groups()[1:]] += int(match[1] or 1)  # type: ignore[index]
    return found


def answer(collective: Collective) -> Answer:
    """Write what was found in the form of an expected answer."""
    shape = f"{collective.dtype}[{','.join(map(str, collective.shape))}]"
    ends = collective.producer or "?", collective.consumer or "?"
    asked, reason = collective.asked_by or "?", collective.reason or "-"
    return collective.kind, shape, asked, reason, *ends


def compare(expected: Counter[Answer], found: list[Answer]) -> tuple[list[Answer], list[Answer]]:
    """Return the expected answers that were not found, and what was found beyond them."""
    left = list(found)
    missing: list[Answer] = []
    for wanted in sorted(expected.elements(), key=lambda one: "*" in one):
        at = next((i for i, one in enumerate(left) if _fits(wanted, one)), None)
        if at is None:
            missing.append(wanted)
        else:
            left.pop(at)
    return missing, left


def _fits(wanted: Answer, found: Answer) -> bool:
    return all(a in (b, "*") for a, b in zip(wanted, found, strict=True))


def explain(one: Case) -> Causes:
    """Compile a program of the bank and give its collectives with their causes."""
    names = list("xyzwuvst")[: len(one.arrays)]
    code = one.fn.__code__.co_varnames[: one.fn.__code__.co_argcount]
    names = list(code) if len(code) == len(one.arrays) else names
    grid = make_grid(one.mesh, one.axes)
    mesh = grid.describe()
    args, specs = {}, {}
    for name, array in zip(names, one.arrays, strict=True):
        shape, spec, dtype = (*array, *(P(), "float32")[len(array) - 1 :])
        args[name], specs[name] = jax.ShapeDtypeStruct(shape, dtype), spec
    program = build(Request(one.fn, args, grid, specs, one.out))
    optimized = hlo.parse(program.optimized)
    partitioned = hlo.parse(program.dumps.partitioned)
    collectives = find_collectives(optimized, mesh, lambda _: (), partitioned)
    user_shardings = read_user_shardings(
        program.traced.jaxpr, explicit=one.axes == "explicit", results=one.out is not None
    )
    return explain_causes(
        collectives,
        optimized=optimized,
        dumps=program.dumps,
        mesh=mesh,
        input_names=names,
        user_shardings=user_shardings,
    )
