"""A call by the user, read into a `Request`: its arrays by name, its specs, its texts."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding

from shardnb.compiler import placement
from shardnb.compiler.inner_call import of_inner_call, takes_numbers
from shardnb.compiler.plain_trees import with_leaves
from shardnb.compiler.request import Request, SourceTexts
from shardnb.compiler.spec_rules import resolved
from shardnb.jax_compat import jit_options
from shardnb.jax_compat.jit_options import Jitted
from shardnb.mesh import Grid
from shardnb.report import Source
from shardnb.sources.functions import function_of

Tree = Any

_SAID_OTHERWISE = {
    "in_shardings": "use in_specs",
    "out_shardings": "use out_specs",
    "device": "the mesh decides the devices",
    "backend": "the mesh decides the devices",
}
_LEAVE_OUT = "leave {} out, or pass the function without its jax.jit"


@dataclass(frozen=True)
class Call:
    """A function with its arguments, and all options of `jax.jit` for it.

    `jitted` is the function without its `jax.jit`, with the options of that. The first `bound`
    arguments were bound to it, by a method or by `functools.partial`. `traces_numbers` says whether
    Python numbers become arrays, as `jax.jit` has it.
    """

    jitted: Jitted
    args: tuple[Tree, ...]
    kwargs: Mapping[str, Tree]
    options: Mapping[str, Any]
    bound: int = 0
    traces_numbers: bool = True

    @property
    def function(self) -> Callable[..., Tree]:
        """The function as it is traced."""
        return self.jitted.function

    @property
    def placed(self) -> Tree:
        """Where a mesh may come from: the arguments, and the function's own jit shardings."""
        return self.args, dict(self.kwargs), self.jitted.in_shardings, self.jitted.out_shardings

    @cached_property
    def names(self) -> list[str]:
        """The names of all arguments, keyword arguments last."""
        return [*_argument_names(self.function, len(self.args)), *self.kwargs]

    @cached_property
    def static(self) -> tuple[int, ...]:
        """The numbers of the arguments that are static for `jax.jit`."""
        return self._numbers("static")

    def _numbers(self, which: str) -> tuple[int, ...]:
        """Return the arguments that an option names, by number or by name."""
        stated: list[int | str] = []
        for option in (f"{which}_argnums", f"{which}_argnames"):
            value = self.options.get(option)
            if value is not None:
                stated += [value] if isinstance(value, int | str) else list(value)
        count = len(self.args)
        return tuple(
            at
            for at, name in enumerate(self.names)
            if {name, *((at, at - count) if at < count else ())}.intersection(stated)
        )

    def request(self, grid: Grid, in_specs: Tree = None, out_specs: Tree = None) -> Request:
        """Return the request to compile the call on a mesh.

        `in_specs` is one spec for all arguments, one for each, or by name. Raises `ValueError` if
        there are not as many specs as arguments, or if they contradict the function's own
        `jax.jit`.
        """
        if not self._is_wrapper:
            return self.in_arrays(grid, in_specs, out_specs)
        # Its own jit decides which numbers are static: `nnx.jit` none, `eqx.filter_jit` all.
        static = replace(self, traces_numbers=False)
        request, numbers = static.in_arrays(grid, in_specs, out_specs), self._python_numbers
        if numbers and takes_numbers(request, numbers):
            request = self.in_arrays(grid, in_specs, out_specs)
        return of_inner_call(request)

    @property
    def _is_wrapper(self) -> bool:
        """Whether a library jits the function, as `nnx.jit` and `eqx.filter_jit` do."""
        return hasattr(self.function, "lower") and not jit_options.is_jitted(self.function)

    @property
    def _python_numbers(self) -> list[complex]:
        leaves = jax.tree_util.tree_leaves(self._values)
        return [leaf for leaf in leaves if _is_number(leaf)]

    def in_arrays(self, grid: Grid, in_specs: Tree, out_specs: Tree) -> Request:
        """Return the request to compile the function itself, for the arrays that it is given."""
        function, arguments = self._arrays_only()
        specs, notes = resolved(self._specs(in_specs), self._values)
        if self.jitted.out_shardings is not None and out_specs is not None:
            raise ValueError(
                f"{self._name} is jitted with out_shardings, but out_specs is given too: "
                f"{_LEAVE_OUT.format('it')}"
            )
        donated = self._numbers("donate")
        self._check_donated(arguments, donated)
        options = {n: v for n, v in self.options.items() if not n.startswith(("static", "donate"))}
        return Request(
            function=function,
            arguments=arguments,
            grid=grid,
            in_specs={name: self._spread(name, spec) for name, spec in specs.items()},
            out_specs=out_specs if out_specs is not None else self.jitted.out_shardings,
            jit_options={**options, **({"donate_argnums": donated} if donated else {})},
            texts=texts_of(self.function),
            notes=notes,
        )

    @cached_property
    def _values(self) -> dict[str, Tree]:
        return dict(zip(self.names, (*self.args, *self.kwargs.values()), strict=True))

    @property
    def _name(self) -> str:
        return getattr(self.function, "__name__", "the function")

    def _arrays(self, name: str) -> list[Any]:
        """Return what is traced for each leaf of an argument, None for what is passed through."""
        leaves = jax.tree_util.tree_leaves(self._values[name])
        if self.names.index(name) in self.static:
            return [None] * len(leaves)
        return [_as_array(leaf, numbers=self.traces_numbers) for leaf in leaves]

    def _arrays_only(self) -> tuple[Callable[..., Tree], dict[str, Tree]]:
        """Return a function of the arrays among the arguments, and these arrays by argument.

        What is not an array stays in the function.
        """
        known = {name: self._arrays(name) for name in self.names}
        flat: dict[str, Any] = {
            name: jax.tree_util.tree_flatten(value) for name, value in self._values.items()
        }
        count, fn, is_wrapper = len(self.args), self.function, self._is_wrapper

        def call(*given: Tree) -> Tree:
            traced = iter(jax.tree_util.tree_leaves(given))
            whole = {
                name: structure.unflatten(
                    leaf if array is None else next(traced)
                    for leaf, array in zip(leaves, known[name], strict=True)
                )
                for name, (leaves, structure) in flat.items()
            }
            positional, keywords = list(whole.values())[:count], list(whole.items())[count:]
            result = fn(*positional, **dict(keywords))
            return _arrays_of(result) if is_wrapper else result

        call.__name__ = getattr(fn, "__name__", "program")
        return call, {name: with_leaves(self._values[name], known[name]) for name in self.names}

    def _spread(self, name: str, spec: Tree) -> Tree:
        """Return a spec, or specs in the structure of the argument's arrays."""
        if placement.is_spec(spec) or name not in self._values:
            return spec
        value, arrays = self._values[name], self._arrays(name)
        try:
            specs = placement.spread(name, value, spec)
        except ValueError:  # raised again, and explained, when the request is checked
            return spec
        return with_leaves(
            value, [None if a is None else s for s, a in zip(specs, arrays, strict=True)]
        )

    def _specs(self, in_specs: Tree) -> dict[str, Tree]:
        """Return the specs by argument, from `in_specs` or from the function's own `jax.jit`."""
        given, own = self._by_name(in_specs), self._own_specs()
        for name, spec in own.items():
            if given.get(name) is not None:
                raise ValueError(
                    f"{self._name} is jitted with in_shardings, but in_specs has {name} too: "
                    f"{_LEAVE_OUT.format('it')}"
                )
            self._check_committed(name, spec)
        return {**given, **own}

    def _by_name(self, specs: Tree) -> dict[str, Tree]:
        """Return each argument's part of `in_specs`: one for all, one for each, or by name."""
        names, positional = self.names[self.bound :], self.names[self.bound : len(self.args)]
        if specs is None:
            return {}
        if isinstance(specs, Mapping) and set(specs) <= set(self.names):
            return dict(specs)
        if not isinstance(specs, tuple | list):
            return dict.fromkeys(names, specs)
        if len(specs) not in (len(names), len(positional)):
            listed = ", ".join(names)
            raise ValueError(
                f"in_specs has {len(specs)} {'entry' if len(specs) == 1 else 'entries'} for "
                f"{len(names)} arguments: {listed}"
            )
        return dict(zip(names, specs, strict=False))

    def _own_specs(self) -> dict[str, Tree]:
        """Return the `in_shardings` of the function's own `jax.jit`, which has none for statics."""
        specs = self.jitted.in_shardings
        if specs is None:
            return {}
        if self.kwargs:
            raise ValueError(
                f"{self._name} is jitted with in_shardings, so jax.jit takes no arguments by "
                f"keyword: {', '.join(self.kwargs)}"
            )
        names = [name for at, name in enumerate(self.names) if at not in self.static]
        if placement.is_spec(specs):
            return dict.fromkeys(names, specs)
        if len(specs) != len(names):
            raise ValueError(
                f"{self._name} is jitted with in_shardings for {len(specs)} arguments, but is "
                f"called with {len(names)}: {', '.join(names)}"
            )
        return {name: spec for name, spec in zip(names, specs, strict=True) if spec is not None}

    def _check_committed(self, name: str, own: Tree) -> None:
        """Refuse an array that `jax.jit` refuses, committed to another than the in_sharding."""
        for path, leaf, spec in placement.stated({name: self._values[name]}, {name: own}):
            sharding = getattr(leaf, "sharding", None)
            if sharding is None or not getattr(leaf, "committed", True):
                continue
            if isinstance(spec, NamedSharding) and not spec.is_equivalent_to(sharding, leaf.ndim):
                raise ValueError(
                    f"{path} has the sharding {sharding}, but {self._name} is jitted with "
                    f"the in_sharding {spec}: jax.jit refuses it"
                )

    @staticmethod
    def _check_donated(arguments: Mapping[str, Tree], donated: tuple[int, ...]) -> None:
        """Refuse an array that is donated and passed a second time, as `jax.jit` does."""
        seen: dict[int, tuple[str, bool]] = {}
        for number, (argument, tree) in enumerate(arguments.items()):
            for name, leaf in placement.named_leaves({argument: tree}):
                is_donated = number in donated
                other, before = seen.setdefault(id(leaf), (name, is_donated))
                if other != name and isinstance(leaf, jax.Array) and (before or is_donated):
                    raise ValueError(
                        f"{other} and {name} are the same array, and it is donated: jax.jit "
                        "refuses it"
                    )


