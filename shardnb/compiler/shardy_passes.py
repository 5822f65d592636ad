"""Shardy in this process: propagation with its reasons, and previews that need no compile.

XLA writes the module that it hands to Shardy (`Dumps.stated`): everything is inlined there, and
what the user stated stands in it. Propagating a copy of it gives what XLA's own run gives, and
debug options make Shardy note where each mesh axis came from and along which op it travelled.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from shardnb.jax_compat import private
from shardnb.report.model import Spec
from shardnb.texts import shardy

# The import must come first: origins on a module with a shard_map that was not imported end the
# process with jaxlib 0.11.0.
_IMPORT = "sdy-import-pipeline"
_PROPAGATE = "sdy-apply-sharding-constraints,sdy-user-priority-propagate"
_PIPELINE = f"{_IMPORT},{_PROPAGATE}"
_ORIGINS = "debug-sharding-origins=true keep-sharding-rules=true"
_EDGES = "debug-propagation-edge-sharding=true"
_ARGUMENT = re.compile(
    r"(%arg(\d+): tensor<[^{},]*?>)(?: \{((?:[^{}\"]|\{[^{}]*\}|\"[^\"]*\")*)\})?"
)
_FOREIGN = re.compile(r"\s*%[^=]* = \"?(mhlo\.\w+|stablehlo\.custom_call @\w+)")
_RULE = re.compile(r"sdy\.sharding_rule = #sdy\.op_sharding_rule<.*?->[^>]*>")
_STATED = re.compile(r"(?:, )?sdy\.sharding = #sdy\.sharding<@[^\]]*\][^>]*>")


@dataclass(frozen=True)
class Propagation:
    """A propagated module. `traced` says whether it holds the edges that axes travelled along."""

    module: shardy.Module
    traced: bool


@dataclass(frozen=True)
class Preview:
    """What Shardy gives for changed inputs, without a compile: the compiler may decide otherwise.

    `text` is the propagated module. Of a large one only what is asked for is read.
    """

    text: str
    changed: Mapping[int, Spec]
    is_preview: bool = True

    @cached_property
    def module(self) -> shardy.Module:
        """Every value with its spec, in the order of the stated module."""
        return shardy.read(self.text)

    @property
    def inputs(self) -> tuple[Spec | None, ...]:
        """The specs of the inputs."""
        return tuple(self.module.values[value].spec for value in self.module.inputs)

    @property
    def outputs(self) -> tuple[Spec | None, ...]:
        """The specs of the results."""
        return shardy.output_specs(self.text)


def prepared(stated: str, propagated: str) -> str:
    """Give XLA's rules to the ops of a stated module whose rules only XLA knows.

    These are XLA's own ops (`mhlo.topk`) and custom calls; without them propagation would end
    there. `propagated` is the module after XLA's own propagation.
    """
    rules: dict[tuple[str, str], list[str]] = defaultdict(list)
    for line in propagated.splitlines():
        if (match := _FOREIGN.match(line)) and (rule := _RULE.search(line)):
            rules[match[1], line.rpartition(" : ")[2]].append(rule[0])
    if not rules:
        return stated
    return "\n".join(_with_rule(line, rules) for line in stated.splitlines())


def _with_rule(line: str, rules: Mapping[tuple[str, str], list[str]]) -> str:
    match = _FOREIGN.match(line)
    head, _, types = line.rpartition(" : ")
    known = rules.get((match[1], types), []) if match else []
    if len(set(known)) != 1 or not head or "sdy.sharding_rule" in head:
        return line
    if head.endswith("}"):
        return f"{head[:-1]}, {known[0]}}} : {types}"
    return f"{head} {{{known[0]}}} : {types}"


def propagate(stated: str) -> Propagation:
    """Propagate a module that XLA wrote before propagation, and note the reasons.

    jaxlib 0.11.0 cannot note the edges of a program with a loop or a branch: only the origins
    are known there. Raises `ValueError` where Shardy refuses the module, and
    `private.NotAvailable`.
    """
    try:
        text = private.run_passes(stated, f"{_PIPELINE}{{{_ORIGINS} {_EDGES}}}")
    except ValueError:
        text = private.run_passes(stated, f"{_PIPELINE}{{{_ORIGINS}}}")
        return Propagation(shardy.read(text), traced=False)
    return Propagation(shardy.read(text), traced=True)


def imported(stated: str) -> str:
    """Do to a module what Shardy does first, whatever its inputs' specs are.

    Raises `ValueError` where Shardy refuses the module, and `private.NotAvailable`.
    """
    return private.run_passes(stated, _IMPORT)


def preview(module: str, specs: Mapping[int, Spec]) -> Preview:
    """Give every value's placement with other specs for some inputs, without compiling.

    `module` is `Dumps.stated` of a program that was compiled once, `prepared` and `imported`;
    `specs` has the new spec by the number of an input. Raises `ValueError` where the module has no
    such input, or Shardy refuses the spec.
    """
    for number, spec in specs.items():
        module = with_input(module, number, spec)
    return Preview(private.run_passes(module, _PROPAGATE), dict(specs))


def with_input(stated: str, number: int, spec: Spec) -> str:
    """Give a stated module with another spec for an input; raises `ValueError` if it has none."""
    head, _, _ = stated.partition(") -> ")
    mesh = re.search(r"sdy\.mesh (@\w+) =", stated)
    for match in _ARGUMENT.finditer(head):
        if int(match[2]) == number and mesh:
            others = _STATED.sub("", match[3] or "").strip(", ")
            sharding = f"sdy.sharding = {attribute(mesh[1], spec)}"
            attributes = ", ".join(part for part in (others, sharding) if part)
            return f"{stated[: match.start()]}{match[1]} {{{attributes}}}{stated[match.end() :]}"
    raise ValueError(f"the program has no input number {number} whose placement could change")


def attribute(mesh: str, spec: Sequence[Sequence[str]]) -> str:
    """Write a spec as Shardy's attribute.

    >>> attribute("@mesh", (("data",), (), ("x:(1)2", "y")))
    '#sdy.sharding<@mesh, [{"data"}, {}, {"x":(1)2, "y"}]>'
    """
    dims = ("{" + ", ".join(_axis(axis) for axis in axes) + "}" for axes in spec)
    return f"#sdy.sharding<{mesh}, [{', '.join(dims)}]>"


def _axis(axis: str) -> str:
    name, colon, part = axis.partition(":(")
    return f'"{name}"{colon}{part}'
