"""`shardnb explain FILE.py:function`: the report of a function in a file."""

from __future__ import annotations

import importlib.util
import inspect
import itertools
import operator
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

from shardnb.commands import typed_arguments
from shardnb.commands.command_error import CommandError, ProgramError, in_one_line
from shardnb.report import InvalidInput, Report
from shardnb.sources.quotable import is_file

# A file that ends in `sys.exit(0)` would else end the command, with the status of a program that
# was explained.
_RAISED = (Exception, SystemExit)
# `params=P('data')` and `params:/kernel/=P('data')`, but no `f(x=1)` and no `x == y`.
_LINE = re.compile(r"\s*[^\W\d]\w*\s*(?:=(?!=)|:\s*/|[.\[][^=()]*=(?!=))")
_LINE_FORM = "params:/kernel$/=P(None, 'model') opt=like(params) x=P('data')"


@dataclass(frozen=True)
class CallOptions:
    """How a function is called: on which mesh, with which arguments.

    `arguments` are texts such as `x=f32[256@data,512]`; `args`, `in_specs` and `out_specs` are
    expressions in the file's own names.
    """

    mesh: str | None = None
    axes: str | None = None
    on: str | None = None
    arguments: Sequence[str] = ()
    args: str | None = None
    in_specs: str | None = None
    out_specs: str | None = None


def explain(target: str, call: CallOptions) -> Report:
    """Import the file of `FILE.py:function` and explain the function.

    Raises `CommandError` for a file or a function that does not exist, and for an error in the
    file, in the arguments or while compiling.
    """
    path, _, name = target.rpartition(":")
    if not path.endswith(".py") or not name:
        raise CommandError(f"expected FILE.py:function or FILE.ipynb, got {target!r}")
    module = _imported(Path(path))
    try:
        function = operator.attrgetter(name)(module)
    except AttributeError as error:
        raise CommandError(f"{path} has no function {name}") from error
    if not callable(function):
        raise CommandError(f"{name} in {path} is not a function")
    args, kwargs, in_specs = _arguments(function, name, call, module)
    out_specs = _evaluated(call.out_specs, module, "--out-specs")
    import shardnb

    try:
        return shardnb.explain(
            function,
            *args,
            mesh=call.mesh,
            axes=call.axes,
            on=call.on,
            in_specs=in_specs,
            out_specs=out_specs,
            **kwargs,
        )
    except InvalidInput as error:  # of --mesh, --axes and --on
        raise CommandError(str(error)) from error
    # The user's function, JAX and XLA may raise anything; the command shows one line.
    except _RAISED as error:
        raise ProgramError(f"{name}: {in_one_line(error)}") from error


