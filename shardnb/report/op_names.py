"""The names that JAX gives to operations: the functions, transforms and modules around each."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from functools import lru_cache

_CALL = re.compile(r"(\w+)\((.*)\)", re.DOTALL)
# What calls a function, not where it is: jit(relu) is not a module.
_OF_FUNCTIONS = frozenset({"jit", "pjit", "pmap", "xmap", "xla_call", "custom_partitioning"})
# Written by JAX itself for loops, branches and calls; an einsum is named by its subscripts.
_CONTROL = re.compile(
    r"while|body|cond|scan|branch_\d+_fun|closed_call|core_call|eval_jaxpr|checkpoint|remat\d?"
    # PyTorch/XLA's operations, of which it joins several names.
    r"|(aten|prims|xla)__[\w.]+"
    r"|shard_map|pjit|rematted_computation|custom_[jv]+p_call(_jaxpr)?|~|.*->.*|"
)


# With which the scope begins that says in which module of torch's an operation is.
_TORCH = "torch="


@lru_cache(maxsize=4096)
def module_path(op_name: str) -> str:
    """Return the modules and named scopes around an operation; "" if there are none.

    Flax, Haiku and `jax.named_scope` put them into the name; transforms stand around the first.
    For operations that XLA combined into one it is what they have in common.

    >>> module_path("jit(loss)/transpose(jvp(Net))/Block_0/Dense_1/dot_general")
    'Net/Block_0/Dense_1'
    >>> module_path("jit(step)/while/body/jvp(Net)/jit(relu)/max"), module_path("jit(f)/jvp()/add")
    ('Net', '')
    >>> module_path("jit(f)/jvp(Net)/(Dense_0/add:Dense_1/mul)")
    'Net'
    >>> module_path("jit(f)/while/body/eval_jaxpr/Attention/bqd,bkd->bqk/dot_general")
    'Attention'

    Of torch code the module is in a scope of its own, before the names of torch's functions.

    >>> module_path("jit(cell)/transpose(jvp(torch=model.fc1))/linear/dot_general")
    'model.fc1'
    >>> module_path("aten__mul.2/aten__mul")
    ''
    """
    paths: list[list[str]] = []
    for name in op_name.split(";"):
        wholes = joined_names(name) or [name]
        paths += [_of_torch(list(_modules(whole.rpartition("/")[0]))) for whole in wholes]
    common = itertools.takewhile(lambda level: len(set(level)) == 1, zip(*paths, strict=False))
    return "/".join(level[0] for level in common)


def _of_torch(path: list[str]) -> list[str]:
    """Return of a path in torch code only the innermost module."""
    named = [part for part in path if part.startswith(_TORCH)]
    return list(filter(None, [named[-1].removeprefix(_TORCH)])) if named else path


def _modules(scopes: str) -> Iterator[str]:
    for part in _split(scopes, "/"):
        call = _CALL.fullmatch(part)
        if call is not None and call[1] not in _OF_FUNCTIONS:
            yield from _modules(call[2])
        elif call is None and not _CONTROL.fullmatch(part):
            yield part


def joined_names(op_name: str) -> list[str]:
    """Return the names of the members of a combined collective, in order.

    Each with what XLA wrote once for all, as one name may end as another one does.

    >>> joined_names("jit(f)/(reduce_sum:jvp()/reduce_sum)")
    ['jit(f)/reduce_sum', 'jit(f)/jvp()/reduce_sum']
    """
    for match in re.finditer(r"(?:^|/)\(", op_name):
        if op_name.endswith(")") and _balanced(op_name[match.end() : -1]):
            members = _split(op_name[match.end() : -1], ":")
            return [f"{op_name[: match.end() - 1]}{member}" for member in members]
    return []


def _balanced(text: str) -> bool:
    depth = 0
    for char in text:
        depth += (char == "(") - (char == ")")
        if depth < 0:
            return False
    return depth == 0


def _split(text: str, separator: str) -> list[str]:
    """Split at each separator outside brackets."""
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        # A name of torch's has two colons: aten::mm.
        if (
            char == separator
            and depth == 0
            and "::" not in (text[at - 1 : at + 1], text[at : at + 2])
        ):
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]]
