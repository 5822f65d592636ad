"""One trace of torch code: the user's tensors, with traced values in their place.

The code runs on the user's own tensors and modules, and none of these is changed. Each call of a
function of torch's is seen before torch sees it, and made on the traced tensors that stand for its
arguments; so are reads and writes of attributes, such as `weight.grad`.
"""

from __future__ import annotations

import inspect
import operator
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import GetSetDescriptorType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
import torchax
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from shardnb.torch.arrays import array_of
from shardnb.torch.marks import Marks, Variant
from shardnb.torch.operations import Call
from shardnb.torch.tensors import TracedTensor
from shardnb.torch.traced import Traced

# Read from the tensor itself: its values are not needed for them.
_PLAIN = frozenset(
    {"__hash__", "__len__", "__deepcopy__", "__reduce_ex__", "dim", "size", "numel", "nelement"}
    | {"ndimension", "stride", "is_contiguous", "element_size", "storage_offset", "get_device"}
    | {"is_floating_point", "is_complex", "is_signed", "is_conj", "is_neg", "is_inference"}
    | {"is_shared", "is_pinned", "has_names"}
)
# Part of torch's autograd, or of the tensor that stands for the user's.
_OF_STANDIN = frozenset(
    {"requires_grad_", "retain_grad", "register_hook", "register_post_accumulate_grad_hook"}
    | {"__repr__", "__format__", "__str__"}
)
# What reads a tensor's numbers: JAX says of a traced value why it has none yet.
_READS: dict[str, Callable[[Any], Any]] = {
    "__bool__": bool,
    "__float__": float,
    "__index__": operator.index,
    "__int__": int,
    "is_nonzero": bool,
    "item": lambda value: value.item(),
    "numpy": np.asarray,
    "tolist": lambda value: value.tolist(),
}
_COMPUTED = frozenset({"T", "mT", "H", "mH", "real", "imag"})
_GRADIENTS = frozenset({"grad", "grad_fn", "is_leaf", "requires_grad", "retains_grad"})


@dataclass
class StandIn:
    """The traced tensor for a tensor of the user's, and what it was at the start.

    An input of the program has a `name`. `used` is what calls are given in its place: the tensor
    with a constraint on its gradient.
    """

    tensor: torch.Tensor
    traced: TracedTensor
    value: Any
    gradient: Any = None
    name: str = ""
    used: Any = None

    @property
    def has_new_gradient(self) -> bool:
        """Whether the code gave the tensor another gradient, or added to the one it had."""
        now = self.traced.grad
        return (None if now is None else now._elem) is not self.gradient

    @property
    def is_changed(self) -> bool:
        """Whether the code changed the tensor in place."""
        return self.traced._elem is not self.value


