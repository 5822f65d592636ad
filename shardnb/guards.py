"""What a program must not do: `sn.guard` for what runs, and the rules of `shardnb.testing`."""

from __future__ import annotations

import functools
import threading
import traceback
import warnings
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

import jax

from shardnb.compiler import SourceTexts
from shardnb.compiler.watched_programs import WatchedProgram, watched_programs
from shardnb.findings.each import is_named
from shardnb.jax_compat.compilation import text_of
from shardnb.jax_compat.compilation_cache import without_compilation_cache
from shardnb.jax_compat.xla import surround_compiles
from shardnb.report import Collective, Report
from shardnb.report.strategies import strategy_of
from shardnb.terms.causes import AskedBy
from shardnb.terms.collectives import KINDS
from shardnb.views import guards as words
from shardnb.watching import explain_watched

Action = Literal["raise", "warn"]


class GuardError(RuntimeError):
    """A program breaks a guard; `report` is its report. It has not run."""

    def __init__(self, message: str, report: Report) -> None:
        """Say what is broken, and by which program."""
        super().__init__(message)
        self.report = report


class GuardWarning(UserWarning):
    """A program breaks a guard that only warns."""


@dataclass(frozen=True)
class Rule:
    """What a program must not do.

    `forbid` has kinds of collectives and who asked for them, as `%%shard --forbid`. `allow` has
    kinds that are allowed all the same, each with or without its axes, such as `all-reduce[data]`;
    with `allow_typical` what is typical of a strategy is allowed, such as the sum of a gradient.
    `wire_bytes` and `memory` are the most that one device may send per run and hold at once.
    """

    forbid: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    allow_typical: bool = False
    wire_bytes: int | None = None
    memory: int | None = None

    def __post_init__(self) -> None:
        """Check that the words exist."""
        known = (*get_args(AskedBy), *KINDS)
        for word in self.forbid:
            if word not in known:
                raise ValueError(
                    f"{word!r} cannot be forbidden; the choices are {', '.join(known)}"
                )
        for word in self.allow:
            if word.partition("[")[0] not in KINDS:
                raise ValueError(f"{word!r} is not a collective; the kinds are {', '.join(KINDS)}")

    def broken(self, report: Report) -> list[str]:
        """Say what a program does that it must not do, with the causes; empty if nothing."""
        lines: list[str] = []
        if (self.forbid or self.wire_bytes is not None) and not report.partitioned:
            return [words.not_partitioned()]
        found = [c for c in report.collectives if self._forbids(c, report)]
        if found:
            lines += words.forbidden(report, found, self.forbid)
        if self.wire_bytes is not None and report.wire_bytes > self.wire_bytes:
            lines.append(words.sends_too_much(report, self.wire_bytes))
        if self.memory is not None and (report.memory is None or report.memory.total > self.memory):
            lines.append(words.holds_too_much(report, self.memory, "the most that it may hold"))
        return lines

    def _forbids(self, collective: Collective, report: Report) -> bool:
        axes = ",".join(collective.axes or ())
        if {collective.kind, f"{collective.kind}[{axes}]"} & set(self.allow):
            return False
        if self.allow_typical and strategy_of(collective, report) is not None:
            return False
        return collective.is_among(self.forbid)


def words_of(forbid: str | Sequence[str]) -> tuple[str, ...]:
    """Return the words of `forbid`, which may be written as `inferred,all-gather`.

    >>> words_of("inferred, all-gather"), words_of(["inferred"])
    (('inferred', 'all-gather'), ('inferred',))
    """
    listed = [forbid] if isinstance(forbid, str) else forbid
    return tuple(word.strip() for text in listed for word in text.split(","))


class Guard:
    """What `sn.guard` returns: a decorator and a context manager."""

    def __init__(self, rule: Rule, only: str | None, action: Action) -> None:
        """Take what is forbidden, of which programs, and what happens then."""
        self.rule, self.only, self.action = rule, only, action

    def __enter__(self) -> Self:
        """Guard what this thread compiles."""
        _blocks().append(self)
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        _blocks().remove(self)

    def __call__[**P, R](self, fn: Callable[P, R]) -> Callable[P, R]:
        """Guard what calls of a function compile."""
        new = True

        # `_active` finds the call by its frame, so that a call does as little as it can.
        def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
            nonlocal new
            if new:
                _refuse_a_trace(fn, (args, kwargs))
                new = False
            return fn(*args, **kwargs)

        # Functions that are made here share their code; each guard has to know its own.
        code = guarded.__code__.replace(co_name=getattr(fn, "__name__", "guarded"))
        guarded.__code__ = code
        functools.update_wrapper(guarded, fn)
        _by_code[id(code)] = self
        weakref.finalize(guarded, _by_code.pop, id(code), None)
        for name in ("lower", "trace", "eval_shape", "clear_cache"):
            if hasattr(fn, name):
                setattr(guarded, name, getattr(fn, name))
        return guarded

    def check(self, report: Report) -> None:
        """Raise `GuardError`, or warn, where a program breaks the rule."""
        if self.only is not None and not is_named(report.title, self.only):
            return
        if broken := self.rule.broken(report):
            message = words.failed(report.title, broken)
            if self.action == "raise":
                raise GuardError(message, report)
            warnings.warn(message, GuardWarning, stacklevel=2)


