"""Specs of a whole argument by rules: by the paths of its arrays, by logical axes, like another's.

in_specs={
"params": sn.rules({r".*kernel": P(None, "model"), r".*": P()}),
"opt_state": sn.like("params"),
}
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
from jax.sharding import NamedSharding, PartitionSpec

from shardnb.compiler import placement
from shardnb.views import spec_rules as words

Tree = Any
LogicalRules = Mapping[str, Any] | Sequence[tuple[str, Any]]
# Where flax keeps the names of a variable's dimensions: nnx of now, and of earlier versions.
_NAMES = ("out_sharding", "sharding_names", "sharding")


@dataclass(frozen=True)
class Rules:
    """Specs by regular expressions for paths; see `rules`. `rest` is for what none matches."""

    by_path: tuple[tuple[str, Any], ...]
    rest: Tree = None


@dataclass(frozen=True)
class Like:
    """The specs of another argument, which is named or given; see `like`."""

    other: Any


@dataclass(frozen=True)
class Logical:
    """Specs by the logical axes that arrays name; see `logical`."""

    rules: tuple[tuple[str, Any], ...] | None


def rules(by_path: Mapping[str, Any] | Sequence[tuple[str, Any]]) -> Rules:
    """Return the specs of an argument by the paths of its arrays, for `in_specs`.

    A path has the names of its steps with slashes between them, such as `layers/0/mlp/kernel`. The
    first regular expression that is found in it gives the spec. An array that none matches keeps
    its own sharding, or is replicated. The report says which rule matched which arrays.

    Raises `ValueError` for what is not a regular expression and, when the specs are used, if no
    rule matches any array, and `TypeError` for what is not a spec.

    >>> import jax, jax.numpy as jnp, shardnb as sn
    >>> from jax.sharding import PartitionSpec as P
    >>> params = {"up": {"kernel": jax.ShapeDtypeStruct((8, 16), jnp.float32)}}
    >>> by_path = sn.rules({"kernel$": P(None, "model")})
    >>> report = sn.explain(
    ...     lambda params: params["up"]["kernel"] * 2, params, mesh="model=4", in_specs=(by_path,)
    ... )
    >>> report.inputs[0].spec
    ((), ('model',))
    """
    pairs = tuple(by_path.items() if isinstance(by_path, Mapping) else by_path)
    for pattern, spec in pairs:
        _compiled(pattern)
        if not isinstance(spec, PartitionSpec | NamedSharding):
            raise TypeError(placement.no_spec(f"the rule /{pattern}/", spec))
    return Rules(pairs)


def like(other: Any) -> Like:
    """Return the specs of another argument for `in_specs`, as for an optimizer's state.

    `other` is the argument or its name. An array has the spec of the array of `other` whose path
    its own ends with, such as `opt[0].mu['w']` that of `params['w']`, where it has its shape too;
    others, such as counters, are replicated. The report says which.

    Raises `ValueError`, when the specs are used, if `other` is not another argument.

    >>> import jax, jax.numpy as jnp, shardnb as sn
    >>> from jax.sharding import PartitionSpec as P
    >>> params = {"w": jax.ShapeDtypeStruct((8, 16), jnp.float32)}
    >>> report = sn.explain(
    ...     lambda params, momentum: params["w"] + momentum["w"],
    ...     params, params, mesh="model=4", in_specs=(P("model"), sn.like("params")),
    ... )
    >>> report.inputs[1].spec
    (('model',), ())
    """
    return Like(other)


def logical(rules: LogicalRules | None = None) -> Logical:
    """Return specs for `in_specs` from the logical axes that flax's variables name.

    `rules` maps them to mesh axes, as flax's do: `[("embed", None), ("mlp", "model")]`. Of the
    rules for an axis the first counts whose mesh axes the array does not use yet. Without rules,
    those that a variable holds count, else the names are mesh axes. nnx's variables and linen's
    `Partitioned` and `LogicallyPartitioned` have such names; arrays without them are replicated.
    The report says which.

    Raises `TypeError` for rules that do not have this form.

    >>> logical([("embed", None), ("mlp", "model")]).rules
    (('embed', None), ('mlp', 'model'))
    """
    if rules is None:
        return Logical(None)
    pairs = tuple(rules.items() if isinstance(rules, Mapping) else map(tuple, rules))
    for pair in pairs:
        if len(pair) != 2 or not isinstance(pair[0], str):
            raise TypeError(f"expected rules such as [('mlp', 'model')], got {pair!r}")
    return Logical(pairs)


def resolved(
    specs: Mapping[str, Tree], arguments: Mapping[str, Tree]
) -> tuple[dict[str, Tree], tuple[str, ...]]:
    """Return specs in the place of rules, and what the report says of the rules.

    Raises `ValueError` where a rule cannot be used.
    """
    found, notes = dict(specs), []
    for name, spec in specs.items():
        if isinstance(spec, Rules):
            found[name], said = _by_path(name, spec, arguments[name])
        elif isinstance(spec, Logical):
            found[name], said = _by_logical_axes(name, spec, arguments[name])
        else:
            continue
        notes += said
    for name, spec in specs.items():
        if isinstance(spec, Like):
            other = _other(name, spec, arguments)
            if isinstance(found.get(other), Like):
                raise ValueError(f"the spec of {name} is like {other}, which is like another one")
            found[name], said = _alike(name, other, found.get(other), arguments)
            notes += said
    return found, tuple(notes)


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ValueError(f"/{pattern}/ is not a regular expression: {error}") from error


def steps(path: tuple[Any, ...]) -> tuple[str, ...]:
    """Name the steps of an array's path, without the one into an nnx variable or a flax box."""
    named = placement.step_names(path)
    boxed = len(path) > 1 and getattr(path[-1], "name", None) == "value"
    return named[:-1] if boxed else named


