"""The ways in which the report's objects show themselves; the data names none of the modules.

Whoever can show something registers its function, or where that is found: `shardnb` does so for
its own views, by name, so that a saved report opens without matplotlib, JAX or a widget.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

Way = str | Callable[..., Any]
"""A function, or its module and name as `package.module:function`."""

_ways: dict[str, Way] = {}


def register(ways: Mapping[str, Way]) -> None:
    """Say by which function each thing is shown, worked out or drawn."""
    _ways.update(ways)


def by(name: str, *args: Any, **options: Any) -> Any:
    """Call what was registered under a name. Raises `LookupError` where nothing was."""
    if name not in _ways:
        raise LookupError(f"nothing is registered for {name!r}: import shardnb first")
    way = _ways[name]
    if isinstance(way, str):
        module, _, function = way.partition(":")
        way = _ways[name] = getattr(import_module(module), function)
    return way(*args, **options)
