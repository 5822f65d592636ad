"""The tensors that torch code computes with while it is traced."""

from __future__ import annotations

from typing import Any

import jax
import torch
from torch.utils import _pytree as pytree
from torchax.tensor import Environment, Tensor
from torchax.view import View

from shardnb.torch.traced import Traced


class SharedTensor(Tensor):
    """torchax's tensor of a value that another tensor holds: what changes it in place changes both.

    torchax computes with these: to it they are on its own device, as its results are.
    """

    def __init__(self, shared: list[Any], env: Environment) -> None:
        """Share the value that the list holds."""
        self._shared = shared
        self._env = env

    @staticmethod
    def __new__(cls: Any, shared: list[Any], env: Environment) -> SharedTensor:
        """Make a tensor of the shape of the value."""
        made: SharedTensor = Tensor.__new__(cls, shared[0], env)
        return made

    @property
    def _elem(self) -> Any:
        return self._shared[0]

    @_elem.setter
    def _elem(self, value: Any) -> None:
        self._shared[0] = value


class TracedTensor(Tensor):
    """A tensor whose value is one of JAX's traced values.

    Several may share a value, as a tensor and its `detach()` do: a change of one in place is one
    of all. With `manual` the value has a leading dimension of one entry per device, and the tensor
    is what each device computes with.
    """

    __torch_function__ = torch._C._disabled_torch_function_impl

    # torchax's own lose the gradient, or are called past what records it.
    flatten = torch.Tensor.flatten
    detach = torch.Tensor.detach
    type_as = torch.Tensor.type_as
    __setitem__ = torch.Tensor.__setitem__
    data = torch.Tensor.data
    numpy = torch.Tensor.numpy
    tolist = torch.Tensor.tolist

    @staticmethod
    def __new__(
        cls: Any, elem: Any, env: Environment, requires_grad: bool = False, manual: bool = False
    ) -> TracedTensor:
        """Make a tensor with the shape of the value, for one device where it is manual."""
        shape = elem.shape[1:] if manual else elem.shape
        shown = jax.ShapeDtypeStruct(shape, elem.dtype)
        made: TracedTensor = Tensor.__new__(cls, shown, env, requires_grad)
        return made

    def __init__(
        self, elem: Any, env: Environment, requires_grad: bool = False, manual: bool = False
    ) -> None:
        """Hold a value of its own."""
        self._shared = [elem]
        self.manual = manual
        super().__init__(elem, env, requires_grad)

    @property
    def _elem(self) -> Any:
        return self._shared[0]

    @_elem.setter
    def _elem(self, value: Any) -> None:
        self._shared[0] = value

    @property
    def shape(self) -> torch.Size:
        """The shape, for one device where it is manual."""
        return torch.Size(self._elem.shape[1:] if self.manual else self._elem.shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def device(self) -> torch.device:
        """The device that the user's tensors are on, so that code which compares them goes on."""
        return torch.device("cpu")

    def shares(self, requires_grad: bool = False) -> TracedTensor:
        """Return another tensor with the same value, now and after a change in place."""
        alias = TracedTensor(self._elem, self._env, requires_grad, self.manual)
        alias._shared = self._shared
        return alias

    def __repr__(self) -> str:
        """Say what it is: it has no values yet."""
        return f"TracedTensor(shape={tuple(self.shape)}, dtype={self.dtype})"

    __str__ = __repr__

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run what torch itself calls, such as the sum of two gradients."""
        if func is torch.ops.prim.device.default:
            return Tensor.__torch_dispatch__(func, types, args, kwargs)
        first = next(leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, cls))
        if any(isinstance(leaf, cls) and leaf.manual for leaf in pytree.tree_leaves(args)):
            return _per_device(func, first._env, args, kwargs or {})
        with first._env:
            return as_traced(first._env.dispatch(func, types, args, kwargs))


def _per_device(func: Any, env: Environment, args: Any, kwargs: Any) -> Any:
    """Run an operation of torch's own on manual tensors, for each device."""
    leaves, structure = pytree.tree_flatten((args, kwargs))
    at = [i for i, leaf in enumerate(leaves) if isinstance(leaf, TracedTensor)]

    def run(*values: Any) -> Any:
        given = list(leaves)
        for i, value in zip(at, values, strict=True):
            given[i] = Tensor(value, env)
        plain, named = structure_of(given, structure)
        with env:
            out = env.dispatch(func, (), plain, named)
        return pytree.tree_map_only(torch.Tensor, lambda tensor: tensor.jax(), out)

    axes = [0 if leaves[i].manual else None for i in at]
    out = jax.vmap(run, in_axes=axes)(*(leaves[i]._elem for i in at))
    return pytree.tree_map_only(jax.Array, lambda e: TracedTensor(e, env, manual=True), out)


def structure_of(leaves: list[Any], structure: Any) -> Any:
    """Return the arguments of a call with other leaves."""
    return pytree.tree_unflatten(leaves, structure)


def as_traced(values: Any) -> Any:
    """Return results of torchax's as traced tensors; views stay views of what they are of."""

    def traced(tensor: Any) -> Any:
        return tensor if isinstance(tensor, Traced) else TracedTensor(tensor.jax(), tensor._env)

    return pytree.tree_map_only(Tensor, traced, values)


Traced.register(TracedTensor)
Traced.register(View)
