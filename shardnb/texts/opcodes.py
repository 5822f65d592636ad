"""Sets of HLO opcodes, each with what its members have in common and what relies on it."""

from __future__ import annotations

NO_OPERANDS = frozenset(("constant", "iota", "parameter"))
"""Their parentheses hold a literal, nothing, or a number, but no value."""

CONSTANTS = frozenset(("constant", "iota"))
"""The same on every device and in every iteration of a loop, so sharding them costs nothing."""

BARRIERS = frozenset(("opt-barrier", "optimization-barrier"))
"""They keep the compiler from moving operations across; the values are the same on both sides."""

ASYNC_CALLERS = frozenset(("call-start", "fusion-start"))
"""They begin to run a computation, whose result a `-done` gives: GPU slices weights so."""

TUPLES = frozenset(("tuple", "get-tuple-element", *BARRIERS))
"""They build tuples and take them apart; a graph looks through them."""

CALLERS = frozenset(("call", "conditional", "fusion", "while"))
"""They run a computation as a part of the program, unlike a reducer or a comparator."""

COPIES = frozenset(("copy", "copy-done", "copy-start"))
"""The same array elsewhere in memory, also when TPU prefetches it.

Before partitioning a `copy` is a sharding constraint, so these are not used there.
"""

VIEWS = frozenset(("bitcast", "convert", "copy", "reshape", "transpose"))
"""Each element of the operand is one of the result, perhaps rounded or in another place.

So what is true of all elements (a sum of them, the collective that sent them) is true on both
sides.
"""

PARTS = VIEWS | COPIES | {"dynamic-slice", "slice", "slice-done", "slice-start"}
"""The result holds elements of the first operand only, so both come from the same array."""

SAME_DIMENSIONS = frozenset(("convert", "copy", "slice"))
"""Dimension n of the result is dimension n of the operand, so axes mean the same on both."""

SHAPE_STEPS = frozenset(("broadcast", "copy", "reshape", "transpose"))
"""They arrange or repeat elements without rounding, so a sum may come before or after them."""

ONE_OPERAND_STEPS = SHAPE_STEPS | {"convert"}
"""JAX's shape and type operations in HLO; they take one array and compute nothing."""

STEPS = ONE_OPERAND_STEPS | {
    "concatenate",
    "dynamic-slice",
    "dynamic-update-slice",
    "iota",
    "pad",
    "reverse",
    "select",
    "slice",
}
"""What the partitioner also writes as a step of its own, to cut, pad or mask blocks.

So one of these after partitioning is not yet the one of that name before.
"""

MOVES = (
    ONE_OPERAND_STEPS - {"broadcast", "convert", "copy"}
    | COPIES - {"copy"}
    | {
        "bitcast",
        "concatenate",
        "dynamic-slice",
        "dynamic-update-slice",
        "pad",
        "reverse",
        "slice",
    }
)
"""Each element of the result is one of an operand, or a constant; nothing is computed or repeated.

So what reaches an operand element by element reaches the result (`causes/flows.py`).
"""

_ARITHMETIC = (
    "abs add atan2 cbrt complex cosine divide erf exponential exponential-minus-one imag log "
    "log-plus-one logistic maximum minimum multiply negate power real remainder rsqrt sine sqrt "
    "subtract tan tanh"
)
_ROUNDING = (
    "bitcast-convert ceil convert copy floor reduce-precision round-nearest-afz "
    "round-nearest-even sign stochastic-convert"
)
_LOGIC = (
    "and clamp compare is-finite not or popcnt select shift-left shift-right-arithmetic "
    "shift-right-logical xor"
)
ELEMENTWISE = frozenset(f"{_ARITHMETIC} {_ROUNDING} {_LOGIC}".split())
"""Each element of the result is computed of those at the same place in the operands."""

COMMUTATIVE = frozenset(("add", "and", "maximum", "minimum", "multiply", "or", "xor"))
"""Commutative: the compiler may swap the operands."""

SUMS = frozenset(("convolution", "dot", "gather", "reduce", "scatter"))
"""They may sum over a dimension, so that each device can have a partial sum of the result."""

PRODUCTS = frozenset(("convolution", "dot"))
"""Operations that the partitioner may run in steps, a block at a time, while the next is sent."""

WINDOWS = frozenset(("convolution", "reduce-window", "select-and-scatter"))
"""Each result takes neighbouring elements, so devices exchange the edges of their blocks."""

NOT_PARTITIONED = frozenset(
    (
        "cholesky",
        "custom-call",
        "fft",
        "rng",
        "rng-bit-generator",
        "send",
        "sort",
        "topk",
        "triangular-solve",
    )
)
"""If Shardy has no rule for one of these, each device computes it on the full arrays."""

EFFECTS = frozenset(
    ("custom-call", "infeed", "recv", "rng", "rng-bit-generator", "rng-get-and-update-state")
)
"""Their results may differ from call to call with equal operands."""

CAN_HOLD_COLLECTIVES = CALLERS | {
    "async-start",
    "call-start",
    "custom-call",
    "custom-call-start",
    "fusion-start",
}
"""The computations that they call may send something, unlike a reducer or a comparator."""

NO_WORK = TUPLES | {
    "add-dependency",
    "after-all",
    "bitcast",
    "constant",
    "parameter",
    "partition-id",
    "replica-id",
}
"""No device spends time on these, so they overlap nothing."""

WORK_OF_ANY_SIZE = CALLERS | {"convolution", "custom-call", "dot", "reduce"}
"""Worth naming even if the result is a scalar; other scalars are counters or indices."""
