"""How the report's objects are shown, without the data importing the views.

Views are registered, as functions or by name. `shardnb` registers its own by name, so that a saved
report opens without matplotlib, JAX or a widget.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

Way = str | Callable[..., Any]
"""A function, or its module and name as `package.module:function`."""

_ways: dict[str, Way] = {}


def register(ways: Mapping[str, Way]) -> None:
    """Register the functions that show, compute or draw things."""
    _ways.update(ways)


def by(name: str, *args: Any, **options: Any) -> Any:
    """Call the function registered under a name. Raises `LookupError` if there is none."""
    if name not in _ways:
        raise LookupError(f"nothing is registered for {name!r}: import shardnb first")
    way = _ways[name]
    if isinstance(way, str):
        module, _, function = way.partition(":")
        way = _ways[name] = getattr(import_module(module), function)
    return way(*args, **options)
