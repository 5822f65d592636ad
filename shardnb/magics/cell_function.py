"""A cell as a function of the arrays that it reads.

The body runs once, while JAX traces it, in the notebook's own namespace, where the inputs are
copies that hold tracers. Afterwards the namespace is as before, whatever happened; once the results
are there, `binding` binds the names that the body assigned.
"""

from __future__ import annotations

import ast
import copy
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import jax

from shardnb.errors import NAMES
from shardnb.magics.cell import CellError, parted
from shardnb.magics.guard import Guard
from shardnb.magics.traced_values import noting_print
from shardnb.magics.trees import Copies, is_array, is_input, is_tracer, leaves_of, only

Tree = Any
Namespace = dict[str, Any]

LAST = "Out"
"""The name of the last expression's value among the outputs."""

MISSING = object()
_HISTORY = frozenset({"In", "Out", "_ih", "_oh", "_dh"})
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
class Trace:
    """What one run of a body on tracers left behind.

    `given` has the user's array for each input's tracer, by the tracer's `id`. `before` and `after`
    are the namespace before and after the body, `outputs` the tracers that it made. `lost` are the
    paths that tracers were removed from, `printed` has a note for each printed tracer.
    """

    copies: Copies = field(default_factory=Copies)
    given: dict[int, tuple[Any, Any]] = field(default_factory=dict)
    before: Namespace = field(default_factory=dict)
    after: Namespace = field(default_factory=dict)
    last: Any = None
    outputs: dict[str, Tree] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)
    printed: list[str] = field(default_factory=list)

    def assigned(self) -> Namespace:
        """Return what the body bound to names."""
        return {
            name: value
            for name, value in self.after.items()
            if self.before.get(name, MISSING) is not value
        }

    def kept(self, names: Iterable[str]) -> Namespace:
        """Return the inputs' copies that still have their names."""
        return {n: self.before[n] for n in names if self.after.get(n, MISSING) is self.before[n]}

    def is_new(self, leaf: Any) -> bool:
        """Whether a leaf is a tracer that the body made."""
        return is_tracer(leaf) and id(leaf) not in self.given


