"""A plan as Python to commit: the mesh, rules for the arrays, and the call of `jax.jit`."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import jax
from jax.sharding import PartitionSpec

from shardnb.compiler.placement import text as spec_text
from shardnb.report.model import Mesh
from shardnb.rewrite.constraint_texts import with_constraints
from shardnb.rewrite.program_edits import ConstraintEdit
from shardnb.search.plans.rules import Leaf, rules_of

Tree = Any
_WIDTH = 88
_PLACE = '''def shardings(tree, rules):
    """Return a sharding for each array: by the first rule found in its path, else replicated."""

    def of(path, _):
        name = jax.tree_util.keystr(path, simple=True, separator="/")
        specs = (spec for pattern, spec in rules.items() if re.search(pattern, name))
        return NamedSharding(mesh, next(specs, P()))

    return jax.tree_util.tree_map_with_path(of, tree)
'''


@dataclass(frozen=True)
class PlannedCode:
    """What the code of a plan is written from.

    `specs` are by argument, `returned` has the array of the arguments whose new value each result
    is, both by number, and `results` is the structure of the results. `donated` are arguments by
    number, and `constraints` stand in the user's texts.
    """

    function: str
    title: str
    arguments: Mapping[str, Tree]
    specs: Mapping[str, Tree]
    results: Tree
    returned: Mapping[int, int]
    donated: Sequence[int]
    mesh: Mesh
    constraints: tuple[ConstraintEdit, ...] = ()
    _placed: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        """Write it."""
        placed = dict(self._assigned())
        by_rules = bool(self._rules)
        lines = [
            *(["import re", ""] if by_rules else []),
            "import jax",
            "from jax.sharding import AxisType, NamedSharding, PartitionSpec as P",
            "",
            f"# {self.title}",
            self._mesh(),
            *(["jax.set_mesh(mesh)  # for the constraints in the model"] * bool(self.constraints)),
            "",
            *(line for name, rules in self._rules.items() for line in _rules(name, rules)),
            *(["", *_PLACE.splitlines(), ""] if by_rules else []),
            *placed.values(),
            "",
            *self._jit(),
        ]
        return "\n".join(lines) + "\n"

    def _mesh(self) -> str:
        sizes = _tuple([str(axis.size) for axis in self.mesh.axes])
        names = _tuple([repr(axis.name) for axis in self.mesh.axes])
        types = f"(AxisType.Auto,) * {len(self.mesh.axes)}"
        return f"mesh = jax.make_mesh({sizes}, {names}, axis_types={types})"

    # The arguments

    @cached_property
    def _leaves(self) -> dict[str, list[Leaf]]:
        """The arrays of each argument: the paths that rules look at, and their specs."""
        return {
            name: [
                (jax.tree_util.keystr(path, simple=True, separator="/"), spec_text(spec))
                for path, spec in jax.tree_util.tree_flatten_with_path(tree, is_leaf=_is_spec)[0]
            ]
            for name, tree in self.specs.items()
        }

    @cached_property
    def _mixed(self) -> list[str]:
        """The arguments whose arrays have several specs."""
        return [name for name, leaves in self._leaves.items() if len({s for _, s in leaves}) > 1]

    @cached_property
    def _ruled_by(self) -> dict[str, str]:
        """The name of the rules of each such argument: one for all where they agree."""
        together = [leaf for name in self._mixed for leaf in self._leaves[name]]
        if rules_of(together) is not None:
            return dict.fromkeys(self._mixed, "RULES")
        return {name: f"{name.upper()}_RULES" for name in self._mixed}

    @cached_property
    def _rules(self) -> dict[str, dict[str, str]]:
        found = {}
        for rules in dict.fromkeys(self._ruled_by.values()):
            ruled = [name for name in self._mixed if self._ruled_by[name] == rules]
            leaves = [leaf for name in ruled for leaf in self._leaves[name]]
            found[rules] = rules_of(leaves) or {f"^{path}$": spec for path, spec in leaves}
        return found

    @cached_property
    def _names(self) -> dict[str, str]:
        """What the sharding of each argument is called: arguments of one spec share it."""
        names, alike = {}, dict[str, str]()
        for name, leaves in self._leaves.items():
            if not leaves:
                continue
            own = f"{name}_sharding"
            spec = leaves[0][1]
            if name not in self._mixed:
                own = alike.setdefault(spec, "replicated" if spec == "P()" else own)
            names[name] = own
        return names

    def _assigned(self) -> Iterator[tuple[str, str]]:
        for name, sharding in self._names.items():
            if name in self._mixed:
                value = f"shardings({name}, {self._ruled_by[name]})"
            else:
                value = f"NamedSharding(mesh, {self._leaves[name][0][1]})"
            yield sharding, f"{sharding} = {value}"

    # The call

    def _jit(self) -> list[str]:
        statics = [name for name, leaves in self._leaves.items() if not leaves]
        parts = [self.function, f"in_shardings={_tuple(list(self._names.values()))}"]
        results = self._written(self.results, 0)
        parts += [f"out_shardings={results}"] if results != "None" else []
        parts += [f"donate_argnums={_tuple(list(map(str, self.donated)))}"] if self.donated else []
        parts += [f"static_argnames={_tuple(list(map(repr, statics)))}"] if statics else []
        return _call(f"{self.function} = jax.jit", parts)

    def _written(self, part: Tree, start: int) -> str:
        """Write the shardings of a part of the results, whose first array has a number."""
        count = len(jax.tree_util.tree_leaves(part))
        numbers = [self.returned.get(start + n) for n in range(count)]
        if all(number is None for number in numbers):
            return "None"
        for name, first, tree in self._starts:
            whole = list(range(first, first + len(jax.tree_util.tree_leaves(tree))))
            structures: list[Any] = [jax.tree_util.tree_structure(each) for each in (tree, part)]
            if numbers == whole and structures[0] == structures[1]:
                return self._names[name]
        if type(part) in (tuple, list):
            starts = _starts_of(part, start)
            items = [self._written(item, at) for item, at in zip(part, starts, strict=True)]
            return f"[{', '.join(items)}]" if isinstance(part, list) else _tuple(items)
        if type(part) is dict:
            keys = sorted(part)
            starts = _starts_of([part[key] for key in keys], start)
            pairs = zip(keys, starts, strict=True)
            return f"{{{', '.join(f'{k!r}: {self._written(part[k], at)}' for k, at in pairs)}}}"
        return "None"

    @cached_property
    def _starts(self) -> list[tuple[str, int, Tree]]:
        trees = self.arguments.values()
        starts = _starts_of(trees, 0)
        return list(zip(self.arguments, starts, trees, strict=True))

    @property
    def diff(self) -> str:
        """The constraints as a unified diff of the user's texts, "" without any."""
        return "".join(_diffs(self.constraints))


