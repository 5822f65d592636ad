"""What is concluded of one collective."""

from __future__ import annotations

from dataclasses import dataclass

from shardnb.report.model import Spec
from shardnb.terms.causes import AskedBy, Reason
from shardnb.texts.hlo import GraphValue

DISAGREE = "operands disagree"
TWO_DIMS = "one axis is wanted by two dimensions"
ELSEWHERE = "the result must be elsewhere"
CARRY = "the loop carries it in another placement"
NO_FORM = "no split form of this operation"


@dataclass(frozen=True)
class Verdict:
    """Who asked (None: not known), why, and what the consumer needed.

    `dims` are the dimensions of the producer that are moved, `other` is the operand that disagrees,
    which may be in a loop's body, `summed` the producer's dimensions that the consumer sums over.
    `own` says that the producer's own operation is what needed it, `taker` which instruction takes
    it behind a copy that the compiler put in, `actual` where the producer lay if not as declared,
    `untold` that it was not as declared, and where is not known.
    """

    reason: Reason | None
    asked_by: AskedBy | None = "inferred"
    detail: str | None = None
    needed: Spec | None = None
    dims: tuple[int, ...] = ()
    other: GraphValue | None = None
    summed: frozenset[int] = frozenset()
    own: bool = False
    taker: str | None = None
    actual: Spec | None = None
    untold: bool = False


UNKNOWN = Verdict("unknown", None)