class Trace:
    """The tensors of one trace, by the tensors of the user's that they stand for."""

    def __init__(
        self,
        scopes: Mapping[int, str] | None = None,
        mesh: jax.sharding.Mesh | None = None,
        variant: Variant | None = None,
    ) -> None:
        """Begin with no tensor; `scopes` names modules by their `id`."""
        self.marks = Marks(mesh, variant or Variant())
        self.env = torchax.default_env()
        self.standins: dict[int, StandIn] = {}
        self._by_traced: dict[int, torch.Tensor] = {}
        self._scopes = scopes or {}
        self._modules: list[str] = []
        self.axes: tuple[str, ...] = () if mesh is None else tuple(mesh.axis_names)

    # Tensors

    def add(self, tensor: torch.Tensor, value: Any, gradient: Any = None, name: str = "") -> None:
        """Let a traced value stand for a tensor of the user's, and another for its gradient."""
        floating = jnp.issubdtype(value.dtype, jnp.inexact)
        with torch._C.DisableTorchFunction():
            wanted = floating and tensor.requires_grad
        traced = TracedTensor(value, self.env, wanted)
        standin = StandIn(tensor, traced, value, name=name)
        if gradient is not None:
            standin.gradient, traced.grad = gradient, TracedTensor(gradient, self.env)
        self.standins[id(tensor)] = standin
        self._by_traced[id(traced)] = tensor

    def wrapped(self, tensor: Any) -> Any:
        """Return the traced tensor for one that is given to a call."""
        if isinstance(tensor, Traced):
            return tensor
        if (whole := getattr(tensor, "global_tensor", None)) is not None:
            return self.wrapped(whole)
        if id(tensor) not in self.standins:
            with torch._C.DisableTorchFunction():
                if tensor.grad_fn is not None:
                    raise RuntimeError(
                        "a tensor that was computed before this program, with a gradient, is used "
                        "in it: the gradient would stop there. Compute it in the program, or pass "
                        "tensor.detach()"
                    )
                values = array_of(tensor)
            self.add(tensor, jnp.asarray(values))
        standin = self.standins[id(tensor)]
        return standin.traced if standin.used is None else standin.used

    def leaf(self, tensor: Any) -> Any:
        """Return the traced tensor that holds the gradient of one of the user's."""
        wrapped = self.wrapped(tensor)
        standin = self.standins.get(id(getattr(tensor, "global_tensor", tensor)))
        return wrapped if standin is None else standin.traced

    def _restored(self, value: Any) -> Any:
        """Return the user's tensor where a call returns what stands for it."""
        return self._by_traced.get(id(value), value)

    def _is_native(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor has its own values, and no gradient is recorded for it."""
        if isinstance(tensor, Traced) or getattr(tensor, "global_tensor", None) is not None:
            return False
        standin = self.standins.get(id(tensor))
        if standin is not None and (standin.name or standin.is_changed):
            return False
        return not (tensor.requires_grad and torch.is_grad_enabled())

    def note_gradient(self, tensor: Any, name: int | str) -> None:
        """Keep the gradient of a tensor under a name, where the program is to return it."""
        leaf = self.leaf(tensor)
        if leaf.requires_grad:

            def keep(gradient: Any) -> None:
                self.marks.cotangents[name] = gradient

            leaf.register_hook(keep)

    def clear(self) -> None:
        """Let go of all traced values."""
        self.standins.clear()
        self._by_traced.clear()

    # Calls

    def called(self, function: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Make a call of the user's."""
        name = getattr(function, "__name__", "")
        if isinstance(getattr(function, "__self__", None), GetSetDescriptorType):
            attribute = function.__self__.__name__
            if name == "__set__":
                return self._set(attribute, *arguments[:2])
            if name == "__get__" and attribute not in _COMPUTED:
                return self._get(attribute, arguments[0], function)
        return (
            function(*arguments, **named)
            if name in _PLAIN
            else self._made(function, arguments, named)
        )

    def _made(self, function: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Make a call that computes, or that torch's autograd answers."""
        name = getattr(function, "__name__", "")
        if name == "backward" or function is torch.autograd.grad:
            return self._differentiated(function, arguments, named)
        if getattr(function, "__module__", "") == "torch.nn.init" and torch.is_grad_enabled():
            with torch.no_grad():  # as each of them does itself
                return self.called(function, arguments, named)
        tensors = list(filter(_is_tensor, pytree.tree_leaves((arguments, named))))
        if all(map(self._is_native, tensors)):
            self._forget(tensors)
            return function(*arguments, **named)
        if name in _READS:
            return _READS[name](self.wrapped(arguments[0]).jax())
        make = self._on_standin if name in _OF_STANDIN else self._computed
        return make(function, arguments, named)

    def _computed(self, function: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Compute, and give the user's tensors where what stands for them is returned."""
        if function is torch.nn.functional.instance_norm:
            _refuse_statistics(*arguments, **named)
        if function is torch.nn.functional.batch_norm:
            arguments, named = self._with_statistics(function, arguments, named), {}
        return pytree.tree_map(self._restored, self.computed(function, arguments, named))

    def computed(self, function: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Compute with traced tensors; gives such tensors."""
        leaves, structure = pytree.tree_flatten((arguments, named))
        at = {i: self.wrapped(leaf) for i, leaf in enumerate(leaves) if _is_tensor(leaf)}
        return Call(function, leaves, structure, self.env, self.scope, self.axes, at).result()

    def _with_statistics(self, function: Any, arguments: Any, named: Any) -> tuple[Any, ...]:
        """Update the running statistics of a batch norm, which torchax leaves as they are.

        Returns the arguments without them.
        """
        call = inspect.signature(function).bind(*arguments, **named)
        call.apply_defaults()
        given = call.arguments
        if given["training"] and given["running_mean"] is not None:
            x, momentum = given["input"], given["momentum"]
            dims = [dim for dim in range(x.dim()) if dim != 1]
            with torch.no_grad(), Mode(self):
                given["running_mean"].lerp_(x.mean(dims), momentum)
                given["running_var"].lerp_(x.var(dims, unbiased=True), momentum)
            given |= {"running_mean": None, "running_var": None}
        return tuple(given.values())

    def _forget(self, tensors: list[Any]) -> None:
        """Forget what stood for tensors with values, which the call may change."""
        for tensor in tensors:
            standin = self.standins.pop(id(tensor), None)
            if standin is not None:
                self._by_traced.pop(id(standin.traced), None)

    def _on_standin(self, function: Any, arguments: Any, named: Any) -> Any:
        first = self.leaf(arguments[0])
        method = getattr(first, function.__name__)
        return self._restored(method(*arguments[1:], **named))

    def _get(self, attribute: str, tensor: Any, function: Any) -> Any:
        if attribute == "data":
            shared = self.wrapped(tensor)
            return shared.shares() if isinstance(shared, TracedTensor) else shared
        if attribute in _GRADIENTS and not self._is_native(tensor):
            return self._restored(getattr(self.leaf(tensor), attribute))
        return function(tensor)

    def _set(self, attribute: str, tensor: Any, value: Any) -> None:
        traced = self.leaf(tensor)
        if attribute == "data":
            traced._elem = self.wrapped(value).jax()
        elif attribute == "grad" and value is not None:
            traced.grad = self.wrapped(value)
        else:
            setattr(traced, attribute, value)

    def _differentiated(self, function: Any, arguments: Any, named: Any) -> Any:
        """Run torch's autograd on the traced tensors.

        What it calls itself, in backward passes of the user's own too, the tensors' class makes.
        """
        mapped, options = pytree.tree_map_only(torch.Tensor, self.wrapped, (arguments, named))
        return function(*mapped, **options)

    # Modules

    @property
    def scope(self) -> str:
        """The module that runs, by the name that the user has for it."""
        return self._modules[-1] if self._modules else ""

    def enter_module(self, module: Any) -> None:
        """Begin a module's `forward`."""
        self._modules.append(self._scopes.get(id(module), type(module).__name__))

    def leave_module(self) -> None:
        """End a module's `forward`."""
        if self._modules:
            self._modules.pop()


def _refuse_statistics(_: Any, running_mean: Any = None, *__: Any, **named: Any) -> None:
    if running_mean is not None or named.get("running_mean") is not None:
        raise NotImplementedError(
            "instance_norm with running statistics is not followed: torchax does not update them"
        )


def _is_tensor(value: object) -> bool:
    return isinstance(value, torch.Tensor)


class Mode(TorchFunctionMode):
    """Hands each call of a function of torch's to a trace."""

    def __init__(self, trace: Trace) -> None:
        """Hand calls to this trace."""
        super().__init__()
        self._trace = trace

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Make a call."""
        return self._trace.called(func, args, kwargs or {})


def _random_key() -> Any:
    """Return a key for JAX's random numbers from the state of torch's, which stays."""
    state = torch.get_rng_state()
    seed = int(torch.randint(1 << 62, ()))
    torch.set_rng_state(state)
    return jax.random.key(seed)


_LOCAL = threading.local()


def current() -> Trace | None:
    """Return the trace that runs in this thread."""
    trace: Trace | None = getattr(_LOCAL, "trace", None)
    return trace


@contextmanager
def tracing(trace: Trace) -> Iterator[None]:
    """Run torch code in a trace: hooks, random state and modes are as before after it."""
    hooks = torch.nn.modules.module
    thread = threading.get_ident()

    def enter(module: Any, _: Any) -> None:
        if threading.get_ident() == thread:
            trace.enter_module(module)

    def leave(*_: Any) -> None:
        if threading.get_ident() == thread:
            trace.leave_module()

    before, _LOCAL.trace = current(), trace
    entering = hooks.register_module_forward_pre_hook(enter)
    leaving = hooks.register_module_forward_hook(leave, always_call=True)
    key = _random_key()
    try:
        with trace.env.override_property(prng=key), Mode(trace):
            yield
            drew = trace.env.param.prng is not key
        if drew:
            torch.rand(())  # the next program draws other numbers
    finally:
        entering.remove()
        leaving.remove()
        _LOCAL.trace = before
