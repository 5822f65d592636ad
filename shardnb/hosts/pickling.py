"""How values travel between the kernel and the engines, so that each stays the object it is.

Arrays stay where they are, under a key. A function goes as its bytecode with the names that it
reads, a class as the statement that defines it, and what is installed by its name. What an engine
sends back refers to the kernel's own objects by their numbers in the pickle that it got.
"""

from __future__ import annotations

import importlib
import io
import marshal
import pickle
import random
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import jax
import numpy as np

from shardnb.hosts import class_source
from shardnb.mesh import devices_for

Namespace = dict[str, Any]
Named = Callable[[str, Any], Any]

_MAIN = "__main__"
# What an exact number or text is costs as much to refer to as to send.
_PLAIN = (str, bytes, int, float, complex, bool, type(None), tuple)


class CannotSend(ValueError):
    """A value that cannot travel; the message says why."""


class Pickler(pickle.Pickler):
    """Pickles what a notebook's namespace leads to; `files` are its cells' texts by file name."""

    def __init__(self, namespace: Namespace, files: Mapping[str, str]) -> None:
        """Begin an empty pickle."""
        self.buffer = io.BytesIO()
        super().__init__(self.buffer, protocol=5)
        self._namespace, self._files = namespace, files

    def dumped(self, value: Any) -> bytes:
        """Return a value's pickle; raises `CannotSend` for what has none."""
        try:
            self.dump(value)
        except (pickle.PicklingError, TypeError, AttributeError, RecursionError) as error:
            raise CannotSend(str(error)) from error
        return self.buffer.getvalue()

    def reducer_override(self, value: Any) -> Any:
        """Say how a value is made again there."""
        if isinstance(value, jax.Array) and not isinstance(value, jax.core.Tracer):
            return self.reduced_array(value)
        for kind, reduce in self._REDUCED.items():
            if isinstance(value, kind):
                return reduce(self, value)
        for number, own in enumerate(generators()):
            if value is own:
                return _generator, (number, value.getstate() if number == 0 else value.get_state())
        return NotImplemented

    def reduced_array(self, array: jax.Array) -> Any:
        """Say how an array is sent: here by its values."""
        return by_value(array)

    def _function(self, function: types.FunctionType) -> Any:
        if _is_importable(function):
            return NotImplemented
        is_notebooks = function.__globals__ is self._namespace
        module = None if is_notebooks else function.__globals__.get("__name__")
        cells = function.__closure__ or ()
        state = {
            "cells": [(cell, *_contents(cell)) for cell in cells],
            "attributes": {
                name: getattr(function, name)
                for name in ("__defaults__", "__kwdefaults__", "__module__", "__doc__")
            }
            | {"__qualname__": function.__qualname__, "__dict__": function.__dict__},
        }
        made = (function.__code__, module, function.__name__, cells)
        return _new_function, made, state, None, None, _fill_function

    def _class(self, cls: type) -> Any:
        if cls.__module__ != _MAIN or _is_importable(cls):
            return NotImplemented
        statement = class_source.statement_of(cls, self._files)
        if statement is None:
            raise CannotSend(
                f"the class {cls.__qualname__} is not defined at the top of a cell that ran "
                "after %load_ext shardnb"
            )
        read = {
            name: self._namespace[name]
            for name in statement.names
            if name in self._namespace and self._namespace[name] is not cls
        }
        return _new_class, (cls.__name__, statement, read)

    def _module(self, module: types.ModuleType) -> Any:
        return importlib.import_module, (module.__name__,)

    def _code(self, code: types.CodeType) -> Any:
        return marshal.loads, (marshal.dumps(code),)

    def _cell(self, _: types.CellType) -> Any:
        return _new_cell, ()

    def _mesh(self, mesh: jax.sharding.Mesh) -> Any:
        return mesh_here, (mesh.axis_names, mesh.axis_sizes, mesh.axis_types)

    _REDUCED: ClassVar[dict[type, Callable[[Any, Any], Any]]] = {
        types.FunctionType: _function,
        type: _class,
        types.ModuleType: _module,
        types.CodeType: _code,
        types.CellType: _cell,
        jax.sharding.Mesh: _mesh,
    }


class Sender(Pickler):
    """Pickles for another process that keeps the objects: it can refer to them in its answer."""

    def objects(self) -> dict[int, Any]:
        """Return the objects of the pickle by their numbers."""
        return dict(self.memo.copy().values())


class Answer(Pickler):
    """Pickles for the process that sent a pickle, with references to the objects it sent."""

    def __init__(
        self, received: Received, files: Mapping[str, str], keep: Callable[[jax.Array], Any]
    ) -> None:
        """Begin an empty pickle; `keep` gives an array's key and what the kernel knows of it."""
        super().__init__(received.namespace, files)
        self._numbers, self._keep = received.numbers, keep

    def persistent_id(self, value: Any) -> Any:
        """Refer to an object by its number in the pickle that came, and to an array by its key."""
        if type(value) in _PLAIN:
            return None
        known = self._numbers.get(id(value))
        if known is None and isinstance(value, jax.Array):
            return self._keep(value)
        return known


