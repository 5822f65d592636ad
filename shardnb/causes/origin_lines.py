"""The name and the lines of an operation: the same in every module of a program.

The numbers of stack frames are not: TPU numbers those of the optimized program anew
(`projections_that_are_only_added`).
"""

from __future__ import annotations

from collections.abc import Iterator

from shardnb.texts.hlo import Module
from shardnb.texts.instruction import Instruction

_Lines = tuple[tuple[str, int, int], ...]

Origin = tuple[str, _Lines]
"""The name of an operation, and its file, line and column in each call."""

NO_ORIGIN: Origin = ("", ())


def origin_of(module: Module, node: Instruction) -> Origin:
    """Return the name and the lines of an instruction."""
    return module.path(node), _lines(module, node)


def origins_of(module: Module, node: Instruction) -> Iterator[Origin]:
    """Yield the name and the lines of an operation, if it has a name.

    XLA adds the lines of the call when it inlines the body of a `shard_map`
    (`test_what_is_sent_twice_with_ragged_sizes_keeps_its_lines`).
    """
    if not node.op_name:
        return
    name, lines = origin_of(module, node)
    yield name, lines
    callers, seen = module.callers.get(node.computation, ()), set[str]()
    while callers and callers[-1].computation not in seen:
        caller = callers[-1]
        seen.add(caller.computation)  # foreign text may call in a circle
        if caller.opcode == "call":
            lines += _lines(module, caller)
            yield name, lines
        callers = module.callers.get(caller.computation, ())


def _lines(module: Module, node: Instruction) -> _Lines:
    return tuple((frame.file, frame.line, frame.column) for frame in module.frames(node))
