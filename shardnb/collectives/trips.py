"""How often a loop runs, read from its counter where the compiler does not say it.

A TPU program has no trip counts in its text: there a loop counts from a constant in constant
steps up to a constant, as `lax.scan` does, or its trips are not known.
"""

from __future__ import annotations

from shardnb.bugs import Inconclusive
from shardnb.texts.hlo import Instruction, Module

_SAME = ("copy", "bitcast", "convert", "copy-done", "copy-start")


def trip_count(module: Module, loop: Instruction) -> int | None:
    """Give how often the body of a `while` runs, or None where that is not known."""
    if loop.trip_count is not None:
        return loop.trip_count
    called = dict(loop.called)
    if not {"body", "condition"} <= set(called):
        return None
    try:
        return _Loop(module, loop, called["body"], called["condition"]).trips()
    except Inconclusive:  # its counter is not a plain one
        return None


class _Loop:
    def __init__(self, module: Module, loop: Instruction, body: str, condition: str) -> None:
        self.outside = _Names(module, loop.computation)
        self.body = _Names(module, body)
        self.condition = _Names(module, condition)
        self.start = self.outside.elements(loop.operands[0])
        self.next = self.body.elements(self.body.root.name)

    def trips(self) -> int:
        test = self.condition.root
        if test.opcode != "compare" or test.attribute("direction") != "LT":
            raise Inconclusive
        counter = self.condition.element(test.operands[0])
        end = self._number(self.condition, test.operands[1])
        first = self.outside.constant(self.start[counter])
        step = self._step(counter)
        return max(0, -(-(end - first) // step))

    def _step(self, counter: int) -> int:
        add = self.body.plain(self.next[counter])
        if add.opcode != "add":
            raise Inconclusive
        for own, other in (add.operands, add.operands[::-1]):
            if self.body.is_element(own) and self.body.element(own) == counter:
                step = self._number(self.body, other)
                if step > 0:
                    return step
        raise Inconclusive

    def _number(self, names: _Names, name: str) -> int:
        """Read a constant that stands in the loop, or that it carries without changing it."""
        if not names.is_element(name):
            return names.constant(name)
        place = names.element(name)
        if not self.body.is_element(self.next[place]) or (
            self.body.element(self.next[place]) != place
        ):
            raise Inconclusive
        return self.outside.constant(self.start[place])


class _Names:
    """The instructions of a computation by name."""

    def __init__(self, module: Module, computation: str) -> None:
        instructions = module.computations.get(computation, [])
        self.known = {one.name: one for one in instructions}
        root = next((one for one in instructions if one.is_root), None)
        if root is None:
            raise Inconclusive
        self.root = root

    def plain(self, name: str) -> Instruction:
        """Look through what only moves a value."""
        found = self.known.get(name)
        while found is not None and found.opcode in _SAME:
            found = self.known.get(found.operands[0])
        if found is None:
            raise Inconclusive
        return found

    def elements(self, name: str) -> tuple[str, ...]:
        found = self.plain(name)
        if found.opcode != "tuple":
            raise Inconclusive
        return found.operands

    def is_element(self, name: str) -> bool:
        """Whether a value is an element of the computation's parameter."""
        found = self.plain(name)
        if found.opcode != "get-tuple-element":
            return False
        return self.plain(found.operands[0]).opcode == "parameter"

    def element(self, name: str) -> int:
        found = self.plain(name)
        index = found.integer("index")
        if not self.is_element(name) or index is None:
            raise Inconclusive
        return index

    def constant(self, name: str) -> int:
        found = self.plain(name)
        text = found.operand_text.strip()
        if found.opcode != "constant" or not text.lstrip("-").isdigit():
            raise Inconclusive
        return int(text)