def read_call(
    fn: Callable[..., Tree], args: Sequence[Tree], options: Mapping[str, Any] | None = None
) -> Call:
    """Read a call of a function: `options` are those of `jax.jit`, and arguments by keyword.

    A jitted function brings its own options, also inside a method or a `functools.partial`, whose
    bound arguments are arguments of `jax.jit`. Raises `TypeError` for an option that has another
    name here, and `ValueError` if the function is already jitted with that option.
    """
    given, bound = dict(options or {}), 0
    args, kwargs = tuple(args), {n: v for n, v in given.items() if n not in jit_options.OPTIONS}
    stated = {name: value for name, value in given.items() if name in jit_options.OPTIONS}
    for name, instead in _SAID_OTHERWISE.items():
        if stated.get(name) is not None:
            raise TypeError(f"the jax.jit option {name} is not accepted here: {instead}")
    inner, before, keywords = _unbound(fn)
    if jit_options.is_jitted(inner):
        fn, args, kwargs, bound = inner, (*before, *args), {**keywords, **kwargs}, len(before)
    jitted = jit_options.jitted(fn)
    if jitted is None:
        return Call(Jitted(fn), args, kwargs, stated)
    for name in stated:
        if any(own[:6] == name[:6] for own in jitted.options):
            raise ValueError(
                f"{getattr(fn, '__name__', 'the function')} is already jitted with {name}: "
                f"{_LEAVE_OUT.format(name)}"
            )
    return Call(jitted, args, kwargs, {**jitted.options, **stated}, bound)


