"""The bytes that each device sends for a collective, with the ring algorithm of its kind.

With n devices in a group and B the bytes of the result per device: an all-gather or an
all-to-all sends B·(n-1)/n, a reduce-scatter B·(n-1), an all-reduce 2·B·(n-1)/n, a permute or a
broadcast B. The ring is an assumption: the runtime chooses how to send. Source:
"How to Scale Your Model", the chapter on sharded matrices.
"""

from __future__ import annotations

from typing import assert_never

from shardnb.terms.collectives import KINDS, Kind


def wire_bytes(kind: Kind, result_bytes: int, group: int) -> int:
    """Return the bytes that each device sends per execution, rounded up.

    For `ragged-all-to-all`, whose sizes are data, this is the most it can be.

    >>> wire_bytes("all-reduce", 262144, 2)
    262144
    """
    if group <= 1:
        return 0
    ring = KINDS[kind].ring
    match ring:
        case "all":
            return result_bytes
        case "a result for each other":
            return result_bytes * (group - 1)
        case "all but its own":
            return -(-result_bytes * (group - 1) // group)
        case "there and back":
            return -(-2 * result_bytes * (group - 1) // group)
        case _:
            assert_never(ring)
