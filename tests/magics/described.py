"""A namespace as plain data: values to the bit, types, order, and what is one and the same object.

A walk of its own, so that it shares nothing with what it tests.
"""

from __future__ import annotations

import collections
import functools
import itertools
import random
import types

import jax
import numpy as np

SKIPPED = ("__dict__", "__weakref__", "__doc__", "__firstlineno__", "__static_attributes__")
ITERATORS = (type(iter([])), zip)
IGNORED = {
    "jax",
    "jnp",
    "np",
    "__builtins__",
    "__name__",
    "In",
    "Out",
    "get_ipython",
    "exit",
    "quit",
    "open",
    "print",
}


class Description:
    """A namespace as plain data; each object has the number under which it was first seen."""

    def __init__(self):
        self.numbers, self.kept = {}, []

    def of(self, value):
        if value is None or type(value) in (int, float, str, bool, bytes, complex, range):
            return (type(value).__name__, value)
        if isinstance(value, jax.core.Tracer):
            return "a tracer"
        if isinstance(value, types.ModuleType) and value.__spec__ is not None:
            return ("module", value.__name__)
        if isinstance(value, np.generic):
            return (str(value.dtype), value.tobytes())
        if id(value) in self.numbers:
            return ("again", self.numbers[id(value)])
        self.numbers[id(value)] = len(self.numbers)
        self.kept.append(value)
        return (self.numbers[id(value)], type(value).__name__, self.inside(value))

    def inside(self, value):  # noqa: PLR0911  a table of kinds
        attributes = self.attributes(value)
        if isinstance(value, jax.Array):
            return (str(value.dtype), value.shape, np.asarray(value).tobytes())
        if isinstance(value, np.ndarray) and value.dtype != object:
            return (str(value.dtype), value.shape, value.tobytes())
        if isinstance(value, np.ndarray):
            return (value.shape, [self.of(v) for v in value.flat])
        if isinstance(value, dict):
            ordered = isinstance(value, collections.OrderedDict)
            items = collections.OrderedDict.items(value) if ordered else dict.items(value)
            return ([(self.of(k), self.of(v)) for k, v in items], attributes)
        if isinstance(value, set | frozenset):
            return sorted(map(repr, value))
        if isinstance(value, list | tuple | collections.deque):
            return ([self.of(v) for v in value], attributes)
        if isinstance(value, type):
            own = value.__module__ == "__main__"
            return [(k, self.of(v)) for k, v in vars(value).items() if own and k not in SKIPPED]
        return self.called(value) or (attributes, self.slots(value))

    def attributes(self, value):
        held = getattr(value, "__dict__", None)
        if not isinstance(held, dict) or isinstance(value, type):
            return None
        return [(k, self.of(v)) for k, v in held.items() if "lock" not in str(type(v)).lower()]

    def slots(self, value):
        names = getattr(type(value), "__slots__", ())
        stored = [n if not n.startswith("__") else f"_Slots{n}" for n in names if n != "__dict__"]
        return [(n, self.of(getattr(value, n))) for n in stored if hasattr(value, n)]

    def called(self, value):  # noqa: PLR0911  a table of kinds
        if isinstance(value, types.FunctionType):
            cells = [self.of(c.cell_contents) for c in value.__closure__ or ()]
            more = self.attributes(value)
            return (value.__name__, cells, self.of(value.__defaults__), more)
        if isinstance(value, types.MethodType | types.BuiltinMethodType):
            return (value.__name__, self.of(value.__self__))
        if isinstance(value, functools.partial):
            return [self.of(v) for v in (value.func, value.args, value.keywords)]
        if isinstance(value, random.Random):
            return hash(value.getstate())
        if isinstance(value, np.random.Generator):
            return repr(value.bit_generator.state)
        if isinstance(value, types.GeneratorType):
            return [self.of(v) for v in value]
        if isinstance(value, itertools.count):
            return repr(value)
        if isinstance(value, ITERATORS):
            return [self.of(v) for v in value]
        if type(value).__name__ == "ContextVar":
            return self.of(value.get())
        return None


def numpy_state():
    return np.random.get_state()  # noqa: NPY002  the one of the process


def described(namespace, before=frozenset()):
    """Describe the names of a namespace that have no underscore in front, in their order."""
    description = Description()
    names = [n for n in namespace if not n.startswith("_") and n not in IGNORED]
    own = {n: description.of(namespace[n]) for n in sorted(names) if n not in before}
    own["random states"] = [hash(random.getstate()), numpy_state()[1].tobytes()]
    return own