def _diffs(constraints: Sequence[ConstraintEdit]) -> Iterator[str]:
    for unit in dict.fromkeys(edit.unit for edit in constraints):
        after = with_constraints(unit, [edit for edit in constraints if edit.unit is unit])
        name = Path(unit.file).name
        old, new = (text.splitlines(keepends=True) for text in (unit.text, after))
        yield from difflib.unified_diff(old, new, f"a/{name}", f"b/{name}", n=1)


def _starts_of(parts: Iterable[Tree], start: int) -> list[int]:
    """Return the number of the first array of each part."""
    starts = []
    for part in parts:
        starts.append(start)
        start += len(jax.tree_util.tree_leaves(part))
    return starts


def _is_spec(leaf: object) -> bool:
    return isinstance(leaf, PartitionSpec)


def _rules(name: str, rules: Mapping[str, str]) -> list[str]:
    rows = (f"    {_raw(pattern)}: {spec}," for pattern, spec in rules.items())
    return [f"{name} = {{", *rows, "}"]


def _raw(pattern: str) -> str:
    return repr(pattern) if '"' in pattern else f'r"{pattern}"'


def _call(start: str, parts: Sequence[str]) -> list[str]:
    line = f"{start}({', '.join(parts)})"
    return [line] if len(line) <= _WIDTH else [f"{start}(", *(f"    {p}," for p in parts), ")"]


def _tuple(parts: Sequence[str]) -> str:
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
