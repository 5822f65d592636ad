"""What Python runs at the start of a program of `shardnb run`: XLA keeps the flags that dump.

Many scripts set `os.environ["XLA_FLAGS"]`, which would lose them. This file is copied as
`sitecustomize.py` to a folder that is first in the child's PYTHONPATH, and imports nothing of
shardnb's: another Python may run it. A `sitecustomize` of the user's runs as well.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

_FLAGS = os.environ.get("SHARDNB_XLA_FLAGS", "")
_ENVIRONMENT: Any = type(os.environ)
_set, _delete = _ENVIRONMENT.__setitem__, _ENVIRONMENT.__delitem__


def _with_flags(environment: Any, key: str, value: str) -> None:
    if key == "XLA_FLAGS" and environment is os.environ and _FLAGS not in value:
        value = f"{value} {_FLAGS}"
    _set(environment, key, value)


def _without_key(environment: Any, key: str) -> None:
    _delete(environment, key)
    if key == "XLA_FLAGS" and environment is os.environ:
        _set(environment, key, _FLAGS)


def _run_the_users() -> None:
    here = Path(__file__).resolve().parent
    sys.path[:] = [path for path in sys.path if Path(path).resolve() != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


if _FLAGS:
    _ENVIRONMENT.__setitem__, _ENVIRONMENT.__delitem__ = _with_flags, _without_key
    _run_the_users()
