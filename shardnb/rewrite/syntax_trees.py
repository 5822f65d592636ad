"""Copies of syntax trees, without what other libraries hang on their nodes."""

from __future__ import annotations

import ast
from typing import Any, cast


def copied[T](tree: T) -> T:
    """Return a copy of a syntax tree, or of a list of them: its fields and places alone.

    `copy.deepcopy` follows every attribute. Python shares one `ast.Load()` among all trees, and
    what IPython writes tracebacks with sets its `parent`, so that a copy of `x` would hold the
    whole file of a traceback shown before.

    >>> ast.unparse(copied(ast.parse("y = x @ W")))
    'y = x @ W'
    """
    copy: Any = tree
    if isinstance(tree, list):
        copy = [copied(part) for part in tree]
    elif isinstance(tree, ast.AST):
        names = (*tree._fields, *tree._attributes)  # noqa: SLF001 - documented, as `_fields` is
        copy = type(tree)(**{n: copied(getattr(tree, n)) for n in names if hasattr(tree, n)})
    return cast("T", copy)