def _by_path(name: str, given: Rules, tree: Tree) -> tuple[Tree, list[str]]:
    paths, structure = jax.tree_util.tree_flatten_with_path(tree)
    patterns = [(_compiled(pattern), spec) for pattern, spec in given.by_path]
    matched: list[list[str]] = [[] for _ in patterns]
    none: list[str] = []
    specs = placement.spread(name, tree, given.rest)
    paths_of = ["/".join(steps(path)) for path, _ in paths]
    for at, ((path, _), joined) in enumerate(zip(paths, paths_of, strict=True)):
        rule = next((n for n, (p, _) in enumerate(patterns) if p.search(joined)), None)
        (none if rule is None else matched[rule]).append(f"{name}{jax.tree_util.keystr(path)}")
        if rule is not None:
            specs[at] = patterns[rule][1]
    if none and not any(matched):
        raise ValueError(words.none_matches(name, [p for p, _ in given.by_path], paths_of))
    said = [
        words.matched(name, pattern, _text(spec), arrays)
        for (pattern, spec), arrays in zip(given.by_path, matched, strict=True)
    ]
    rest = [words.without_a_rule(name, none, replaced=given.rest is None)] if none else []
    return jax.tree_util.tree_unflatten(structure, specs), [*said, *rest]


def _text(spec: Any) -> str:
    return placement.text(spec.spec if isinstance(spec, NamedSharding) else spec)


def _other(name: str, given: Like, arguments: Mapping[str, Tree]) -> str:
    if isinstance(given.other, str):
        at = given.other if given.other in arguments else None
    else:
        at = next((each for each, tree in arguments.items() if tree is given.other), None)
    if at is None or at == name:
        others = ", ".join(other for other in arguments if other != name)
        shown = given.other if isinstance(given.other, str) else type(given.other).__name__
        there = f"; they are {others}" if others else ""
        raise ValueError(
            f"the spec of {name} is like {shown}, which is not another argument{there}"
        )
    return at