@dataclass
class CellFunction:
    """The function of arrays that a cell is.

    `inputs` are the notebook's values that the cell reads, by name. `stated` are the names after
    `--out`; with `manual` only these may be outputs. `possible` are the names of everything that
    may be an output. `quiet` is entered around a body that is traced only to be compiled: with
    `runs`, every time but the first.
    """

    code: CellCode
    namespace: Namespace
    inputs: Mapping[str, Tree]
    guard: Guard
    stated: tuple[str, ...] = ()
    possible: tuple[str, ...] = ()
    manual: bool = False
    runs: bool = True
    quiet: Callable[[], AbstractContextManager[Any]] = nullcontext
    called: bool = False
    trace: Trace | None = None

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
        tree = ast.fix_missing_locations(transform(copy.deepcopy(self.code.tree)))
        body, last = parted(tree)
        code = replace(
            self.code,
            body=compile(body, self.file, "exec", dont_inherit=True),
            last=None if last is None else compile(last, self.file, "eval", dont_inherit=True),
        )
        return replace(self, code=code, called=True)

    def arguments(self) -> dict[str, Tree]:
        """Return the arrays of the inputs, each in the structure of its pytree."""
        return {name: only(value, is_array) for name, value in self.inputs.items()}

    def lost(self) -> list[str]:
        """Return the paths in the user's objects that tracers were removed from."""
        return [] if self.trace is None else self.trace.lost

    def printed(self) -> list[str]:
        """Return a note for each line that printed a tracer, unless prints are dropped."""
        return [] if self.trace is None or not self.runs else self.trace.printed

    def __call__(self, *tracers: Tree) -> dict[str, Tree]:
        """Run the body on tracers; returns the outputs by name.

        Only the first run has effects. Raises `CellError` if `--out` does not fit the outputs.
        """
        trace, counts = Trace(), self.runs and not self.called
        self.called = True
        with self._in_notebook(trace, tracers), nullcontext() if counts else self._unnoticed():
            # The user's own print stays; this one is never kept, under its name or another.
            noting = noting_print(self.file, trace.printed)
            self.namespace.setdefault("print", noting)
            trace.last = self.code.run(self.namespace)
            trace.after = {
                name: print if value is noting else value
                for name, value in self.namespace.items()
                if name != "print" or value is not noting
            }
        trace.outputs = self._outputs(trace)
        self._check(trace.outputs)
        self.trace = self.trace or trace
        if self.manual:
            return {name: trace.outputs[name] for name in self.stated}
        if self.stated:
            return {name: trace.outputs.get(name) for name in self.possible}
        return trace.outputs

    @contextmanager
    def _in_notebook(self, trace: Trace, tracers: tuple[Tree, ...]) -> Iterator[None]:
        """Bind copies of the inputs for the body, and restore everything after it."""
        before = dict(self.namespace)
        try:
            for (name, value), tree in zip(self.inputs.items(), tracers, strict=True):
                arrays = [leaf for leaf in leaves_of(value) if is_array(leaf)]
                leaves = jax.tree_util.tree_leaves(tree)
                pairs = zip(leaves, arrays, strict=True)
                trace.given |= {id(tracer): (tracer, array) for tracer, array in pairs}
                self.namespace[name] = trace.copies.copy(value, iter(leaves), name)
            trace.before = dict(self.namespace)
            yield
        except Exception as error:  # any: it goes on
            setattr(error, NAMES, dict(self.namespace))
            raise
        finally:
            restore(self.namespace, before)
            trace.lost += self.guard.release()

    @contextmanager
    def _unnoticed(self) -> Iterator[None]:
        """Run a body so that its prints are dropped and its changes to objects are undone."""
        past = self.guard.past()
        try:
            with self.quiet():
                yield
        finally:
            past.restore()

    def _outputs(self, trace: Trace) -> dict[str, Tree]:
        named = {**trace.kept(self.inputs), **trace.assigned()}
        have = {id(leaf) for value in named.values() for leaf in leaves_of(value)}
        shown = (leaf for leaf in leaves_of(trace.last) if trace.is_new(leaf))
        # The last expression is an output if it shows an array that has no name.
        if LAST in self.stated or any(id(leaf) not in have for leaf in shown):
            named[LAST] = trace.last
        trees = {
            name: only(value, is_array if name in self.stated else trace.is_new)
            for name, value in named.items()
        }
        return {name: tree for name, tree in trees.items() if leaves_of(tree)}

    def _check(self, outputs: Mapping[str, Tree]) -> None:
        unknown = [name for name in self.stated if name not in outputs]
        if unknown:
            listed = ", ".join(outputs) or "none"
            raise CellError(f"--out names {', '.join(unknown)}; the cell's outputs are {listed}")
        missing = [name for name in outputs if name not in (*self.stated, _THROWN_AWAY)]
        if self.manual and missing:
            form = " ".join(f"{name}=P(...)" for name in missing)
            shown = f" ({LAST} is the value of the last expression)" if LAST in missing else ""
            raise CellError(f"over manual axes every output needs an out_spec: --out {form}{shown}")


def restore(namespace: Namespace, before: Namespace) -> None:
    """Restore the bindings that a namespace had before."""
    for name in [name for name in namespace if name not in before]:
        del namespace[name]
    for name, value in before.items():
        if namespace.get(name, MISSING) is not value:
            namespace[name] = value


def inputs_of(names: Iterable[str], namespace: Mapping[str, Any]) -> dict[str, Tree]:
    """Return those of the names read whose values are inputs of a program."""
    return {
        name: namespace[name]
        for name in names
        if name in namespace and name not in _HISTORY and is_input(namespace[name])
    }


def guard_of(names: Iterable[str], inputs: Mapping[str, Tree], namespace: Namespace) -> Guard:
    """Record what a cell can reach through the names that it reads, besides its inputs."""
    roots: list[tuple[str, Any]] = []
    for name in names:
        if name not in inputs:
            roots += [(name, namespace[name])] if name in namespace else []
            continue
        paths, _ = jax.tree_util.tree_flatten_with_path(inputs[name])
        roots += [
            (name + jax.tree_util.keystr(path), leaf) for path, leaf in paths if not is_array(leaf)
        ]
    return Guard(roots)
