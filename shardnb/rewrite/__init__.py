"""Edits of the user's program, on its source text and on its jaxpr."""
