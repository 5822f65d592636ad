"""What is concluded of one collective."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from shardnb.report.model import Spec
from shardnb.terms.causes import AskedBy, Detail, Reason
from shardnb.texts.hlo import GraphValue
from shardnb.texts.instruction import Instruction

RETURNED: Mapping[str, Detail] = {"while": "loop carry", "conditional": "branches"}
"""What asks for the sharding of a value that a computation returns, by what calls that."""


class Uneven(NamedTuple):
    """A dimension whose size is not divisible by the devices along axes.

    It is one of the value that is moved or, `of_result`, of what its consumer makes of it.
    """

    dim: int
    size: int
    devices: int
    axes: tuple[str, ...]
    of_result: bool


class Statement(NamedTuple):
    """A sharding that was written: what states it, of which value, and as which spec if known.

    `node` is the instruction that states it, None for `out_specs`.
    """

    by: str
    value: GraphValue
    spec: Spec | None
    node: Instruction | None = None


@dataclass(frozen=True)
class Verdict:
    """Who asked (None: not known), why, and what the consumer needed.

    `dims` are the dimensions of the producer that are moved, `axes` those that split them, `role`
    what they are to the consumer.
    `other` is the operand that disagrees, which may be in a loop's body; where it is not one of the
    consumer's, `met_by` is the later operation that takes both. `shared` are the axes that shard
    another dimension of it, where they are not all of `axes`. `full` are the dimensions that an
    operation needs in full, where these are not those that are moved.
    `needed_by_producer` says that the producer's own operation needed it, `consumer` which
    instruction takes it after a copy that the compiler inserted, `actual` how the producer was
    sharded if not as declared, `layout_unknown` that it was not as declared, and how is unknown.
    `uneven` is the dimension that is not divisible, where it is known, `stated` the sharding that
    the user wrote.
    """

    reason: Reason | None
    asked_by: AskedBy | None = "inferred"
    detail: Detail | None = None
    needed: Spec | None = None
    dims: tuple[int, ...] = ()
    axes: tuple[str, ...] = ()
    other: GraphValue | None = None
    met_by: Instruction | None = None
    shared: tuple[str, ...] = ()
    role: str = ""
    full: tuple[int, ...] = ()
    needed_by_producer: bool = False
    consumer: str | None = None
    actual: Spec | None = None
    layout_unknown: bool = False
    uneven: Uneven | None = None
    stated: Statement | None = None
    by_autodiff: bool = False


UNKNOWN = Verdict("unknown", None)

NOT_THE_PRODUCER = Verdict("unknown", None)
"""What is sent cannot be a block of the value that it seemed to be: neither end is known."""