def guard(
    forbid: str | Sequence[str] = (),
    *,
    allow: Sequence[str] = (),
    allow_typical: bool = False,
    max_wire_bytes: int | None = None,
    max_memory: int | None = None,
    only: str | None = None,
    action: Action = "raise",
) -> Guard:
    """Stop a program that communicates as it must not, when it is compiled and before it runs.

    It is a decorator of a function that `jax.jit`, `nnx.jit` or the like has made, and a context
    manager for a block. Each program that a call or the block compiles in this thread is explained
    and checked. A call of what is compiled already is not looked at, and costs nothing; so a
    program that was compiled before it was guarded is not checked. As in `shardnb.testing`, the
    message says where each collective is, and why.

    Args:
        forbid: kinds of collectives, or who asked for them, such as `inferred` or
            `inferred,all-gather`. One whose asker is unknown counts as inferred.
        allow: kinds that are allowed all the same, such as `all-reduce` or `all-reduce[data]`.
        allow_typical: whether those are allowed that are typical of a strategy, such as the sum of
            a gradient in data parallelism.
        max_wire_bytes: the most bytes that one device may send per run.
        max_memory: the most bytes that one device may hold at once.
        only: a pattern such as `*train_step*` for the names of the programs that are checked.
        action: `raise` an `sn.GuardError`, whose `report` is the program's, or `warn` with an
            `sn.GuardWarning`.

    Raises:
        ValueError: a word of `forbid` or `allow` does not exist.
        NotAvailable: this JAX does not let a program be checked before it runs.

    >>> import jax, jax.numpy as jnp
    >>> @guard("inferred", allow_typical=True)
    ... @jax.jit
    ... def step(x):
    ...     return x * 2
    >>> step(jnp.ones(2)).tolist()
    [2.0, 2.0]
    """
    if callable(forbid):
        raise TypeError("expected what is forbidden, as in @sn.guard('inferred'), got a function")
    if action not in get_args(Action):
        raise ValueError(f"expected the action 'raise' or 'warn', got {action!r}")
    rule = Rule(words_of(forbid), tuple(allow), allow_typical, max_wire_bytes, max_memory)
    surround_compiles(_checked)
    return Guard(rule, only, action)


_thread = threading.local()
_by_code: dict[int, Guard] = {}


def _blocks() -> list[Guard]:
    """Return the guards of the blocks that this thread is in, the outermost first."""
    try:
        guards: list[Guard] = _thread.guards
    except AttributeError:
        guards = _thread.guards = []
    return guards


def _active() -> list[Guard]:
    """Return the guards of the blocks and calls that this thread is in."""
    codes = (id(frame.f_code) for frame, _ in traceback.walk_stack(None))
    calls = [_by_code[code] for code in codes if code in _by_code]
    return [*_blocks(), *reversed(calls)]


def _refuse_a_trace(fn: Callable[..., Any], arguments: object) -> None:
    """Raise where a function is guarded inside `jax.jit`, which compiles only after the call."""
    if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree_util.tree_leaves(arguments)):
        name = getattr(fn, "__name__", "the function")
        raise ValueError(
            f"{name} is guarded inside a function that JAX traces, where nothing is compiled: put "
            f"@sn.guard above @jax.jit"
        )


def _checked(name: str, compile_program: Callable[[], Any]) -> Any:
    """Compile, and check what was compiled by the guards of this thread.

    What comes out of JAX's persistent cache leaves no dumps. It is checked by its text alone, in
    which the asker may be unknown; only what seems to break a guard is compiled once more.
    """
    guards = _active()
    if not guards:
        return compile_program()
    with watched_programs() as programs:
        executable = compile_program()
    reports = [_explained(program) for program in programs if program.title == name]
    if not reports:
        reports = [_explained(WatchedProgram(name, name, text_of(executable)))]
        if any(each.rule.broken(reports[0]) for each in guards):
            with without_compilation_cache(), watched_programs() as programs:
                compile_program()
            reports = [_explained(each) for each in programs if each.title == name] or reports
    for report in reports:
        for each in guards:
            each.check(report)
    return executable


def _explained(program: WatchedProgram) -> Report:
    return explain_watched(program, (), SourceTexts())
