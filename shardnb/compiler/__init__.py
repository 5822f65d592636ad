"""From a function to a compiled program, with all the evidence that compiling leaves."""

from shardnb.compiler.program import Program, build
from shardnb.compiler.request import Request, SourceTexts

__all__ = ["Program", "Request", "SourceTexts", "build"]
