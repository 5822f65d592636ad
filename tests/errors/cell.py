"""A cell whose error is explained, and whose fixes are written in the place of its line."""

import re
import textwrap

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from shardnb.compiler import SourceTexts
from shardnb.errors import explain_error
from shardnb.mesh import make_grid
from shardnb.report.model import Source

NAMES = {"jax": jax, "jnp": jnp, "lax": lax, "np": np, "P": P, "NamedSharding": NamedSharding}


def f32(*shape):
    return shape, jnp.float32


def s32(*shape):
    return shape, jnp.int32


def of_cell(text):
    return SourceTexts(sources=(Source("cell", text),), files={"<cell>": 0})


class Cell:
    """A cell that defines `f`, traced on arguments; it raises, and is explained."""

    def __init__(self, text, args, specs, mesh="data=4,model=2", axes="explicit"):
        self.text = textwrap.dedent(text).strip() + "\n"
        self.grid = make_grid(mesh, axes=axes)
        self.args = [
            jax.ShapeDtypeStruct(*arg, sharding=NamedSharding(self.grid.mesh, spec))
            for arg, spec in zip(args, specs, strict=True)
        ]
        with pytest.raises(Exception) as caught:  # noqa: PT011 - each test says which
            self.trace(self.text)
        self.error = caught.value
        self.report = explain_error(self.error, texts=of_cell(self.text), grid=self.grid)

    def trace(self, text):
        names = {**NAMES, "mesh": self.grid.mesh}
        exec(compile(text, "<cell>", "exec"), names)  # noqa: S102 - a cell
        with jax.set_mesh(self.grid.mesh):
            return jax.jit(names["f"]).trace(*self.args)

    def fixed(self, fix):
        """Write a fix in the place of its line, and trace."""
        lines = self.text.splitlines()
        number = self.report.location.line - 1
        indent = re.match(r"\s*", lines[number])[0]
        lines[number] = indent + fix
        return self.trace("\n".join(lines) + "\n")
