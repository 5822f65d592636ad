"""How deep a text nests its brackets: readers that follow them in C++ end the process when deep."""

from __future__ import annotations

import re

from shardnb.report.invalid_input import InvalidInput

_MOST = 500
"""Programs of JAX's stay below 100; MLIR's reader overflows its stack at some thousands."""
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|->|([<({\[])|([>)}\]])')


def check_nesting(text: str) -> None:
    """Raise `InvalidInput` for a module of MLIR that is nested deeper than any program.

    >>> check_nesting("module { func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {} }")
    """
    depth = 0
    for token in _TOKENS.finditer(text):
        if token[1]:
            depth += 1
            if depth > _MOST:
                line = text.count("\n", 0, token.start()) + 1
                raise InvalidInput(f"line {line}: expected at most {_MOST} brackets in each other")
        elif token[2]:
            depth = max(0, depth - 1)
