"""The collectives over named mesh axes in `jax.lax`, and what each does to the varying set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Effect = Literal["removes", "keeps", "adds", "none"]


@dataclass(frozen=True)
class NamedCollective:
    """A function of `jax.lax` over mesh axes.

    `effect` is what becomes of its axes in the varying set, `needs` whether they have to be in
    it before (JAX inserts a `pvary` where they are not), `lowers_to` the collective in HLO and
    `does` what it is for.
    """

    name: str
    effect: Effect
    lowers_to: str
    does: str
    needs: bool = True


NAMED_COLLECTIVES: dict[str, NamedCollective] = {
    one.name: one
    for one in (
        NamedCollective("psum", "removes", "all-reduce", "adds the blocks; all get the sum"),
        NamedCollective("pmean", "removes", "all-reduce", "averages the blocks"),
        NamedCollective("pmax", "removes", "all-reduce", "takes the largest of each element"),
        NamedCollective("pmin", "removes", "all-reduce", "takes the smallest of each element"),
        NamedCollective("all_gather", "keeps", "all-gather", "gives all the blocks to all"),
        NamedCollective("all_to_all", "keeps", "all-to-all", "splits one dimension, joins another"),
        NamedCollective("psum_scatter", "keeps", "reduce-scatter", "adds, and leaves each a part"),
        NamedCollective("ppermute", "keeps", "collective-permute", "sends blocks along pairs"),
        NamedCollective("pshuffle", "keeps", "collective-permute", "permutes the blocks"),
        NamedCollective("pswapaxes", "keeps", "all-to-all", "swaps the axis with a dimension"),
        NamedCollective("pbroadcast", "keeps", "collective-broadcast", "one block to all"),
        NamedCollective("ragged_all_to_all", "keeps", "ragged-all-to-all", "sends uneven pieces"),
        NamedCollective(
            "axis_index", "adds", "partition-id", "gives the place along it", needs=False
        ),
        NamedCollective("axis_size", "none", "", "gives the number of devices", needs=False),
        NamedCollective("psum_scatter_start", "keeps", "reduce-scatter", "starts a psum_scatter"),
        NamedCollective("psend", "none", "send", "sends a block to one device (GPU only)"),
        NamedCollective("precv", "none", "recv", "receives a block from one device (GPU only)"),
        NamedCollective(
            "pcast", "adds", "", "changes the type along it, sends nothing", needs=False
        ),
    )
}
