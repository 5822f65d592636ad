"""What the notebook gets of a cell whose results are there: all of it, or nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from shardnb.interrupts import uninterrupted
from shardnb.jax_compat.process_lock import names_traced
from shardnb.magics.contents import Call, content_of, lasting, made, same, writes
from shardnb.magics.reachable import Reachable
from shardnb.magics.recording import (
    Held,
    Namespace,
    Pending,
    Recording,
    names_written,
)
from shardnb.magics.replacing import Replacing
from shardnb.magics.trees import leaves_of

Tree = Any


class Binding:
    """Does what a cell's body did, as it was recorded.

    What holds no result is there while the program runs, since a callback of it may read a name of
    its own cell. The rest follows with the results.
    """

    def __init__(self, namespace: Namespace, recording: Recording) -> None:
        """Bind nothing yet."""
        self._namespace = namespace
        self._recording = recording
        self._undone: dict[int, Held] = {}
        self._ready: Namespace = {}
        self._names = dict(namespace)

    @contextmanager
    def begun(self) -> Iterator[None]:
        """Do for the block what needs no result; an error or an interrupt undoes it."""
        done = False
        try:
            with names_traced():  # a trace that another thread has begun puts its names back first
                self._begin()
            yield
            done = True
        finally:
            if not done:
                with names_traced():
                    uninterrupted(self._undo)

    def finish(self, results: Mapping[str, Tree]) -> Any:
        """Do the rest, with the results; gives the value of the last expression."""
        with names_traced():
            return self._finished(results)

    def _finished(self, results: Mapping[str, Tree]) -> Any:
        recording = self._recording
        leaves = {name: leaves_of(tree) for name, tree in results.items()}
        given = Replacing((p, leaves[p.output][p.number]) for p in recording.pending)
        calls = self._written(
            Held(held.path, held.holder, given.content(held.content))
            for held in recording.contents
            if id(held.holder) not in self._undone
        )
        gone = [name for name in recording.deleted if name in self._namespace]
        names = {n: given(v) for n, v in recording.names.items() if n not in self._ready}
        variables = [(variable.set, given(v)) for variable, v in recording.variables.items()]
        last = given(recording.last)
        deleted = [(dict.__delitem__, self._namespace, name) for name in gone]
        made([*calls, *deleted, *variables, (self._namespace.update, names)])
        return last

    def _begin(self) -> None:
        recording = self._recording
        calls = self._written(held for held in recording.contents if not self._waits(held.content))
        self._ready = {n: v for n, v in recording.names.items() if not self._waits(v)}
        made([*calls, (self._namespace.update, self._ready)])

    def _written(self, contents: Iterable[Held]) -> list[Call]:
        """Return the calls that write contents, and remember what to write to undo them."""
        calls: list[Call] = []
        for held in contents:
            now = content_of(held.holder)
            if now is not None:
                before = Held(held.path, held.holder, lasting(now))
                self._undone.setdefault(id(held.holder), before)
                calls += writes(held.holder, now, held.content)
        return calls

    def _undo(self) -> None:
        calls: list[Call] = []
        for held in self._undone.values():
            now = content_of(held.holder)
            if now is not None and not same(now, held.content):
                calls += writes(held.holder, now, held.content)
        touched = {*self._recording.names, *self._recording.deleted}
        names = {n: v for n, v in self._namespace.items() if n not in touched}
        names |= {n: v for n, v in self._names.items() if n in touched}
        made([*calls, *names_written(self._namespace, names)])

    def _waits(self, value: Any) -> bool:
        """Whether a value waits for a result."""
        roots = [("", value)] if not isinstance(value, dict | list) else []
        if isinstance(value, dict):
            roots = [("", part) for part in value.values()]
        elif isinstance(value, list):
            roots = [("", part) for part in value]
        reached = Reachable(self._recording.reachable).add_all(roots)
        return any(isinstance(part, Pending) for part in reached.seen.values())
