"""A cell as a function of the arrays that it reads.

The body runs once, while JAX traces it, in the notebook's own namespace and on the user's own
objects, with traced values in the place of the inputs. As soon as it ends everything is as it was,
whatever happened; `binding` does what the body did once the results are there.
"""

from __future__ import annotations

import ast
import gc
import types
import weakref
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import jax

from shardnb.errors import NAMES
from shardnb.jax_compat.process_lock import names_traced
from shardnb.jax_compat.tracing import trace_of, trace_state
from shardnb.magics.cell import CellError, parted
from shardnb.magics.iterators import Iterators
from shardnb.magics.reachable import Reachable, holders_in_process, text_of
from shardnb.magics.recording import (
    LAST,
    After,
    Body,
    Namespace,
    Pairs,
    Pending,
    Recording,
    cannot_follow,
)
from shardnb.magics.traced_values import noting_print
from shardnb.magics.trees import holds, is_array, is_jax_array, is_tracer, leaves_of, only
from shardnb.rewrite.syntax_trees import copied
from shardnb.torch.traced import tracer_of

Tree = Any

HELD = ""
"""The name of what objects hold among the outputs: a dictionary by the paths that lead there."""

HISTORY = frozenset({"In", "Out", "_ih", "_oh", "_dh"})
_THROWN_AWAY = "_"


@dataclass(frozen=True)
class CellCode:
    """The compiled body of a cell, and its last expression where it ends with one.

    Both were compiled from `tree` under the file name `file`; `text` is the Python source.
    """

    body: types.CodeType
    last: types.CodeType | None = None
    tree: ast.Module = field(default_factory=lambda: ast.Module([], []))
    file: str = ""
    text: str = ""

    def run(self, namespace: Namespace) -> Any:
        """Run the cell in a namespace; returns the value of the last expression."""
        exec(self.body, namespace)  # noqa: S102  the user's cell
        return eval(self.last, namespace) if self.last is not None else None  # noqa: S307


