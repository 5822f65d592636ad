"""Shardy's modules through jaxlib's MLIR bindings: parsed, changed, propagated.

MLIR's objects live in the context of their module and never leave this file and the functions
that are given to `Module.read`: what those return must be plain data.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

from shardnb.jax_compat import parts


def bindings(name: str) -> Any:
    """Return one of jaxlib's MLIR modules, such as `ir` or `dialects.sdy`; or `NotAvailable`."""
    return parts.MLIR_BINDINGS[name].get()


@cache
def _registry() -> Any:
    """The upstream dialects that Shardy's modules use (`func` and others) and the passes."""
    registry = bindings("ir").DialectRegistry()
    bindings("_mlir_libs._jax_mlir_ext").register_dialects(registry)
    return registry


def _context() -> Any:
    """Make a context for one module.

    JAX's own contexts are shared by a thread, and what is parsed in one stays in its memory.
    """
    context = bindings("ir").Context()
    context.append_dialect_registry(_registry())
    # One function is propagated at a time: a pool of threads would only cost its start.
    context.enable_multithreading(False)  # noqa: FBT003
    for dialect in ("sdy", "stablehlo", "chlo"):
        bindings(f"dialects.{dialect}").register_dialect(context)
    bindings("dialects.mhlo").register_mhlo_dialect(context)
    return context


def from_bytecode(code: bytes) -> Any:
    """Return a module in bytecode as JAX's clients take it."""
    return bindings("ir").Module.parse(code, _context())


class Module:
    """A module and its context.

    Copies share the context. Methods raise `ValueError` with the compiler's words where the
    module, an attribute or a pass is refused, and `NotAvailable`.
    """

    def __init__(self, text: str) -> None:
        """Parse the text of a module."""
        self._ir = bindings("ir")
        self._context, self._alone = _context(), threading.Lock()
        with self._inside("this jaxlib cannot read the module of Shardy"):
            self._operation = self._ir.Module.parse(text).operation

    @contextmanager
    def _inside(self, problem: str) -> Iterator[None]:
        """Enter the context, which is for one thread at a time."""
        with self._alone, self._context:
            try:
                yield
            except (self._ir.MLIRError, ValueError) as error:
                lines = str(error).splitlines()
                words = next((line for line in lines if line.startswith("error: ")), lines[0])
                words = words.removeprefix("error: ").replace('"-":', "line ")
                raise ValueError(f"{problem}: {words}") from error

    def __str__(self) -> str:
        """Write the module as MLIR."""
        with self._inside("the module cannot be written"):
            return str(self._operation)

    def read[T](self, reader: Callable[[Any], T]) -> T:
        """Return what `reader` makes of the module's operation; that must be plain data."""
        with self._inside("this jaxlib cannot read the module of Shardy"):
            return reader(self._operation)

    def run(self, pipeline: str) -> Module:
        """Run passes on the module itself."""
        manager = bindings("passmanager").PassManager
        with self._inside("Shardy refused the module"):
            manager.parse(f"builtin.module({pipeline})").run(self._operation)
        return self

    def copy(
        self,
        inputs: Mapping[int, str] | None = None,
        mesh: str = "",
        outputs: Mapping[int, str] | None = None,
    ) -> Module:
        """Copy the module, with other shardings of some inputs and results, or on another mesh.

        `inputs` and `outputs` have attributes such as `#sdy.sharding<@mesh, [{"x"}, {}]>` by
        number, "" for none; `mesh` is one such as `#sdy.mesh<["x"=2]>`. A sharding that does not
        fit is refused here: the passes trust what they are given.
        """
        copied = object.__new__(Module)
        copied._ir, copied._context, copied._alone = self._ir, self._context, self._alone
        with self._inside("Shardy refused the sharding"):
            copied._operation = self._operation.clone()
            if mesh:
                copied._set_mesh(mesh)
            copied._set_shardings("input", inputs or {})
            copied._set_shardings("result", outputs or {})
            copied._operation.verify()
        return copied

    def _set_mesh(self, mesh: str) -> None:
        for op in self._operation.regions[0].blocks[0]:
            attributes = op.operation.attributes
            if op.operation.name == "sdy.mesh":
                attributes["mesh"] = self._ir.Attribute.parse(mesh)
                if "stablehlo.mesh" in attributes:
                    del attributes["stablehlo.mesh"]

    def _set_shardings(self, kind: str, shardings: Mapping[int, str]) -> None:
        """Set the shardings of some of the main function's inputs, or of its results."""
        if not shardings:
            return
        ir, main = self._ir, main_function(self._operation)
        block = main.regions[0].blocks[0]
        last = block.operations[len(block.operations) - 1]
        name, values = {
            "input": ("arg_attrs", block.arguments),
            "result": ("res_attrs", last.operands),
        }[kind]
        if unknown := sorted(number for number in shardings if number >= len(values)):
            raise ValueError(f"the program has no {kind} number {unknown[0]}")
        known = main.attributes[name] if name in main.attributes else [{}] * len(values)
        changed = []
        for number, given in enumerate(known):
            kept = {item.name: item.attr for item in given} if given else {}
            if number in shardings:
                kept.pop("sdy.sharding", None)
                if shardings[number]:
                    kept["sdy.sharding"] = ir.Attribute.parse(shardings[number])
            changed.append(ir.DictAttr.get(kept))
        main.attributes[name] = ir.ArrayAttr.get(changed)

    def take_rules(self, propagated: Module) -> None:
        """Return XLA's rules to the ops whose rules only XLA knows.

        These are XLA's own ops (`mhlo.topk`) and custom calls; without rules propagation would
        end there. `propagated` is the module after XLA's own propagation.
        """
        rules = propagated.read(_foreign_rules)
        with self._inside("this jaxlib cannot read the module of Shardy"):
            for op in _foreign(self._operation):
                if _RULE not in op.attributes and len(known := rules[_signature(op)]) == 1:
                    op.attributes[_RULE] = self._ir.Attribute.parse(next(iter(known)))


_RULE = "sdy.sharding_rule"


def _foreign(operation: Any) -> Iterator[Any]:
    """Yield the ops of a module that are XLA's own, and custom calls."""
    for region in operation.regions:
        for block in region:
            for op in block:
                if (name := op.operation.name).startswith("mhlo.") or name.endswith("custom_call"):
                    yield op.operation
                yield from _foreign(op.operation)


def _foreign_rules(module: Any) -> dict[tuple[str, ...], set[str]]:
    """Return the rules of those ops by signature, as text: an attribute stays in its context."""
    rules = defaultdict[tuple[str, ...], set[str]](set)
    for op in _foreign(module):
        if _RULE in op.attributes:
            rules[_signature(op)].add(str(op.attributes[_RULE]))
    return rules


def _signature(op: Any) -> tuple[str, ...]:
    """Say which function an op is, and of which types."""
    target = op.attributes.get("call_target_name", "")
    types = (str(value.type) for value in (*op.operands, *op.results))
    return op.name, str(target), str(len(op.operands)), *types


def main_function(module: Any) -> Any:
    """Return the operation of a module's main function."""
    for op in module.regions[0].blocks[0]:
        operation = op.operation
        if operation.name == "func.func" and operation.attributes["sym_name"].value == "main":
            return operation
    raise ValueError("it has no main function")
