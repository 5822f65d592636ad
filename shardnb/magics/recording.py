"""What a cell's body does to all that it reaches: recorded, taken back, and done when it may be.

The body runs where a plain cell runs: in the notebook's names, on the user's own objects. While it
is traced, traced values stand in the place of the input arrays. As soon as it ends everything is
put back, so that nothing has happened yet; the recording can do it again, with the results.
"""

from __future__ import annotations

import contextvars
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shardnb.interrupts import uninterrupted
from shardnb.jax_compat.tracing import trace_state
from shardnb.magics.cell import CellError
from shardnb.magics.contents import (
    MOST_HOST_BYTES,
    Call,
    Content,
    State,
    attributes_of,
    content_of,
    lasting,
    made,
    same,
    values_of,
    writes,
)
from shardnb.magics.reachable import Path, Reachable, inside, parts_of, text_of
from shardnb.magics.replacing import Replacing

Namespace = dict[str, Any]
Pairs = list[tuple[Any, Any]]
MISSING = object()

LAST = "Out"
"""The name of the last expression's value among the outputs."""


@dataclass(frozen=True)
class Held:
    """An object, the path to it, and what it holds at a moment."""

    path: Path
    holder: Any
    content: Content


@dataclass(frozen=True, eq=False)
class Pending:
    """What stands in the place of a result until the program has run: leaf `number` of `output`."""

    output: str
    number: int

    def __repr__(self) -> str:
        """Say what it is, for whoever meets one while the program runs."""
        return f"<{self.output}: a result of the %%shard cell that is running>"


@dataclass
class After:
    """What a body left, with its traced values still in it.

    `names` are those that it bound and `deleted` those that it unbound, `changed` the objects of
    the user's that it changed, and `reached` is what was not there before.
    """

    names: Namespace
    deleted: tuple[str, ...]
    variables: dict[contextvars.ContextVar[Any], Any]
    last: Any
    changed: list[Held]
    reached: Reachable


@dataclass
class Recording:
    """What a body did, with a `Pending` for each result: to be done again when these are there.

    `before` has for each changed object what it held before, by its `id`.
    """

    names: Namespace = field(default_factory=dict)
    deleted: tuple[str, ...] = ()
    variables: dict[contextvars.ContextVar[Any], Any] = field(default_factory=dict)
    last: Any = None
    contents: list[Held] = field(default_factory=list)
    pending: list[Pending] = field(default_factory=list)
    reachable: Reachable = field(default_factory=Reachable)


# What NumPy says of a write into an array that is read-only, in `a[0] = 1` and in `out=a`.
_READ_ONLY = (("assignment destination is read-only",), ("output array is read-only",))