@dataclass
class CellFunction:
    """The function of arrays that a cell is.

    `inputs` are the notebook's values that the cell reads, by name, and `reachable` is all that
    the names it reads lead to. `stated` are the names whose placement is stated; with `manual`
    these are all the outputs that there may be. `possible` are the names of everything that may be
    an output. `quiet` runs around a body that is traced only to be compiled: with `runs` this is
    every time but the first. With `rereads` it is traced more than once.
    """

    code: CellCode
    namespace: Namespace
    inputs: Mapping[str, Tree]
    reachable: Reachable = field(default_factory=Reachable)
    names: tuple[str, ...] = ()
    placed: frozenset[str] = frozenset()
    stated: tuple[str, ...] = ()
    possible: tuple[str, ...] = ()
    manual: bool = False
    runs: bool = True
    rereads: str = ""
    quiet: Callable[[], AbstractContextManager[Any]] = nullcontext
    called: bool = False
    recording: Recording | None = None
    printed: list[str] = field(default_factory=list)
    iterators: Iterators | None = None
    traced: list[weakref.ref[Any]] = field(default_factory=list)
    outer: Any = field(default_factory=trace_state)

    __name__ = "cell"

    @property
    def __wrapped__(self) -> types.FunctionType:
        """The body as a plain function: JAX's messages then name the cell, not this module."""
        return types.FunctionType(self.code.body, self.namespace, "cell")

    @property
    def file(self) -> str:
        """The file name of the cell's code."""
        return self.code.file

    @property
    def text(self) -> str:
        """The text of the cell as Python, with the line numbers that the user sees."""
        return self.code.text

    def edited(self, transform: Callable[[ast.Module], ast.Module]) -> CellFunction:
        """Return the function of the edited cell, to be compiled but not run."""
        tree = ast.fix_missing_locations(transform(copied(self.code.tree)))
        body, last = parted(tree)
        code = replace(
            self.code,
            body=compile(body, self.file, "exec", dont_inherit=True),
            last=None if last is None else compile(last, self.file, "eval", dont_inherit=True),
        )
        return replace(self, code=code, called=True)

    def arguments(self) -> dict[str, Tree]:
        """Return the arrays of the inputs, each in the structure of its pytree.

        An array that several names lead to is one input, under a name that is placed if there is
        one. Only where two names are placed it is an input under each.
        """
        first: dict[int, str] = {}
        for name in sorted(self.inputs, key=self._order):
            for array in filter(partial(self._is_input, name), leaves_of(self.inputs[name])):
                first.setdefault(id(array), name)
        return {name: self._own_arrays(name, first) for name in self.inputs}

    def _order(self, name: str) -> int:
        return 2 - (name in self.placed) - (name in self.placed and not self._is_alone(name))

    def _is_alone(self, name: str) -> bool:
        """Whether a name that is placed holds an array itself, and no pytree of them."""
        return name in self.placed and is_array(self.inputs[name])

    def _own_arrays(self, name: str, first: Mapping[int, str]) -> Tree:
        once: set[int] = set()

        def is_its_own(leaf: Any) -> bool:
            new = self._is_input(name, leaf) and id(leaf) not in once
            once.add(id(leaf))
            return new and (self._is_alone(name) or first[id(leaf)] == name)

        return only(self.inputs[name], is_its_own)

    def _is_input(self, name: str, leaf: Any) -> bool:
        # What a plain cell would compute with NumPy stays NumPy, unless a spec places it.
        return is_array(leaf) if name in self.placed else is_jax_array(leaf)

    def __call__(self, *tracers: Tree) -> dict[str, Tree]:
        """Run the body on tracers; returns the outputs by name.

        Only the first run counts. Raises `CellError` where `--out` does not fit the outputs, and
        for a traced value that nothing can take out of where the body put it.
        """
        counts, self.called = self.runs and not self.called, True
        arguments = self.arguments()
        given = dict(zip(arguments, tracers, strict=True))
        pairs = [
            pair
            for name in sorted(given, key=self._order)
            for pair in zip(leaves_of(arguments[name]), leaves_of(given[name]), strict=True)
        ]
        own = {name: given[name] for name in given if self._is_alone(name)}
        with names_traced(), nullcontext() if counts else self.quiet():
            outputs, recording = self._run(pairs, own, counts=counts)
        self.recording = self.recording or recording
        if self.manual:
            return {name: outputs[name] for name in self.stated}
        if self.stated:
            return {name: outputs.get(name) for name in self.possible}
        return outputs

    def _body(self) -> Any:
        """Run the body; returns the value of the last expression."""
        return self.code.run(self.namespace)

    def results(self, outputs: Mapping[str, Tree]) -> Mapping[str, Tree]:
        """Return a program's results as the notebook gets them."""
        return outputs

    def _run(
        self, pairs: Pairs, own: Namespace, *, counts: bool
    ) -> tuple[dict[str, Tree], Recording]:
        """Run the body; gives its outputs, and what it did."""
        self.iterators = self.iterators or Iterators(self.reachable, self.rereads)
        again = self.iterators.pairs(only_fixed=counts) if self.rereads or not counts else []
        printed: list[str] = []
        # The user's own print stays; this one is never kept, under its name or another.
        noting = noting_print(self.file, printed)
        body = Body(self.namespace, self.reachable)
        try:
            body.enter([*pairs, *again], self.names, own, self.outer)
            self.namespace.setdefault("print", noting)
            context = copy_context()
            last = context.run(self._body)
            if self.namespace.get("print") is noting:
                body.forget("print")
            if self.manual and _THROWN_AWAY not in self.stated:
                body.forget(_THROWN_AWAY)
            after = body.after(last, context)
            given = {id(tracer) for _, tracer in pairs}
            outputs = self._outputs(after, given)
            self._check(outputs)
            results, stated = self._pending(outputs, given)
            results.append((noting, print))
            recording = body.recorded(after, results, stated, self.outer)
        except Exception as error:  # any: it goes on
            setattr(error, NAMES, dict(self.namespace))
            body.explain(error)
            raise
        finally:
            body.leave()
        traced = (tracer_of(leaf) for _, leaf in after.reached.leaves)
        leaf = next((value for value in traced if isinstance(value, jax.core.Tracer)), None)
        if leaf is not None and not self.traced:
            self.traced = _traced_values(trace_of(leaf))
        self.printed = self.printed or (printed if counts else [])
        return outputs, recording

    def _outputs(self, after: After, given: set[int]) -> dict[str, Tree]:
        """Return the arrays that the body made, by the names and the objects that hold them."""

        def is_new(leaf: Any) -> bool:
            return is_tracer(leaf) and id(leaf) not in given

        kept = {n: self.namespace[n] for n in self.inputs if n in self.namespace}
        named = {**kept, **after.names}
        have = {id(leaf) for value in named.values() for leaf in leaves_of(value) if is_new(leaf)}
        shown = [leaf for leaf in leaves_of(after.last) if is_new(leaf)]
        # The last expression is an output if it shows an array that has no name.
        if LAST in self.stated or any(id(leaf) not in have for leaf in shown):
            named[LAST] = after.last
            have |= {id(leaf) for leaf in shown}
        outputs = {
            name: only(value, is_array if name in self.stated else is_new)
            for name, value in named.items()
            if name in self.stated or holds(value, is_new)
        }
        held = {
            text_of(p): leaf
            for p, leaf in after.reached.leaves
            if is_new(leaf) and id(leaf) not in have
        }
        return outputs | ({HELD: held} if held else {})

    def _pending(
        self, outputs: Mapping[str, Tree], given: set[int]
    ) -> tuple[Pairs, dict[str, Pairs]]:
        """Return what stands for each traced value until the program has run.

        Under a name whose placement is stated, that holds for the inputs too.
        """
        pairs = {
            name: [(leaf, Pending(name, i)) for i, leaf in enumerate(leaves_of(tree))]
            for name, tree in sorted(
                outputs.items(), key=lambda output: output[0] not in self.stated
            )
        }
        every = [pair for name in pairs for pair in pairs[name]]
        new = [(leaf, p) for leaf, p in every if is_tracer(leaf) and id(leaf) not in given]
        return new, {name: pairs[name] for name in self.stated}

    def _check(self, outputs: Mapping[str, Tree]) -> None:
        known = [name for name in outputs if name != HELD]
        unknown = [name for name in self.stated if name not in outputs]
        if unknown:
            listed = ", ".join(known) or "none"
            raise CellError(f"--out names {', '.join(unknown)}; the cell's outputs are {listed}")
        missing = [name for name in known if name not in self.stated]
        if self.manual and missing:
            form = " ".join(f"{name}=P(...)" for name in missing)
            shown = f" ({LAST} is the value of the last expression)" if LAST in missing else ""
            raise CellError(f"over manual axes every output needs an out_spec: --out {form}{shown}")
        if self.manual and HELD in outputs:
            raise CellError(
                f"over manual axes every output needs an out_spec after --out, and "
                f"{', '.join(outputs[HELD])} cannot be: give it a name"
            )

    def refuse_leaks(self) -> None:
        """Raise `CellError` where a traced value is left somewhere in the process.

        It is one that no name of the notebook leads to, such as a table in a library's module.
        """
        place = holders_in_process(_alive(self.traced))
        if place:
            gc.collect()  # what JAX and the user's errors left in loops
            place = holders_in_process(_alive(self.traced))
        if place:
            raise CellError(cannot_follow(place, None))


def _alive(references: Iterable[weakref.ref[Any]]) -> list[Any]:
    return [value for reference in references if (value := reference()) is not None]


def _traced_values(trace: Any) -> list[weakref.ref[Any]]:
    """Return references to all values of a trace that are alive while it ends."""
    kinds: list[type] = [jax.core.Tracer]
    for kind in kinds:
        kinds += kind.__subclasses__()
    # While Python's collector is off, what is new is among its youngest objects.
    youngest = None if gc.isenabled() else 0
    objects = gc.get_objects(generation=youngest)
    return [weakref.ref(v) for v in objects if type(v) in kinds and trace_of(v) is trace]


def inputs_of(names: Iterable[str], namespace: Namespace, placed: Iterable[str]) -> dict[str, Tree]:
    """Return those of the names read whose values are inputs of a program.

    These have arrays of JAX's; NumPy's are inputs under a name that is `placed` by a spec.
    """
    found = {name: namespace[name] for name in names if name in namespace and name not in HISTORY}
    return {
        name: value
        for name, value in found.items()
        if holds(value, is_array if name in placed else is_jax_array)
    }
