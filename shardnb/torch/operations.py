"""One call of a function of torch's on traced tensors: its values, and its gradient.

The forward pass is torchax's, in JAX. The gradient is JAX's own, taken call by call and handed to
torch's autograd: so every operation that torchax has can be differentiated, and what the backward
pass computes has the user's line of the forward pass, and JAX's names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import torch
from torch.autograd.function import once_differentiable
from torch.utils import _pytree as pytree
from torchax.tensor import Environment, Tensor
from torchax.view import View

from shardnb.torch.tensors import SharedTensor, TracedTensor, as_traced, structure_of

SCOPE = "torch="
"""Begins the name of a scope that says in which module an operation is; see `report.op_names`."""

_CHANGED_VIEW = (
    "{} changes a view of a tensor in place where gradients are recorded, which %%shard cannot "
    "follow: write to the tensor itself, such as x[0] = value, or use torch.no_grad()"
)


@dataclass
class Call:
    """A call of a function of torch's, with the tensors among its arguments by their places.

    `axes` are the mesh axes over which manual tensors have their leading dimension.
    """

    function: Callable[..., Any]
    leaves: list[Any]
    structure: Any
    env: Environment
    scope: str
    axes: tuple[str, ...] = ()
    at: dict[int, Any] = field(default_factory=dict)

    def result(self) -> Any:
        """Make the call; gives traced tensors in the place of arrays."""
        tensors = list({id(tensor): tensor for tensor in self.at.values()}.values())
        if any(getattr(tensor, "manual", False) for tensor in tensors):
            return self._recorded(tensors, manual=True)
        if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
            return self._recorded(tensors, manual=False)
        inner = {id(t): self._shared(t) for t in tensors}
        outer = {id(inner[id(t)]): t for t in tensors}
        with torch.no_grad(), self.env, jax.named_scope(SCOPE + self.scope):
            at = {i: inner[id(tensor)] for i, tensor in self.at.items()}
            arguments, named = structure_of(self._given(at), self.structure)
            returned = self._invoked(arguments, named)
        return as_traced(pytree.tree_map(lambda leaf: outer.get(id(leaf), leaf), returned))

    def _shared(self, tensor: Any) -> Any:
        """Return torchax's tensor of the same value, whose changes in place are the tensor's."""
        return SharedTensor(tensor._shared, self.env) if hasattr(tensor, "_shared") else tensor

    def _given(self, tensors: dict[int, Any]) -> list[Any]:
        return [tensors.get(i, leaf) for i, leaf in enumerate(self.leaves)]

    def _invoked(self, arguments: Sequence[Any], named: dict[str, Any]) -> Any:
        """Call the function, or the method with which torchax's tensors replace it."""
        name = getattr(self.function, "__name__", "")
        own = Tensor.__dict__.get(name)
        if callable(own) and getattr(torch.Tensor, name, None) is self.function:
            return getattr(arguments[0], name)(*arguments[1:], **named)
        return self.function(*arguments, **named)

    def _recorded(self, tensors: list[Any], *, manual: bool) -> Any:
        """Make the call with its gradient, or for each device."""
        shape = _Shape(self, tensors)
        values = [tensor.jax() for tensor in tensors]
        run = self._per_device(shape, tensors) if manual else shape.run
        wanted = torch.is_grad_enabled()
        kept = [i for i, t in enumerate(tensors) if wanted and t.requires_grad]
        if not kept:
            arrays, others = run(*values)
            outputs = shape.changed_in_place(arrays, manual)
        else:
            outputs, others = _Differentiated.call(run, tensors, values, kept, shape)
        return shape.unpacked(outputs, others, manual)

    def _per_device(self, shape: _Shape, tensors: list[Any]) -> Callable[..., Any]:
        axes = [0 if getattr(tensor, "manual", False) else None for tensor in tensors]
        return jax.vmap(shape.run, in_axes=axes, spmd_axis_name=self.axes)


