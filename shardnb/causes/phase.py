"""Whether an operation belongs to the forward pass, the backward one, or is computed again."""

from __future__ import annotations

from shardnb.terms.causes import Phase


def phase_of(op_name: str, *, differentiated: bool) -> Phase | None:
    """Read the phase out of JAX's name of an operation.

    In a program that is differentiated, what stands outside of both passes has none.

    >>> phase_of("jit(f)/transpose(jvp())/dot_general", differentiated=True)
    'backward'
    >>> phase_of("jit(f)/transpose(jvp())/checkpoint/rematted_computation/sin", differentiated=True)
    'rematerialised'
    >>> phase_of("jit(f)/dot_general", differentiated=False)
    'forward'
    """
    if "rematted_computation" in op_name:
        return "rematerialised"
    if "transpose(" in op_name:
        return "backward"
    if "jvp(" in op_name or not differentiated:
        return "forward"
    return None
