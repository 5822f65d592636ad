"""What propagation chose for every equation of a program, and where in the source that stands.

The equations are numbered in their names, and the names come back in XLA's own module after
propagation, beside the shardings.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import jax

from shardnb.compiler import Program, placement
from shardnb.compiler.compiling import compile_lowered
from shardnb.compiler.dumps import recording
from shardnb.jax_compat.frames import is_jaxs_own
from shardnb.jax_compat.jaxprs import bare, is_jaxpr
from shardnb.report.model import Mesh, Spec
from shardnb.sources.positions import Position, of_equation
from shardnb.texts import hlo
from shardnb.texts.shardings import LayoutReader

# Equations inside of others carry the tags of both in their name: the last one is their own.
_TAG = re.compile(r"shardnb_(\d+)_")


@dataclass(frozen=True)
class Choice:
    """An equation, the stack that wrote it, and the spec of its first result, where known.

    `backward` equations stand at the lines of the forward ones that they are the gradients of.
    """

    primitive: str
    stack: tuple[Position, ...]
    shape: tuple[int, ...]
    spec: Spec | None
    backward: bool = False


def choices(program: Program, mesh: Mesh) -> list[Choice]:
    """Return the choices of propagation in a program with Auto axes, in the order of its jaxpr."""
    tagged = _Tagger()
    jaxpr = tagged.jaxpr(program.traced.jaxpr, ())
    specs = _specs(_before(program, jaxpr), tagged.equations, mesh)
    return [_choice(*tagged.equations[at], specs.get(at)) for at in range(len(tagged.equations))]


def typed(program: Program) -> list[Choice]:
    """Return the placements in the types of a program with Explicit axes, as choices."""
    tagged, chosen = _Tagger(), []
    tagged.jaxpr(program.traced.jaxpr, ())
    for equation, stack in tagged.equations:
        aval: Any = equation.outvars[0].aval if equation.outvars else None
        is_array = isinstance(aval, jax.core.ShapedArray)
        spec = placement.dims_of(aval.sharding.spec, len(aval.shape)) if is_array else None
        chosen.append(_choice(equation, stack, spec))
    return chosen


def _choice(equation: Any, stack: tuple[Position, ...], spec: Spec | None) -> Choice:
    backward = "transpose(" in str(equation.source_info.name_stack)
    return Choice(equation.primitive.name, stack, _shape(equation), spec, backward=backward)


def _shape(equation: Any) -> tuple[int, ...]:
    return tuple(getattr(equation.outvars[0].aval, "shape", ())) if equation.outvars else ()


class _Tagger:
    """Numbers the equations of a jaxpr, those inside others too."""

    def __init__(self) -> None:
        self.equations: list[tuple[Any, tuple[Position, ...]]] = []

    def jaxpr(self, jaxpr: Any, outer: tuple[Position, ...]) -> Any:
        plain = bare(jaxpr)
        tagged = plain.replace(eqns=[self._equation(e, outer) for e in plain.eqns])
        return tagged if plain is jaxpr else jaxpr.replace(jaxpr=tagged)

    def _equation(self, equation: Any, outer: tuple[Position, ...]) -> Any:
        stack = outer or of_equation(equation)
        number = len(self.equations)
        self.equations.append((equation, stack))
        source = equation.source_info
        name = source.name_stack.extend(f"shardnb_{number}_")
        params = {k: self._parameter(v, stack) for k, v in equation.params.items()}
        return equation.replace(source_info=source.replace(name_stack=name), params=params)

    def _parameter(self, value: Any, stack: tuple[Position, ...]) -> Any:
        if isinstance(value, tuple | list) and any(is_jaxpr(v) for v in value):
            parts = [self._parameter(part, stack) for part in value]
            return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
        if not is_jaxpr(value):
            return value
        # JAX traces its own jitted functions once: what they hold points at their first call.
        file = getattr(bare(value).debug_info, "func_filename", None) or ""
        return self.jaxpr(value, stack if is_jaxs_own(file) else ())


def _before(program: Program, jaxpr: Any) -> str:
    """Compile the numbered program as far as XLA's module after propagation."""
    result = jax.tree_util.tree_structure(program.lowered.out_info)
    request = program.request.replayed(jaxpr, result)
    lowered = request.lower(request.trace())
    with jax.set_mesh(request.mesh), recording() as recorder:
        compile_lowered(lowered, recorder.options, apart=True)
    return recorder.dumps.before


def _specs(text: str, equations: list[tuple[Any, Any]], mesh: Mesh) -> dict[int, Spec]:
    reader, specs = LayoutReader(mesh), dict[int, Spec]()
    for instruction in hlo.parse(text).instructions():
        numbers = _TAG.findall(instruction.op_name)
        number = int(numbers[-1]) if numbers else len(equations)
        if number >= len(equations) or instruction.is_tuple or not instruction.arrays:
            continue
        shape = instruction.arrays[0][1]
        if shape != _shape(equations[number][0]):
            continue
        layout = reader.leaves(instruction.attribute("sharding"), (len(shape),))[0]
        if layout.spec is not None and layout.divides(shape):
            specs[number] = layout.spec
    return specs
