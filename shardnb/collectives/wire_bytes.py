"""How many bytes one device sends for a collective, by the ring formula.

With n devices in a group and B the bytes of the result on one device: an all-gather or an
all-to-all sends B·(n-1)/n, a reduce-scatter B·(n-1), an all-reduce 2·B·(n-1)/n, a permute or a
broadcast B. The ring is the assumption: what the hardware does is the runtime's choice. Source:
"How to Scale Your Model", the chapter on sharded matrices.
"""

from __future__ import annotations


def wire_bytes(kind: str, result_bytes: int, group: int) -> int:
    """Give the bytes that one device sends for one execution, rounded up.

    For `ragged-all-to-all`, whose sizes are data, this is the most it can be.

    >>> wire_bytes("all-reduce", 262144, 2)
    262144
    """
    if group <= 1:
        return 0
    if kind in ("collective-permute", "collective-broadcast"):
        return result_bytes
    if kind == "reduce-scatter":
        return result_bytes * (group - 1)
    factor = 2 if kind == "all-reduce" else 1
    return -(-factor * result_bytes * (group - 1) // group)
