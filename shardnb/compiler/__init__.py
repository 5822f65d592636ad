"""From a function to a compiled program, with every piece of evidence that this leaves."""

from shardnb.compiler.program import Program, Recipe, build, build_traced

__all__ = ["Program", "Recipe", "build", "build_traced"]
