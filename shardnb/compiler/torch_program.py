"""Torch code as a function of arrays: its tensors are the inputs, torchax computes with JAX."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import jax
from jax.sharding import NamedSharding
from jax.tree_util import DictKey, GetAttrKey, SequenceKey, keystr

from shardnb.compiler.plain_trees import Node
from shardnb.torch.host_numbers import HostNumbers
from shardnb.torch.marks import Annotation, Frame, Variant, named_on
from shardnb.torch.spmd import SpmdSharding
from shardnb.torch.traced import is_torch_module, is_torch_tensor, tracer_of

if TYPE_CHECKING:
    from shardnb.torch.trace import Trace

Tree = Any
Keys = tuple[Any, ...]

GRADIENTS = "gradients of the annotated tensors"
"""The name of the results that a variant of a program has beside the user's."""


def torch_types() -> AbstractContextManager[Any]:
    """Give arrays torch's types in this thread and block: JAX has 64 bits only if it is asked."""
    kept: AbstractContextManager[Any] = jax.enable_x64(True)  # noqa: FBT003 - its only argument
    return kept


class _Itself:
    """The key of a tensor beside its gradient: its name is that of both."""

    def __str__(self) -> str:
        return ""


_ITSELF = _Itself()


@dataclass(frozen=True)
class Input:
    """A tensor that torch code reads, or the gradient that one had before, by its path."""

    keys: Keys
    tensor: Any
    of_gradient: bool = False


@dataclass(frozen=True)
class TorchInputs:
    """The tensors of torch code by argument, and the arrays that hold their values.

    The arrays are pytrees in which each tensor has the path that the user has for it. `scalars`
    stay on the host: tensors of one number, which torch mixes with those of any device, and which
    code such as an optimizer's step counts with.
    """

    tensors: Mapping[str, Sequence[Input]]
    scalars: Mapping[str, Any] = field(default_factory=dict)

    @property
    def every(self) -> Iterator[tuple[str, Input]]:
        """Each tensor with its name, in the order of the arrays."""
        for name, inputs in self.tensors.items():
            yield from ((f"{name}{keystr(one.keys)}", one) for one in inputs)

    def arguments(self) -> dict[str, Tree]:
        """Return the arrays by argument."""
        from shardnb.torch.arrays import array_of

        arrays = {name: array_of(_value(one), name) for name, one in self.every}
        return self._trees([arrays[name] for name, _ in self.every])

    def specs(self, shardings: Sequence[NamedSharding | None]) -> dict[str, Tree]:
        """Return the shardings of the tensors, one for each, in the structure of the arrays."""
        trees = self._trees(shardings)
        at, specs = 0, {}
        for name, inputs in self.tensors.items():
            if any(one is not None for one in shardings[at : at + len(inputs)]):
                specs[name] = trees[name]
            at += len(inputs)
        return specs

    def _trees(self, leaves: Sequence[Any]) -> dict[str, Tree]:
        each = iter(leaves)
        return {
            name: _nested([(one.keys, next(each)) for one in inputs])
            for name, inputs in self.tensors.items()
        }


def _value(one: Input) -> Any:
    return one.tensor.grad if one.of_gradient else one.tensor


def _nested(leaves: Sequence[tuple[Keys, Any]]) -> Tree:
    if len(leaves) == 1 and not leaves[0][0]:
        return leaves[0][1]
    groups: dict[Any, list[tuple[Keys, Any]]] = {}
    for keys, leaf in leaves:
        groups.setdefault(keys[0] if keys else _ITSELF, []).append((keys[1:], leaf))
    return Node(tuple(groups), tuple(_nested(group) for group in groups.values()))


def torch_inputs(named: Iterable[tuple[str, Keys, Any]]) -> TorchInputs:
    """Return the inputs for tensors by name and path; the first of two paths to one tensor holds.

    A gradient that a tensor has already is an input beside it.
    """
    found: dict[str, list[Input]] = {}
    seen: set[int] = set()
    scalars: dict[str, Any] = {}
    for name, keys, tensor in named:
        if id(tensor) in seen:
            continue
        seen.add(id(tensor))
        if tensor.dim() == 0 and tensor.device.type == "cpu" and not tensor.requires_grad:
            scalars[f"{name}{keystr(keys)}"] = tensor
            continue
        found.setdefault(name, []).append(Input(keys, tensor))
        if tensor.is_leaf and tensor.grad is not None:
            found[name].append(Input((*keys, GetAttrKey("grad")), tensor, of_gradient=True))
    ordered = {name: _in_order(inputs) for name, inputs in found.items()}
    return TorchInputs(ordered, scalars)


