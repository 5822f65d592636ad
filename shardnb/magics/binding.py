"""From the results of a cell to the names of the notebook."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from typing import Any

from shardnb.magics.cell_function import LAST, MISSING, CellFunction, Namespace, Trace
from shardnb.magics.object_graph import tracer_in
from shardnb.magics.trees import Settling, leaves_of

Tree = Any


class _Lost(Exception):
    """A tracer that is not an output of the program."""


def bind(function: CellFunction, results: Mapping[str, Tree]) -> tuple[Any, list[str]]:
    """Bind what a cell assigned, with `results` in the place of the outputs.

    The user's containers are changed in place, so that every name for them sees the change. Returns
    the value of the last expression, and a note for each name or place that is left out because it
    would hold a tracer in an object that is not a pytree.
    """
    trace = function.trace
    if trace is None:
        raise RuntimeError("the cell was not traced")
    settler = _Settler(trace, function.stated, results)
    bound = settler.values({**trace.kept(function.inputs), **trace.assigned(), LAST: trace.last})
    settler.containers()
    last = bound.pop(LAST, None)
    for name in [name for name in trace.before if name not in trace.after]:
        function.namespace.pop(name, None)
    function.namespace.update(bound)
    notes = [unbound(name, path) for name, path in settler.unbound.items()]
    return last, [*notes, *(left_out(path) for path in dict.fromkeys([*trace.lost, *settler.lost]))]


class _Settler:
    """Settles values by name, and leaves out those that still hold a tracer."""

    def __init__(self, trace: Trace, stated: tuple[str, ...], results: Mapping[str, Tree]) -> None:
        self.lost: list[str] = []
        self.unbound: dict[str, str] = {}
        self._stated = stated
        self._by_output: dict[str, dict[int, Any]] = {}
        for name, tree in trace.outputs.items():
            if results.get(name) is not None:
                pairs = zip(leaves_of(tree), leaves_of(results[name]), strict=True)
                self._by_output[name] = {id(tracer): array for tracer, array in pairs}
        inputs = {key: array for key, (_, array) in trace.given.items()}
        self._arrays: Mapping[int, Any] = ChainMap(inputs, *self._by_output.values())
        # A tracer with several names is an output for each of them: a name after --out # gets the
        # array with its sharding.
        self._overlay: Mapping[int, Any] = {}
        self._settling = Settling(trace.copies, self._leaf)

    def values(self, values: Namespace) -> Namespace:
        """Settle named values, those with a sharding after --out first; leave out what is lost."""
        ordered = sorted(values, key=lambda name: name not in self._stated)
        settled = {name: self._value(name, values[name]) for name in ordered}
        return {name: value for name, value in settled.items() if value is not MISSING}

    def containers(self) -> None:
        """Settle every container that the user has, also one without a name any more."""
        for entry in self._settling.copied():
            try:
                self._settling.settle(entry.copy)
            except _Lost:
                self.lost.append(entry.name)

    def _value(self, name: str, value: Any) -> Any:
        self._overlay = self._by_output.get(name, {}) if name in self._stated else {}
        if id(value) in self._overlay:
            return self._overlay[id(value)]
        try:
            settled = self._settling.settle(value)
            path = tracer_in(name, settled)
        except _Lost:
            path = name
        if path is None:
            return settled
        self.unbound[name] = path
        return MISSING

    def _leaf(self, tracer: Any) -> Any:
        for arrays in (self._overlay, self._arrays):
            if id(tracer) in arrays:
                return arrays[id(tracer)]
        raise _Lost


def unbound(name: str, path: str) -> str:
    """Write the note for a name that the cell assigned but that is not bound after the run.

    >>> unbound("k", "k.v")
    'k is not bound: k.v holds a tracer, in an object that is not a pytree'
    """
    if name == LAST:
        return left_out(path)
    place = "it" if "__" in path or ".." in path else path
    held = "holds a tracer, in an object that is not a pytree"
    return f"{name} is not bound: {place} {held}"


def left_out(path: str) -> str:
    """Write the note for a place that was left out."""
    return f"{path} was left out: it held a tracer, in an object that is not a pytree"