def _imported(path: Path) -> ModuleType:
    if not is_file(path):
        raise CommandError(f"there is no file {path}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise CommandError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    # As when Python runs the file: it can import its neighbours, and is itself in sys.modules.
    sys.path.insert(0, str(path.parent.resolve()))
    sys.modules.setdefault(path.stem, module)
    try:
        spec.loader.exec_module(module)
    except _RAISED as error:  # whatever the user's module raises
        raise ProgramError(f"{path} cannot be imported: {in_one_line(error)}") from error
    return module


def _arguments(
    function: Callable[..., Any], name: str, call: CallOptions, module: ModuleType
) -> tuple[tuple[Any, ...], dict[str, Any], Any]:
    """Return a function's positional arguments, its keyword arguments, and their specs."""
    if call.args is not None:
        args = _evaluated(call.args, module, "--args")
        args = args if isinstance(args, tuple) else (args,)
        return args, {}, _in_specs(call.in_specs, function, module)
    if call.in_specs is not None:
        raise CommandError("--in-specs goes with --args: an --arg has its spec in its type")
    given = {argument.name: argument for argument in map(typed_arguments.parse, call.arguments)}
    try:
        parameters = inspect.signature(function).parameters
    except ValueError as error:
        raise CommandError(f"{name} does not say its parameters: give --args") from error
    _check(name, parameters, given)
    # By position up to the first one that is missing or keyword-only.
    leading = itertools.takewhile(
        lambda key: key in given and parameters[key].kind is not inspect.Parameter.KEYWORD_ONLY,
        parameters,
    )
    args = {key: _value(given[key]) for key in leading}
    kwargs = {key: _value(given[key]) for key in parameters if key in given and key not in args}
    specs = {key: spec for key, argument in given.items() if (spec := _spec(argument)) is not None}
    return tuple(args.values()), kwargs, specs or None


def _check(
    name: str,
    parameters: Mapping[str, inspect.Parameter],
    given: dict[str, typed_arguments.Argument],
) -> None:
    """Raise `CommandError` for an argument that the function does not take, or that is missing."""
    for unknown in sorted(set(given) - set(parameters)):
        raise CommandError(f"{name} has no parameter {unknown}, only {', '.join(parameters)}")
    missing = [
        parameter.name
        for parameter in parameters.values()
        if parameter.default is parameter.empty and parameter.name not in given
    ]
    if missing:
        raise CommandError(
            f"{name} needs {', '.join(missing)}: add --arg {missing[0]}=f32[256@data,512], "
            "or --args with an expression for all"
        )


def _value(argument: typed_arguments.Argument) -> Any:
    if argument.dtype is None:
        return argument.value
    import jax

    try:
        return jax.ShapeDtypeStruct(argument.shape, argument.dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise CommandError(
            f"{argument.dtype} of {argument.name} is not a dtype such as f32, bf16, int8 or bool"
        ) from error


def _spec(argument: typed_arguments.Argument) -> Any:
    """Return the spec in the type of an argument, or None if the type names no axes."""
    if argument.dtype is None or not any(argument.spec):
        return None
    from jax.sharding import PartitionSpec

    return PartitionSpec(*(axes or None for axes in argument.spec))


def _in_specs(text: str | None, function: Callable[..., Any], module: ModuleType) -> Any:
    """Return the specs of an expression, or of a line such as that of `%%shard`, by name."""
    if text is None or not _LINE.match(text):
        return _evaluated(text, module, "--in-specs")
    from shardnb.magics.cell import CellError
    from shardnb.magics.options import OptionError, parse
    from shardnb.magics.parts import ruled

    try:
        line = parse(text, ())
        if line.first or line.parts or line.out:
            raise CommandError(f"--in-specs: expected {_LINE_FORM}, got {text!r}")
        # `like(params)` names an argument, for which the file need not have a value.
        known = {name: name for name in inspect.signature(function).parameters}

        def values(texts: Mapping[str, str]) -> dict[str, Any]:
            given = texts.items()
            return {name: _evaluated(spec, module, "--in-specs", known) for name, spec in given}

        specs, by_rule = values(line.specs), values(line.rule_texts)
        return ruled(specs, line.by_rule(by_rule))
    except (OptionError, CellError) as error:
        raise CommandError(f"--in-specs: {error}") from error


def _evaluated(
    expression: str | None,
    module: ModuleType,
    option: str,
    arguments: Mapping[str, str] = MappingProxyType({}),
) -> Any:
    if expression is None:
        return None
    from jax.sharding import NamedSharding, PartitionSpec

    from shardnb.compiler.spec_rules import like, logical, rules

    ours: dict[str, Any] = {"like": like, "logical": logical, "rules": rules}
    names = {
        "P": PartitionSpec,
        "NamedSharding": NamedSharding,
        **ours,
        **arguments,
        **vars(module),
    }
    try:
        # The expression comes from the command line, like the file that was just imported.
        return eval(expression, names)  # noqa: S307
    except _RAISED as error:  # whatever the user's expression raises
        raise ProgramError(f"{option} {expression!r}: {in_one_line(error)}") from error
