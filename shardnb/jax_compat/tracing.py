"""How JAX traces in a block of one thread: constants, caches, tracebacks, the ambient mesh."""

from __future__ import annotations

import importlib
import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any

import jax

from shardnb.jax_compat import parts
from shardnb.jax_compat.parts import NotAvailable
from shardnb.jax_compat.process_lock import PROCESS_LOCK

_TRACES_APART = itertools.count(1)
# A module inside five others has about 60 frames of torch, torchax and shardnb above the user's.
_FRAMES = 200


def constants_kept_apart() -> AbstractContextManager[Any]:
    """Trace so that arrays which a function closes over stay apart from the program."""
    return _setting(parts.SIMPLIFIED_CONSTANTS, value=True)


def full_tracebacks() -> AbstractContextManager[Any]:
    """Leave JAX's own frames in tracebacks."""
    return _setting(parts.TRACEBACK_FILTERING, value="off")


def deep_stacks() -> AbstractContextManager[Any]:
    """Keep up to this many frames of each operation's stack in what is lowered: JAX keeps ten."""
    return _setting(parts.LOCATIONS_LIMIT, value=_FRAMES)


def _setting(part: parts.Part, value: Any) -> AbstractContextManager[Any]:
    """Change a setting of JAX's for this thread and block; nothing where it is gone."""
    try:
        setting: AbstractContextManager[Any] = part.call(value)
    except NotAvailable:
        return nullcontext()
    return setting


def traced_apart() -> AbstractContextManager[Any]:
    """Trace without meeting what JAX has cached of inner functions; what it adds is not met again.

    The setting is a part of the key of JAX's trace caches, for this thread and block only; its
    value, new each time, matches no file name.
    """
    number = next(_TRACES_APART)
    try:
        state: Any = parts.TRACE_KEY.get()
    except NotAvailable:
        return _user_context()(number)
    before, never = getattr(state, "value", None), f"(?!){number}"
    apart: AbstractContextManager[Any] = state(never if before is None else f"{before}|{never}")
    return apart


@cache
def _user_context() -> Callable[[int], AbstractContextManager[Any]]:
    context: Callable[[int], AbstractContextManager[Any]] = jax.make_user_context(default_value=0)
    return context


def is_of_jax(module: str) -> bool:
    """Whether a module, by its name, is one of JAX's or jaxlib's."""
    return module.startswith(("jax.", "jaxlib.", "jax_cuda"))


def trace_state() -> Any:
    """Return the object with which libraries such as flax remember the trace that runs, or None.

    Two of them are equal in one trace. What was made in another trace may not be changed.
    """
    try:
        return parts.TRACE_STATE.call()
    except NotAvailable:
        return None


def trace_of(tracer: Any) -> Any:
    """Return the trace that a traced value belongs to, or None where JAX does not say."""
    try:
        return parts.TRACE_OF.get(tracer)
    except NotAvailable:
        return None


def mesh_context(mesh: Any) -> AbstractContextManager[Any]:
    """Trace under an abstract mesh, or under none: `jax.set_mesh` needs devices."""
    none = jax.sharding.AbstractMesh((), ())
    return jax.sharding.use_abstract_mesh(none if mesh is None else mesh)


@contextmanager
def shard_map_arguments_checked_by(check: Callable[..., None]) -> Iterator[None]:
    """Call `check(specs, arguments)` in place of shard_map's own check of its arguments.

    Only for a trace that nobody runs: the shapes in the body are rounded down. Where the part is
    gone, JAX checks, and raises at the first argument that does not fit.
    """
    part = parts.SHARD_MAP_CHECK
    try:
        part.get()
    except NotAvailable:
        yield
        return
    module, thread = importlib.import_module(part.module), threading.get_ident()

    def instead(*given: Any) -> None:
        if threading.get_ident() != thread:
            original(*given)
        else:
            check(*given[-2:])

    with PROCESS_LOCK:
        original = part.get()  # not what another thread had put here
        setattr(module, part.attribute, instead)
        try:
            yield
        finally:
            setattr(module, part.attribute, original)