def _in_order(inputs: list[Input]) -> list[Input]:
    """Sort tensors as the nested pytree of their paths has them."""
    numbers = iter(jax.tree_util.tree_leaves(_nested([(x.keys, i) for i, x in enumerate(inputs)])))
    return [inputs[number] for number in numbers]


def tensors_in(name: str, value: Any) -> Iterator[tuple[str, Keys, Any]]:
    """Yield the tensors of a module, of a pytree, or a tensor itself, with the paths to them."""
    import torch
    from torch.utils import _pytree as pytree

    if is_torch_module(value):
        for path, tensor in (*value.named_parameters(), *value.named_buffers()):
            yield name, keys_of_module(path), tensor
        return
    for path, leaf in pytree.tree_flatten_with_path(value)[0]:
        keys = tuple(map(_key, path))
        if is_torch_module(leaf):
            yield from ((name, keys + rest, t) for _, rest, t in tensors_in(name, leaf))
        elif isinstance(leaf, torch.Tensor):
            yield name, keys, getattr(leaf, "global_tensor", leaf)


def keys_of_module(path: str) -> Keys:
    """Return a parameter's path in a module as keys: a number is an item of a container.

    >>> keystr(keys_of_module("layers.0.weight"))
    '.layers[0].weight'
    """
    steps = path.split(".")
    return tuple(SequenceKey(int(s)) if s.isdigit() else GetAttrKey(s) for s in steps)


def _key(key: Any) -> Any:
    for attribute, kind in (("idx", SequenceKey), ("key", DictKey), ("name", GetAttrKey)):
        if hasattr(key, attribute):
            return kind(getattr(key, attribute))
    return GetAttrKey(str(key))


def scopes_of(named: Iterable[tuple[str, Any]]) -> dict[int, str]:
    """Return the user's names of modules and of those inside them, by their `id`."""
    scopes: dict[int, str] = {}
    for name, value in named:
        if is_torch_module(value):
            for path, module in value.named_modules():
                inner = keystr(keys_of_module(path)) if path else ""
                scopes.setdefault(id(module), f"{name}{inner}")
    return scopes


