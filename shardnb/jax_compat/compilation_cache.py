"""Compiling beside JAX's persistent compilation cache."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from shardnb.jax_compat import parts
from shardnb.jax_compat.parts import NotAvailable
from shardnb.jax_compat.process_lock import PROCESS_LOCK


@contextmanager
def without_compilation_cache() -> Iterator[None]:
    """Compile without the persistent cache: a program out of the cache leaves no dumps.

    Where JAX has no such flags any more, the cache is left on.
    """
    try:
        parts.CACHE_FLAGS.get()
    except NotAvailable:
        yield
        return
    cache: Any = importlib.import_module(parts.CACHE_FLAGS.module)
    with PROCESS_LOCK:
        saved = cache._cache_checked, cache._cache_used
        cache._cache_checked, cache._cache_used = True, False
        try:
            yield
        finally:
            cache._cache_checked, cache._cache_used = saved
