"""The specs of a magic's line as values."""

from __future__ import annotations

import ast
import builtins
import difflib
from collections.abc import Callable, Mapping
from functools import cache
from types import ModuleType
from typing import Any

from jax.sharding import NamedSharding, PartitionSpec

from shardnb.magics.cell import CellError
from shardnb.magics.scope import Names
from shardnb.magics.trees import leaves_of
from shardnb.torch.traced import is_torch_module, is_torch_tensor

Tree = Any
Namespace = Mapping[str, Any]

KNOWN_ON_THE_LINE = {
    "P": PartitionSpec,
    "PartitionSpec": PartitionSpec,
    "NamedSharding": NamedSharding,
}


@cache
def _functions() -> dict[str, Callable[..., Any]]:
    """Return what is known there as well, unless the user has such a name."""
    # Imported by the first line with a spec: to load the extension takes no compiler.
    from shardnb.compiler.spec_rules import like, logical

    return {"like": like, "logical": logical}


class NeedsRun(Exception):
    """An expression that only running it can evaluate."""


def evaluated(
    specs: Mapping[str, str], namespace: Namespace, *, plainly: bool = False
) -> dict[str, Tree]:
    """Return the values of specs; `P` and `NamedSharding` are known without an import.

    With `plainly` none of the user's code runs, and `NeedsRun` is raised where some would have to.
    Raises `CellError` for an expression that fails.
    """
    values, names = {}, {**_functions(), **namespace, **KNOWN_ON_THE_LINE}
    for name, text in specs.items():
        try:
            values[name] = plain_value(text, names) if plainly else value_of(text, names)
        except NeedsRun:
            raise
        except Exception as error:  # whatever the user's expression raises
            meant = _quoted(text, names) if isinstance(error, NameError) else None
            hint = f"; did you mean {name}={meant}?" if meant else ""
            why = f"the spec {name}={text}: {type(error).__name__}: {error}{hint}"
            raise CellError(why) from error
    return values


def _quoted(text: str, names: Namespace) -> str | None:
    """Return a spec whose mesh axes are written without quotes, with them; None for another text.

    >>> _quoted("data,model", {}), _quoted("P(data)", KNOWN_ON_THE_LINE), _quoted("f(data)", {})
    ("P('data', 'model')", "P('data')", None)
    """
    node = ast.parse(text, mode="eval").body
    if isinstance(node, ast.Call):
        is_spec = isinstance(node.func, ast.Name) and names.get(node.func.id) is PartitionSpec
        parts = node.args if is_spec and not node.keywords else []
    else:
        parts = node.elts if isinstance(node, ast.Tuple) else [node]
    axes = [ast.Constant(n.id) if isinstance(n, ast.Name) else n for n in parts]
    if not axes or not all(isinstance(axis, ast.Constant) for axis in axes):
        return None
    return f"P({', '.join(map(ast.unparse, axes))})"


Evaluate = Callable[[str, Namespace], Any]


def value_of(text: str, names: Namespace) -> Any:
    """Return the value of an expression of the user's."""
    return eval(text, dict(names))  # noqa: S307  the user's expression


def plain_value(text: str, names: Namespace) -> Any:
    """Return the value of an expression of names, constants, containers and specs.

    Raises `NeedsRun` for any other, since it may run code of the user's.

    >>> plain_value("P('data', None)", {"P": PartitionSpec}) == PartitionSpec("data", None)
    True
    """
    return _Plain(names).value(ast.parse(text, mode="eval").body)


class _Plain:
    def __init__(self, names: Namespace) -> None:
        self._names = names

    def value(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                if name not in self._names:
                    raise NameError(f"name {name!r} is not defined")
                return self._names[name]
            case ast.Attribute() | ast.Subscript():
                return self._part(node, self.value(node.value))
            case ast.Call():
                return self._call(node)
        return self._container(node)

    def _part(self, node: ast.Attribute | ast.Subscript, of: Any) -> Any:
        """Return a part of a module or of a plain container: any other may run code to give it."""
        if isinstance(node, ast.Attribute):
            if type(of) is ModuleType:
                return getattr(of, node.attr)
        elif type(of) in (dict, list, tuple):
            at = self.value(node.slice)
            if type(at) in (str, int):
                return of[at]
        raise NeedsRun

    def _call(self, node: ast.Call) -> Any:
        function = self.value(node.func)
        named = {one.arg: self.value(one.value) for one in node.keywords if one.arg}
        callables = (*KNOWN_ON_THE_LINE.values(), *_functions().values())
        known = any(function is each for each in callables)
        if not known or len(named) < len(node.keywords):
            raise NeedsRun
        return function(*self._each(node.args), **named)

    def _container(self, node: ast.expr) -> Any:
        match node:
            case ast.Tuple(elts=parts):
                return tuple(self._each(parts))
            case ast.List(elts=parts):
                return self._each(parts)
            case ast.Dict(keys=keys, values=values):
                named = self._each([key for key in keys if key is not None])
                if len(named) == len(keys):
                    return dict(zip(named, self._each(values), strict=True))
        raise NeedsRun

    def _each(self, nodes: list[ast.expr]) -> list[Any]:
        values: list[Any] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                several = self.value(node.value)
                if type(several) not in (tuple, list):
                    raise NeedsRun
                values += several
            else:
                values.append(self.value(node))
        return values


def not_an_input(
    name: str, names: Names, inputs: Mapping[str, Tree], namespace: Namespace
) -> CellError:
    """Return the error for a name that has a spec and is not an input of the cell."""
    arrays = [other for other in inputs if leaves_of(inputs[other])]
    near = difflib.get_close_matches(name.lower(), [other.lower() for other in arrays], 1)
    meant = next((other for other in arrays if near and other.lower() == near[0]), None)
    hint = f"; did you mean {meant}?" if meant else ""
    if name in names.assigned and name not in names.read:
        return CellError(
            f"{name} is assigned by the cell, not read: "
            f"the sharding of an output is stated after --out, such as --out {name}=P('data')"
        )
    if name not in namespace:
        return CellError(f"{name} is not defined{hint}")
    if name in names.read:
        if is_torch_tensor(namespace[name]) or is_torch_module(namespace[name]):
            return CellError(f"{name} is of torch: %%shard --from torch explains torch code")
        kind = type(namespace[name]).__name__
        return CellError(
            f"expected arrays for the spec of {name}, but it holds none: its type is {kind}"
        )
    listed = ", ".join(arrays) or "no array"
    missing = sorted(other for other in names.read if not _is_known(other, namespace))
    undefined = f", and {missing[0]}, which is not defined" if missing else ""
    return CellError(f"the cell does not read {name}; it reads {listed}{undefined}{hint}")


def _is_known(name: str, namespace: Namespace) -> bool:
    return name in namespace or hasattr(builtins, name)