class _Shape:
    """What a call returns: learned while it runs as a function of arrays.

    A result may be a new array, one of the tensors that the call was given, or no tensor; and the
    call may have changed some of those in place.
    """

    def __init__(self, call: Call, tensors: list[Any]) -> None:
        self._call = call
        self.tensors = tensors
        self._number = {id(tensor): i for i, tensor in enumerate(tensors)}
        self.changed: list[int] = []
        self._results: list[Any] = []
        self._structure: Any = None

    def run(self, *values: Any) -> tuple[list[Any], list[Any]]:
        """Run the call on arrays: returns those with a gradient, changed ones last, and others."""
        call = self._call
        inner = [Tensor(value, call.env) for value in values]
        at = {i: inner[self._number[id(tensor)]] for i, tensor in call.at.items()}
        with torch.no_grad(), call.env, jax.named_scope(SCOPE + call.scope):
            arguments, named = structure_of(call._given(at), call.structure)
            returned = call._invoked(arguments, named)
            leaves, self._structure = pytree.tree_flatten(returned)
            given = {id(tensor): i for i, tensor in enumerate(inner)}
            floats, others = self._sorted(leaves, given)
        pairs = enumerate(zip(inner, values, strict=True))
        self.changed = [i for i, (tensor, value) in pairs if tensor._elem is not value]
        if any(getattr(self.tensors[i], "is_of_a_view", False) for i in self.changed):
            name = getattr(call.function, "__name__", "this call")
            raise NotImplementedError(_CHANGED_VIEW.format(name))
        return [*floats, *(inner[i]._elem for i in self.changed)], others

    def _sorted(self, leaves: list[Any], given: dict[int, int]) -> tuple[list[Any], list[Any]]:
        floats: list[Any] = []
        others: list[Any] = []
        self._results = []
        for leaf in leaves:
            if not isinstance(leaf, torch.Tensor):
                self._results.append(("plain", leaf, False))
            elif id(leaf) in given:
                self._results.append(("given", given[id(leaf)], False))
            else:
                value = leaf.jax()
                differentiable = jnp.issubdtype(value.dtype, jnp.inexact)
                into = floats if differentiable else others
                kind = "float" if differentiable else "other"
                self._results.append((kind, len(into), isinstance(leaf, View)))
                into.append(value)
        return floats, others

    def changed_in_place(self, arrays: list[Any], manual: bool) -> list[Any]:
        """Write what the call changed in place, where no gradient is recorded."""
        count = len(arrays) - len(self.changed)
        for i, value in zip(self.changed, arrays[count:], strict=True):
            self.tensors[i]._elem = value
        env = self._call.env
        return [TracedTensor(value, env, manual=manual) for value in arrays[:count]]

    def unpacked(self, floats: list[Any], others: list[Any], manual: bool) -> Any:
        """Return what the call returns, with traced tensors for its arrays."""
        env, leaves = self._call.env, []
        for kind, value, is_view in self._results:
            if kind == "plain":
                leaves.append(value)
            elif kind == "given":
                leaves.append(self.tensors[value])
            else:
                made = floats[value] if kind == "float" else None
                made = TracedTensor(others[value], env, manual=manual) if made is None else made
                made.is_of_a_view = is_view
                leaves.append(made)
        return pytree.tree_unflatten(leaves, self._structure)


class _Differentiated(torch.autograd.Function):
    """A call as torch's autograd sees it: JAX has its gradient."""

    @staticmethod
    def call(
        run: Callable[..., Any],
        tensors: list[Any],
        values: list[Any],
        kept: list[int],
        shape: _Shape,
    ) -> tuple[list[Any], list[Any]]:
        """Make a call whose gradient for the tensors of the numbers `kept` is wanted."""
        others: list[Any] = []
        # Those without a gradient too: the call may change them in place, so that they have one.
        outputs = _Differentiated.apply(run, values, kept, shape, others, *tensors)
        return list(outputs), others

    @staticmethod
    def forward(
        ctx: Any, run: Any, values: Any, kept: Any, shape: Any, others: Any, *given: Any
    ) -> Any:
        """Run the call, and keep its pullback."""

        def of_kept(*some: Any) -> Any:
            every = list(values)
            for i, value in zip(kept, some, strict=True):
                every[i] = value
            return run(*every)

        arrays, ctx.pullback, rest = jax.vjp(of_kept, *(values[i] for i in kept), has_aux=True)
        others += rest
        ctx.shapes = [(array.shape, array.dtype) for array in arrays]
        ctx.set_materialize_grads(False)
        env, manual = shape._call.env, any(getattr(t, "manual", False) for t in shape.tensors)
        ctx.kept, ctx.count = kept, len(given)
        ctx.manual = [getattr(given[i], "manual", False) for i in kept]
        count = len(arrays) - len(shape.changed)
        for i, value in zip(shape.changed, arrays[count:], strict=True):
            shape.tensors[i]._elem = value
        ctx.env, changed = env, [shape.tensors[i] for i in shape.changed]
        ctx.mark_dirty(*changed)
        return (*(TracedTensor(v, env, manual=manual) for v in arrays[:count]), *changed)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Any) -> Any:
        """Pull the gradients of the results back to the arguments."""
        cotangents = [
            jnp.zeros(shape, dtype) if gradient is None else gradient.jax().astype(dtype)
            for gradient, (shape, dtype) in zip(gradients, ctx.shapes, strict=True)
        ]
        pulled = ctx.pullback(cotangents)
        made = [None] * ctx.count
        for i, value, manual in zip(ctx.kept, pulled, ctx.manual, strict=True):
            made[i] = TracedTensor(value, ctx.env, manual=manual)
        return (None, None, None, None, None, *made)


class _Relabelled(torch.autograd.Function):
    """The same value, as one tensor for each device or as a tensor with a dimension of devices."""

    @staticmethod
    def forward(ctx: Any, tensor: TracedTensor, manual: bool) -> TracedTensor:
        """Give the value to a tensor of the other kind."""
        ctx.manual = manual
        return TracedTensor(tensor._elem, tensor._env, manual=manual)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: TracedTensor) -> Any:
        """Give the gradient back as it was."""
        return TracedTensor(gradient._elem, gradient._env, manual=not ctx.manual), None


def relabelled(tensor: TracedTensor, *, manual: bool) -> TracedTensor:
    """Return a tensor of which each device computes with its entry of the leading dimension.

    Without `manual` the way back: a tensor that has that dimension.
    """
    made: TracedTensor = _Relabelled.apply(tensor, manual)
    return made
