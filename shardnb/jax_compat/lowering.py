"""Lowering with closed-over arrays as arguments, and which arguments a program uses."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import jax

from shardnb.jax_compat import parts
from shardnb.jax_compat.parts import NotAvailable
from shardnb.jax_compat.process_lock import PROCESS_LOCK
from shardnb.jax_compat.tracing import constants_kept_apart


def lower(traced: Any, whole: Any, constants: Container[int] | None = None) -> Any:
    """Lower what was traced with `constants_kept_apart`; arrays closed over become arguments.

    Those of which `constants` has the ids (None: all) get the sharding `whole`, others keep their
    own. Where JAX cannot do that, or cannot list them afterwards, they stay constants.
    """
    try:
        parameters = parts.LOWERING_PARAMETERS.call(hoist_constants_as_args=True)
        with constants_kept_apart(), _constants_placed(whole, constants):
            lowered = traced.lower(_private_parameters=parameters)
        parts.CLOSED_OVER.get(lowered)
    except NotAvailable:
        return traced.lower()
    return lowered


@contextmanager
def _constants_placed(sharding: Any, ids: Container[int] | None) -> Iterator[None]:
    """Yield closed-over arrays of these ids (None: all) a sharding, in this thread and block."""
    part, thread = parts.CONSTANT_SHARDINGS, threading.get_ident()
    try:
        part.get()
    except NotAvailable:
        yield
        return
    module = importlib.import_module(part.module)

    def placed(constants: Sequence[Any]) -> Any:
        if threading.get_ident() != thread:
            return original(constants)
        if ids is None:
            return (sharding,) * len(constants)
        own = zip(constants, original(constants), strict=True)
        return tuple(sharding if id(array) in ids else placed for array, placed in own)

    with PROCESS_LOCK:
        original = part.get()  # not what another thread had put here
        setattr(module, part.attribute, placed)
        try:
            yield
        finally:
            setattr(module, part.attribute, original)


def closed_over(lowered: Any) -> tuple[Any, ...]:
    """Return the arrays that `lower` made into arguments; they come before all others."""
    if isinstance(lowered, jax.stages.Compiled):
        return ()
    try:
        return tuple(parts.CLOSED_OVER.get(lowered))
    except NotAvailable:
        return ()


def kept_arguments(lowered: Any, compiled: Any) -> tuple[int, ...]:
    """Return the numbers of the arguments that the program uses, closed-over arrays first.

    Raises `NotAvailable` where JAX has no list of them and there is no compiled program.
    """
    if lowered is not compiled:
        try:
            return tuple(sorted(parts.KEPT_ARGUMENTS.get(lowered)["kept_var_idx"]))
        except (NotAvailable, KeyError):
            if compiled is None:
                raise parts.KEPT_ARGUMENTS.gone() from None
    lifted = len(closed_over(lowered))
    # JAX gives no sharding for an argument that it dropped.
    shardings = compiled.in_tree.flatten_up_to(compiled.input_shardings)
    used = (number for number, sharding in enumerate(shardings, lifted) if sharding is not None)
    return (*range(lifted), *used)