def _alike(
    name: str, other: str, specs: Tree, arguments: Mapping[str, Tree]
) -> tuple[Tree, list[str]]:
    """Return the specs of an argument whose arrays are like those of another one."""
    of_other = jax.tree_util.tree_flatten_with_path(arguments[other])[0]
    spread = placement.spread(other, arguments[other], specs)
    known = {
        (steps(path), _shape(leaf)): leaf_spec if leaf_spec is not None else _own(leaf)
        for (path, leaf), leaf_spec in zip(of_other, spread, strict=True)
    }
    paths, structure = jax.tree_util.tree_flatten_with_path(arguments[name])
    found: list[Any] = []
    like: list[str] = []
    unlike: list[str] = []
    for path, leaf in paths:
        names, shape = steps(path), _shape(leaf)
        ends = (names[at:] for at in range(len(names) + 1))
        key = next(((end, shape) for end in ends if (end, shape) in known), None)
        (unlike if key is None else like).append(f"{name}{jax.tree_util.keystr(path)}")
        found.append(PartitionSpec() if key is None else known[key])
    return jax.tree_util.tree_unflatten(structure, found), [words.alike(name, other, like, unlike)]


def _shape(leaf: Any) -> tuple[int, ...]:
    return tuple(getattr(leaf, "shape", ()))


def _own(leaf: Any) -> Any:
    own = getattr(leaf, "sharding", None)
    return own.spec if isinstance(own, NamedSharding) else PartitionSpec()


def _by_logical_axes(name: str, given: Logical, tree: Tree) -> tuple[Tree, list[str]]:
    boxes = jax.tree_util.tree_flatten_with_path(tree, is_leaf=lambda box: bool(axes_of(box)))[0]
    structure = jax.tree_util.tree_structure(tree)
    specs: list[PartitionSpec] = []
    without: list[str] = []
    known = {axis for axis, _ in given.rules or ()}
    unknown: dict[str, None] = {}
    for path, box in boxes:
        axes, inside = axes_of(box), jax.tree_util.tree_leaves(box)
        rules = given.rules if given.rules is not None else _own_rules(box)
        spec = PartitionSpec() if axes is None else mesh_axes(axes, rules)
        specs += [spec] * len(inside)
        if axes is None:
            without += [f"{name}{jax.tree_util.keystr(path)}"] * bool(inside)
        elif given.rules is not None:
            unknown |= dict.fromkeys(axis for axis in axes if axis and axis not in known)
    named = len(boxes) - len(without)
    return jax.tree_util.tree_unflatten(structure, specs), [
        words.logical(name, named, without, list(unknown))
    ]


def axes_of(box: Any) -> tuple[Any, ...] | None:
    """Return the names of the dimensions that one of flax's boxes or variables holds, else None."""
    names = getattr(box, "names", None) if hasattr(box, "unbox") else None
    if names is None and callable(metadata := getattr(box, "get_metadata", None)):
        held = metadata()
        names = next((held[key] for key in _NAMES if held.get(key) is not None), None)
    return tuple(names) if isinstance(names, tuple | list | PartitionSpec) else None


def _own_rules(box: Any) -> tuple[tuple[str, Any], ...] | None:
    """Return the rules that a box holds itself."""
    held: Any = getattr(box, "rules", None)
    if held is None and callable(metadata := getattr(box, "get_metadata", None)):
        held = metadata().get("sharding_rules")
    return tuple(map(tuple, held)) if held else None


def mesh_axes(axes: Iterable[Any], rules: Sequence[tuple[str, Any]] | None) -> PartitionSpec:
    """Return the spec of an array whose dimensions have these logical axes, as flax does.

    >>> mesh_axes(("embed", "mlp"), [("mlp", "model"), ("embed", "model")])
    P(None, 'model')
    """
    if rules is None:
        return PartitionSpec(*axes)
    dims = list(axes)
    found: dict[int, Any] = {}
    for axis, over in rules:
        at = dims.index(axis) if axis in dims else None
        if at is None or at in found:
            continue
        used = {name for each in found.values() for name in _tuple(each)}
        if not used.intersection(_tuple(over)):
            found[at] = over
    return PartitionSpec(*(found.get(at) for at in range(len(dims))))


def _tuple(over: Any) -> tuple[Any, ...]:
    return () if over is None else tuple(over) if isinstance(over, tuple | list) else (over,)