def _unbound(fn: Any) -> tuple[Any, tuple[Tree, ...], dict[str, Tree]]:
    """Return the function in a method or a partial, with the arguments bound to it."""
    if inspect.ismethod(fn):
        return fn.__func__, (fn.__self__,), {}
    if isinstance(fn, functools.partial):
        inner, before, keywords = _unbound(fn.func)
        return inner, (*before, *fn.args), {**keywords, **fn.keywords}
    return fn, (), {}


def texts_of(fn: Callable[..., Tree]) -> SourceTexts:
    """Return the text that a function was written in, and the names that it closes over."""
    plain = function_of(fn)
    title: str = getattr(fn, "__name__", None) or str(getattr(plain, "__name__", "__call__"))
    title = type(fn).__name__ if title == "__call__" else title
    code = getattr(plain, "__code__", None)
    files = {code.co_filename: 0} if code is not None else {}
    return SourceTexts(title, _own_source(code), files, _closure_names(plain))


def _own_source(code: Any) -> tuple[Source, ...]:
    if code is None:
        return ()
    try:
        lines, first = inspect.getsourcelines(code)
    except OSError:
        return (Source(code.co_name, "", code.co_firstlineno),)
    return (Source(code.co_name, "".join(lines), first),)


def _closure_names(fn: Callable[..., Tree]) -> dict[int, str]:
    try:
        found = inspect.getclosurevars(fn)
    except (TypeError, ValueError):
        return {}
    return {
        id(leaf): f"{name}{jax.tree_util.keystr(path)}"
        for name, value in {**found.globals, **found.nonlocals}.items()
        for path, leaf in jax.tree_util.tree_flatten_with_path(value)[0]
    }


def _as_array(leaf: Any, *, numbers: bool) -> Any:
    """Return an array or its shape, a number as JAX would trace it, and None for the rest."""
    if isinstance(leaf, jax.Array | np.ndarray | jax.ShapeDtypeStruct):
        return leaf
    if isinstance(leaf, np.generic):
        return np.asarray(leaf)
    return jax.numpy.asarray(leaf) if numbers and _is_number(leaf) else None


def _is_number(leaf: Any) -> bool:
    return isinstance(leaf, int | float | complex) and not isinstance(leaf, bool)


def _arrays_of(result: Tree) -> Tree:
    """Return a result without what is not an array, as `eqx.filter_jit` compiles it."""
    return jax.tree_util.tree_map(
        lambda leaf: leaf if isinstance(leaf, jax.Array | np.ndarray | np.generic) else None, result
    )


def _argument_names(fn: Callable[..., Tree], count: int) -> list[str]:
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        return [f"arg{i}" for i in range(count)]
    names: list[str] = []
    for parameter in parameters:
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            names += [f"{parameter.name}{i}" for i in range(count - len(names))]
        elif parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
            names.append(parameter.name)
    return [*names, *(f"arg{i}" for i in range(len(names), count))][:count]