class Body:
    """One run of a cell's body on the user's own objects."""

    def __init__(self, namespace: Namespace, reachable: Reachable) -> None:
        """Remember what there is."""
        self.namespace = namespace
        self.reachable = reachable
        self._names = dict(namespace)
        self._bound = self._names
        self._before = list(_held(reachable.held))
        self._protected = _host_arrays(reachable, self._before)
        self._entered: dict[int, Content] = {}
        self._entering = Replacing(())
        self._own: Pairs = []
        self._made: list[Held] = []
        self._leaving = Replacing(())

    def enter(self, pairs: Pairs, names: Iterable[str], own: Mapping[str, Any], outer: Any) -> None:
        """Put a traced value in the place of each input, and this trace in the place of `outer`.

        `own` are traced values of some names alone: two may hold one array, placed differently.
        A library that remembers in which trace an object was made refuses changes in another.
        """
        inner = trace_state()
        states = [(v, inner) for _, v in self.reachable.leaves if outer is not None and v == outer]
        entering = self._entering = Replacing([*pairs, *states])
        calls: list[Call] = [
            (setattr, array.flags, "writeable", False) for array in self._protected
        ]
        for held in self._before:
            content = entering.content(held.content)
            if content is not held.content:
                self._entered[id(held.holder)] = content
                calls += writes(held.holder, held.content, content)
        bound = {name: entering(self._names[name]) for name in names if name in self._names}
        self._own = [(own[name], self._names[name]) for name in own]
        bound |= own
        self._bound = {**self._names, **bound}
        made([*calls, (self.namespace.update, bound)])

    def forget(self, name: str) -> None:
        """Take back what the body bound to a name."""
        if name in self._bound:
            self.namespace[name] = self._bound[name]
        else:
            self.namespace.pop(name, None)

    def after(self, last: Any, context: contextvars.Context) -> After:
        """Look at what the body left."""
        here = contextvars.copy_context()
        bound = {n: v for n, v in self.namespace.items() if self._bound.get(n, MISSING) is not v}
        variables = {v: value for v, value in context.items() if here.get(v, MISSING) is not value}
        changed = []
        for held in self._before:
            now = content_of(held.holder)
            if now is not None and not same(now, self._entered.get(id(held.holder), held.content)):
                changed.append(Held(held.path, held.holder, lasting(now)))
        roots: list[tuple[Path, Any]] = [*bound.items(), (LAST, last)]
        roots += [(variable.name, value) for variable, value in variables.items()]
        roots += [root for held in changed for root in parts_of(held.path, held.holder)]
        roots += [((p, "", None), part) for p, h in self.reachable.held for part in inside(h)]
        reached = Reachable(self.reachable).add_all(roots)
        deleted = tuple(name for name in self._bound if name not in self.namespace)
        for variable in variables:  # no traced value outlives its trace
            context.run(variable.set, here.get(variable))
        return After(bound, deleted, variables, last, changed, reached)

    def recorded(
        self, after: After, results: Pairs, stated: Mapping[str, Pairs], outer: Any
    ) -> Recording:
        """Record what the body did, with `results` for its traced values.

        `stated` has, for a name whose placement is stated, what stands for each of its arrays,
        the inputs among them. Raises `CellError` for a traced value in what cannot be written.
        """
        inner = trace_state()
        states = [(v, outer) for _, v in after.reached.leaves if inner is not None and v == inner]
        pairs = [*self._entering.back(), *self._own, *results, *states]
        leaving = self._leaving = Replacing(pairs)
        self._refuse_fixed(after, leaving)
        names = {name: leaving(value) for name, value in after.names.items()}
        contents = {id(held.holder): held for held in after.changed}
        self._made = [
            h for h in _held(after.reached.held) if leaving.content(h.content) is not h.content
        ]
        contents |= {id(held.holder): held for held in self._made}
        recorded = {
            key: Held(held.path, held.holder, leaving.content(held.content))
            for key, held in contents.items()
        }
        last = leaving(after.last)
        for name, own in stated.items():
            placing = Replacing([*own, *pairs])
            if name == LAST:
                value = after.last
                last = placing(value)
            else:
                value = self.namespace[name]
                names[name] = placing(value)
            for held in _held(Reachable().add_all([(name, value)]).held):
                content = placing.content(held.content)
                if content is not held.content:
                    recorded[id(held.holder)] = Held(held.path, held.holder, content)
        return Recording(
            names,
            after.deleted,
            {variable: leaving(value) for variable, value in after.variables.items()},
            last,
            list(recorded.values()),
            [p for own in (results, *stated.values()) for _, p in own if isinstance(p, Pending)],
            self.reachable,
        )

    def _refuse_fixed(self, after: After, leaving: Replacing) -> None:
        """Refuse a traced value where nothing can take it out again."""
        for path, holder in [*self.reachable.held, *after.reached.held]:
            parts = inside(holder)
            if not parts:
                continue
            written = {id(value) for value in values_of(content_of(holder))}
            written |= {id(value) for value in (attributes_of(holder) or {}).values()}
            for part in parts:
                if id(part) not in written and leaving(part) is not part:
                    raise CellError(cannot_follow(text_of(path), holder))

    def explain(self, error: Exception) -> None:
        """Add to NumPy's error for a write into a protected array why it is protected."""
        if self._protected and isinstance(error, ValueError) and error.args[:1] in _READ_ONLY:
            size = MOST_HOST_BYTES >> 20
            error.add_note(
                f"%%shard can undo changes of NumPy arrays up to {size} MiB in all, so larger ones "
                "are read-only while the cell is traced: write to the array in a cell of its own"
            )

    def leave(self) -> None:
        """Put everything back as it was before the body, also where interrupts come meanwhile."""
        uninterrupted(self._put_back)

    def _put_back(self) -> None:
        calls: list[Call] = [(setattr, array.flags, "writeable", True) for array in self._protected]
        for held in self._before:
            now = content_of(held.holder)
            if now is not None and not same(now, held.content):
                calls += writes(held.holder, now, held.content)
        for held in self._made:  # no traced value outlives its trace
            calls += writes(held.holder, held.content, self._leaving.content(held.content))
        made([*calls, *names_written(self.namespace, self._names)])
        self._made, self._protected = [], []


def _held(objects: Iterable[tuple[Path, Any]]) -> Iterator[Held]:
    for path, holder in objects:
        content = content_of(holder)
        if content is not None:
            yield Held(path, holder, content)


def _host_arrays(reachable: Reachable, before: list[Held]) -> list[Any]:
    """Remember what NumPy's arrays hold; gives those too large for that, to be read alone."""
    arrays = [
        (p, a) for p, a in reachable.arrays if isinstance(a, np.ndarray) and a.flags.writeable
    ]
    left, protected = MOST_HOST_BYTES, []
    for path, array in sorted(arrays, key=lambda entry: entry[1].nbytes):
        left -= array.nbytes
        if left < 0:
            protected.append(array)
        else:
            before.append(Held(path, array, State(np.array(array))))
    return protected


def names_written(namespace: Namespace, names: Namespace) -> Iterator[Call]:
    """Yield the calls after which a namespace has these names, and no others."""
    yield from ((dict.__delitem__, namespace, name) for name in namespace if name not in names)
    for name, value in names.items():
        if namespace.get(name, MISSING) is not value:
            yield dict.__setitem__, namespace, name, value


def cannot_follow(path: str, holder: Any) -> str:
    """Write the error for a traced value in what shardnb can see and cannot change.

    >>> print(cannot_follow("g", iter([])).partition(",")[0])
    g (a list_iterator) would keep a traced value of this cell
    """
    kind = "" if holder is None else f" (a {type(holder).__name__.strip('_')})"
    return (
        f"{path}{kind} would keep a traced value of this cell, which %%shard cannot replace "
        "by its result; nothing was changed. Do this in a cell of its own, or run it with "
        "%%shard --watch"
    )