class AttributesOf:
    """Stands for the dictionary of an object's attributes, which a pickle of it alone copies."""

    def __init__(self, owner: Any) -> None:
        """Stand for that of `owner`."""
        self.owner = owner

    def __reduce__(self) -> Any:
        """Become the dictionary where it is read."""
        return _attributes, (self.owner,)


class Received:
    """A pickle that was read, with its objects; functions of the notebook get `namespace`."""

    def __init__(self, data: bytes, namespace: Namespace) -> None:
        """Read a pickle."""
        self.namespace = namespace
        with _reading(namespace):
            reader = pickle.Unpickler(io.BytesIO(data))  # noqa: S301 - the kernel sent it
            self.value = reader.load()
        self._objects = reader.memo.copy()
        self.numbers: dict[int, Any] = {}
        for number, value in self._objects.items():
            held = _attributes(value)
            if held is not None:
                self.numbers[id(held)] = (number, "__dict__")
        for number, value in self._objects.items():
            self.numbers[id(value)] = (number, None)


class _AnswerReader(pickle.Unpickler):
    def __init__(self, data: bytes, objects: Mapping[int, Any], named: Named) -> None:
        super().__init__(io.BytesIO(data))
        self._objects, self._named = objects, named
        self._arrays: dict[str, Any] = {}

    def persistent_load(self, reference: Any) -> Any:
        which, part = reference
        if isinstance(which, str):
            if which not in self._arrays:
                self._arrays[which] = self._named(which, part)
            return self._arrays[which]
        value = self._objects[which]
        return value if part is None else _attributes(value)


def answered(data: bytes, objects: Mapping[int, Any], namespace: Namespace, named: Named) -> Any:
    """Read an answer; its references are to `objects`, the objects of what was sent.

    `named` gives what stands here for an array that stays there, by its key and what is known of
    it.
    """
    with _reading(namespace):
        return _AnswerReader(data, objects, named).load()


class _reading:  # noqa: N801 - used as a function
    """The namespace of the functions that are made while a pickle is read."""

    now: ClassVar[Namespace] = {}

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace

    def __enter__(self) -> None:
        self._before, _reading.now = _reading.now, self._namespace

    def __exit__(self, *_: object) -> None:
        _reading.now = self._before


def by_value(array: jax.Array) -> Any:
    """Say how an array is made from its values, on the devices of the process that reads them."""
    if jax.dtypes.issubdtype(array.dtype, jax.dtypes.prng_key):
        data = np.asarray(jax.random.key_data(array))
        return _key, (data, str(jax.random.key_impl(array)))
    return array.__reduce__()


def _key(data: Any, kind: str) -> Any:
    return jax.random.wrap_key_data(jax.numpy.asarray(data), impl=kind)


def mesh_here(names: tuple[str, ...], sizes: tuple[int, ...], kinds: Any) -> jax.sharding.Mesh:
    """Return a mesh with these axes: on the hosts over their devices, in the kernel emulated."""
    on_hosts = jax.distributed.is_initialized()
    devices = devices_for("attached" if on_hosts else "cpu", sizes)
    return jax.sharding.Mesh(devices, names, axis_types=kinds)


def generators() -> tuple[Any, Any]:
    """Return Python's and NumPy's own random generators, which a module's functions draw from."""
    return random.random.__self__, np.random.get_state.__self__  # type: ignore[attr-defined]


def _generator(number: int, state: Any) -> Any:
    generator = generators()[number]
    (generator.setstate if number == 0 else generator.set_state)(state)
    return generator


def _is_importable(value: Any) -> bool:
    if value.__module__ in (None, _MAIN) or value.__module__ not in sys.modules:
        return False
    at: Any = sys.modules[value.__module__]
    for part in value.__qualname__.split("."):
        at = getattr(at, part, None)
    return at is value


def _contents(cell: types.CellType) -> tuple[Any, ...]:
    try:
        return (cell.cell_contents,)
    except ValueError:  # of a name that has no value yet
        return ()


def _new_cell() -> types.CellType:
    return types.CellType()


def _new_function(code: Any, module: str | None, name: str, cells: Any) -> types.FunctionType:
    names = _reading.now if module is None else importlib.import_module(module).__dict__
    return types.FunctionType(code, names, name, None, tuple(cells))


def _fill_function(function: types.FunctionType, state: Mapping[str, Any]) -> None:
    for cell, *contents in state["cells"]:
        if contents:
            cell.cell_contents = contents[0]
    for name, value in state["attributes"].items():
        setattr(function, name, value)


def _new_class(name: str, statement: class_source.Statement, read: Namespace) -> type:
    names = _reading.now
    names.update({key: value for key, value in read.items() if key not in names})
    statement.run(names)
    made: type = names[name]
    return made


def _attributes(value: Any) -> dict[str, Any] | None:
    if isinstance(value, type | types.ModuleType):
        return None
    held = getattr(value, "__dict__", None)
    return held if type(held) is dict else None
