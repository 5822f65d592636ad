"""Inputs that are left replicated over a mesh axis that shards others like them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from shardnb.findings.evidence import Evidence
from shardnb.findings.patterns import by_pattern, steps, subject
from shardnb.findings.state_unlike_parameters import unlike
from shardnb.report.model import UNUSED, Finding, Mesh, Value
from shardnb.report.spec import axes_in
from shardnb.views.formatting import size

# Less is nothing to say: the arrays of a toy, and what is little beside all that inputs take, such
# as the norms and biases that everybody leaves replicated. test_replicated_inputs.py has both.
_LEAST_BYTES = 1 << 20
_LEAST_SHARE = 0.1


@dataclass(frozen=True)
class _Replicated:
    """An input that could be sharded over `axes` too, as `like` is; `after` are its bytes then."""

    value: Value
    axes: tuple[str, ...]
    like: Value
    after: int


def find(evidence: Evidence) -> Iterator[Finding]:
    """Find arrays of pytrees that are replicated over an axis that shards their counterparts.

    In a data parallel program parameters are replicated over the axis that shards the batch, as
    they must be. What tells a mistake from that is an array that should be sharded alike: one with
    the same shape and key, as an optimizer's moments have them of parameters, or else most of the
    same pytree. Where the dataflow shows whose state an array is, another finding says it.
    """
    inputs = [v for v in evidence.inputs if v.details != UNUSED and v.spec is not None]
    total = sum(value.shard_bytes for value in inputs)
    groups: dict[tuple[str, tuple[str, ...]], list[_Replicated]] = defaultdict(list)
    said = {found.value.name for found in unlike(evidence)}
    for found in _replicated(inputs, evidence.mesh):
        if found.value.name in said:
            continue
        groups[steps(found.value.name)[0], found.axes].append(found)
    for (_, axes), members in groups.items():
        before = sum(found.value.shard_bytes for found in members)
        after = sum(found.after for found in members)
        if before - after >= max(_LEAST_BYTES, _LEAST_SHARE * total):
            yield Finding(
                "replicated",
                _message(members, axes, before, after),
                wasted_bytes=before - after,
                subject=subject([found.value for found in members]),
                details="\n".join(by_pattern([found.value for found in members])),
            )
    constants = [value for value in inputs if value.name in evidence.constants]
    yield from _constants(constants, evidence.mesh)


def _constants(inputs: Sequence[Value], mesh: Mesh) -> Iterator[Finding]:
    """Find large arrays that the function closes over: no spec can be given for them."""
    for value in inputs:
        if value.shard_bytes >= _LEAST_BYTES and mesh.size > 1:
            yield Finding(
                "replicated",
                f"{value.name} is replicated on all {mesh.size} devices, because jax.jit makes a "
                "constant of an array that the function closes over: pass it as an argument, with "
                "a spec",
                wasted_bytes=value.shard_bytes - value.shard_bytes // mesh.size,
                subject=value.name,
            )


def _replicated(inputs: Sequence[Value], mesh: Mesh) -> Iterator[_Replicated]:
    """Yield the inputs that an axis does not shard and could, in their order."""
    likes: dict[str, dict[str, Value]] = defaultdict(dict)
    for axis in (axis.name for axis in mesh.axes if axis.size > 1):
        for name, like in _counterparts(inputs, axis).items():
            likes[name][axis] = like
    for value in inputs:
        # Each axis takes a dimension of the block that it divides, what is left of it the next.
        block, axes = list(value.shard_shape), []
        for axis in likes.get(value.name, ()):
            parts = mesh.shape[axis]
            dim = next((dim for dim, held in enumerate(block) if held and held % parts == 0), None)
            if dim is not None:
                block[dim] //= parts
                axes.append(axis)
        if axes:
            after = value.shard_bytes // math.prod(mesh.shape[axis] for axis in axes)
            yield _Replicated(value, tuple(axes), likes[value.name][axes[0]], after)


def _counterparts(inputs: Sequence[Value], axis: str) -> Mapping[str, Value]:
    """Give, by the name of an input that an axis does not shard, one like it that it does."""
    trees: dict[str, list[Value]] = defaultdict(list)
    families: dict[tuple[object, ...], list[Value]] = defaultdict(list)
    for value in inputs:
        root, *rest = steps(value.name)
        if rest:
            trees[root].append(value)
            families[value.shape, rest[-1]].append(value)
    sharded_trees = {root: _mostly_sharded(tree, axis) for root, tree in trees.items()}
    found: dict[str, Value] = {}
    for family in families.values():
        left = [value for value in family if not _uses(value, axis)]
        sharded = [value for value in family if _uses(value, axis)]
        if not sharded:
            tree_of = ((value.name, sharded_trees[steps(value.name)[0]]) for value in left)
            found |= {name: like for name, like in tree_of if like is not None}
        # An optimizer that shards its state alone (ZeRO) leaves the parameters replicated on
        # purpose. State is what there is more of, or what is nested deeper: opt[0].mu['w'],
        # params['w'].
        elif left and (len(left), _depth(left)) >= (len(sharded), _depth(sharded)):
            found |= {value.name: sharded[0] for value in left}
    return found


def _mostly_sharded(tree: Sequence[Value], axis: str) -> Value | None:
    """Give the largest array of a pytree that an axis shards, where it shards most of the bytes."""
    sharded = [value for value in tree if _uses(value, axis)]
    is_most = 2 * sum(v.bytes for v in sharded) >= sum(v.bytes for v in tree)
    return max(sharded, key=lambda value: value.bytes) if sharded and is_most else None


def _uses(value: Value, axis: str) -> bool:
    """Whether an axis, or a part of it, shards an array or holds its partial sums."""
    used = {*axes_in(value.spec or ()), *value.unreduced}
    return any(name.partition(":(")[0] == axis for name in used)


def _depth(values: Sequence[Value]) -> int:
    return max(len(steps(value.name)) for value in values)


def _message(members: Sequence[_Replicated], axes: Sequence[str], before: int, after: int) -> str:
    largest = max(members, key=lambda found: found.value.shard_bytes)
    be, they = ("is", "it") if len(members) == 1 else ("are", "they")
    same = largest.like.shape == largest.value.shape
    others = "arrays of the same shape and key" if same else "most of the same pytree"
    shard = "shards" if len(axes) == 1 else "shard"
    arrays = subject([found.value for found in members])
    return (
        f"{arrays} {be} replicated over {' and '.join(axes)}, which {shard} {others}, such as "
        f"{largest.like.name}: sharded too, {they} would take {size(after)} per device instead of "
        f"{size(before)}"
    )