@dataclass
class TorchProgram:
    """What torch code says of a program while it is traced.

    `annotations` and the shardings of inputs are those of the last trace. `changed` are the
    tensors that it changed in place, or whose gradient it did, and `counted` the numbers on the
    host with what they became.
    """

    inputs: TorchInputs
    scopes: Mapping[int, str]
    mesh: jax.sharding.Mesh
    variant: Variant = field(default_factory=Variant)
    annotations: list[Annotation] = field(default_factory=list)
    placed: dict[int, Any] = field(default_factory=dict)
    cleared: frozenset[int] = frozenset()
    changed: list[tuple[str, Any, bool]] = field(default_factory=list)
    counted: list[tuple[Any, Any]] = field(default_factory=list)
    _numbers: HostNumbers | None = None

    def varied(self, variant: Variant) -> TorchProgram:
        """Return the program with its annotations traced in another way."""
        return replace(self, variant=variant, annotations=[], changed=[], counted=[])

    def begin(self, trees: Sequence[Tree]) -> Trace:
        """Begin a trace: traced values stand for the tensors."""
        from shardnb.torch.trace import Trace

        trace = Trace(self.scopes, self.mesh, self.variant)
        self._numbers = HostNumbers(self.inputs.scalars.values())
        values = iter(jax.tree_util.tree_leaves(list(trees)))
        given = [(name, one, next(values)) for name, one in self.inputs.every]
        gradients = {id(one.tensor): v for _, one, v in given if one.of_gradient}
        for name, one, value in given:
            if not one.of_gradient:
                trace.add(one.tensor, value, gradients.get(id(one.tensor)), name)
        if self.variant.gradients:
            for name, tensor, _, _ in self.marked_before():
                trace.note_gradient(tensor, name)
        return trace

    def end(self, trace: Trace) -> tuple[dict[str, Any], dict[str, Any]]:
        """End a trace: gives the tensors that were changed by name, and the gradients to return.

        A gradient that the code took away is remembered, as None.
        """
        changed: dict[str, Any] = {}
        self.changed = []
        self.counted = self._numbers.changed() if self._numbers else []
        names = {id(tensor): name for name, tensor in self.inputs.scalars.items()}
        for number, standin in enumerate(list(trace.standins.values())):
            name = standin.name or names.get(id(standin.tensor), f"tensor {number}")
            if standin.is_changed:
                changed[name] = standin.traced
                self.changed.append((name, standin.tensor, False))
            if standin.has_new_gradient:
                self.changed.append((f"{name}.grad", standin.tensor, True))
                if standin.traced.grad is not None:
                    changed[f"{name}.grad"] = standin.traced.grad
        self.annotations = list(trace.marks.made)
        self.placed, self.cleared = dict(trace.marks.placed), frozenset(trace.marks.cleared)
        return changed, {str(k): v for k, v in trace.marks.cotangents.items()}

    def restore(self) -> None:
        """Take back what a trace did to numbers on the host; `counted` has what they became."""
        if self._numbers:
            self._numbers.restore()

    def marked(self) -> Iterator[tuple[Any, SpmdSharding | None, Any]]:
        """Yield the tensors that the code marked or cleared, with how they are sharded now."""
        calls = {made.subject: made.frames for made in self.annotations}
        for name, one in self.inputs.every:
            if id(one.tensor) in self.placed and not one.of_gradient:
                yield one.tensor, self.placed[id(one.tensor)], calls.get(name)
            elif id(one.tensor) in self.cleared:
                yield one.tensor, None, None

    def marked_before(self) -> Iterator[tuple[str, Any, SpmdSharding, tuple[Frame, ...]]]:
        """Yield the inputs that were marked before the program, with the calls that did it."""
        from shardnb.torch.annotations import call_that_marked, placement_of

        for name, one in self.inputs.every:
            frames, sharding = call_that_marked(one.tensor), placement_of(one.tensor)
            apart = one.of_gradient or id(one.tensor) in self.placed
            if frames is not None and sharding is not None and not apart:
                yield name, one.tensor, sharding, frames

    def in_specs(self) -> dict[str, Tree]:
        """Return the shardings of the inputs as they are marked, before the code and in it."""
        from shardnb.torch.annotations import placement_of, uneven

        shardings: list[NamedSharding | None] = []
        for name, one in self.inputs.every:
            of_tensor = not one.of_gradient and id(one.tensor) in (*self.placed, *self.cleared)
            stated = self.placed.get(id(one.tensor)) if of_tensor else None
            if not of_tensor and name != self.variant.without:
                stated = placement_of(_value(one))
            if stated is not None and uneven(stated, tuple(one.tensor.shape)):
                stated = None  # padded by a constraint in the program
            shardings.append(None if stated is None else named_on(self.mesh, stated))
        return self.inputs.specs(shardings)


@dataclass
class TorchFunction:
    """A call of the user's as a function of the arrays of its tensors."""

    call: Callable[[], Any]
    program: TorchProgram
    __name__: str = "program"

    def varied(self, variant: Variant) -> TorchFunction:
        """Return the function whose annotations are traced in another way."""
        return TorchFunction(self.call, self.program.varied(variant), self.__name__)

    def __call__(self, *trees: Tree) -> Tree:
        """Run the call on traced tensors; gives its result, and what it changed, as arrays."""
        import torch

        from shardnb.torch.trace import tracing

        trace, state = self.program.begin(trees), torch.get_rng_state()
        try:
            with tracing(trace):
                result = self.call()
            changed, gradients = self.program.end(trace)
            outputs = _arrays({"result": result, **changed} if changed else result)
            if not self.program.variant.gradients:
                return outputs
            return {"result": outputs, GRADIENTS: _arrays(gradients)}
        finally:
            trace.clear()
            self.program.restore()
            torch.set_rng_state(state)


def _arrays(tree: Tree) -> Tree:
    """Return results as arrays; what is not a tensor is left out."""
    from torch.utils import _pytree as pytree

    def array(leaf: Any) -> Any:
        value = tracer_of(getattr(leaf, "global_tensor", leaf))
        if is_torch_tensor(value):
            from shardnb.torch.arrays import array_of

            return array_of(value)
        return value if isinstance(value, jax.Array | jax.core.Tracer) else ()

    return _plain_containers(pytree.tree_map(array, tree))


def _plain_containers(tree: Tree) -> Tree:
    if isinstance(tree, dict):
        return {str(key): _plain_containers(value) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return tuple(map(_plain_containers, tree))
    return tree
