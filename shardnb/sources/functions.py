"""The user's function inside a callable."""

from __future__ import annotations

import functools
import inspect
from types import CodeType
from typing import Any

from shardnb.jax_compat.frames import is_jaxs_own


def function_of(call: Any) -> Any:
    """Return the function inside wrappers such as `jax.jit`, partials and objects that are called.

    >>> def f(x): ...
    >>> function_of(functools.partial(functools.partial(f, 1))) is f
    True
    """
    if isinstance(call, functools.partial):  # jax.tree_util.Partial is one
        return function_of(call.func)
    if hasattr(call, "__wrapped__"):
        return function_of(inspect.unwrap(call))
    if hasattr(call, "__code__") or not callable(call):
        return call
    code = getattr(method := inspect.unwrap(type(call).__call__), "__code__", None)
    return call if code is None or is_jaxs_own(code.co_filename) else method


def code_of(call: Any) -> CodeType | None:
    """Return the code of the function inside a callable; None for one that is not Python."""
    code: CodeType | None = getattr(function_of(call), "__code__", None)
    return code
