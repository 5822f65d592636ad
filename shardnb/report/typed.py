"""The lines of a jaxpr with a sharding in every type, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

from shardnb.report.places import Location, Spec


@dataclass(frozen=True)
class TypedValue:
    """A binder of a jaxpr with the sharding in its type.

    `type` is the text, such as `f32[256@data, 512]{V:(data,model)}`. `varying`, `unreduced` and
    `reduced` are mesh axes. `varying` is None in a `shard_map` with `check_vma=False`, where JAX
    does not track along which axes a value differs.
    """

    name: str
    type: str
    dtype: str
    shape: tuple[int, ...]
    spec: Spec
    varying: tuple[str, ...] | None = ()
    unreduced: tuple[str, ...] = ()
    reduced: tuple[str, ...] = ()


@dataclass(frozen=True)
class TypedLine:
    """An equation of a jaxpr: what it binds, from what, and the user's line that wrote it.

    An empty `primitive` binds the parameters of a program or of a body. `within` names what the
    line is inside of (`shard_map`, `scan`, ...), outermost first. `inserted` marks a coercion that
    JAX inserted.
    """

    primitive: str
    binds: tuple[TypedValue, ...]
    operands: tuple[str, ...] = ()
    parameters: str = ""
    within: tuple[str, ...] = ()
    inserted: bool = False
    location: Location | None = None

    def __str__(self) -> str:
        """Return the line as text, indented by what it is inside of."""
        binds = " ".join(f"{value.name}:{value.type}" for value in self.binds)
        indent = "    " * len(self.within)
        if not self.primitive:
            return f"{indent}lambda {binds}"
        call = f"{self.primitive}[{self.parameters}]" if self.parameters else self.primitive
        mark = "    # inserted by JAX" if self.inserted else ""
        return f"{indent}{binds} = {' '.join((call, *self.operands))}{mark}"
