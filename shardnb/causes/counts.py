"""How many collectives a program has at each stage of its compilation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from shardnb.causes.channel_matching import Matcher
from shardnb.collectives.find import is_generated
from shardnb.report.model import Collective
from shardnb.terms.collectives import kind_of
from shardnb.texts.instruction import Instruction


@dataclass(frozen=True)
class Counts:
    """Collectives by kind: called by the program, made by the partitioner, and left at the end.

    `gone` counts those that were merged with another or simplified away, `copied` those that
    are one more of the same, as of a loop that was unrolled, and `added` those that the compiler
    made afterwards: left = called + made - gone + copied + added. `combined` counts those that are
    sent together with another, `moved` those that left the loop they were made in.
    """

    called: Mapping[str, int]
    made: Mapping[str, int]
    left: Mapping[str, int]
    combined: int = 0
    gone: int = 0
    copied: int = 0
    added: int = 0
    moved: int = 0

    @property
    def differ(self) -> bool:
        """Whether what is left is not what was called and made."""
        return Counter(self.called) + Counter(self.made) != Counter(self.left)


def counted(
    matcher: Matcher, collectives: Sequence[Collective], matched: Mapping[int, Instruction]
) -> Counts:
    """Count what was called, made and left; `matched` says what each collective was made as."""
    made = matcher.made
    kept = {(one.computation, one.name) for one in matched.values()}
    lost, unmatched = len(made) - len(kept), len(collectives) - len(matched)
    # One of each may be the same, changed so much that it was not found again.
    changed = min(lost, unmatched)
    return Counts(
        called=_by_kind(one for one in made if not is_generated(one)),
        made=_by_kind(one for one in made if is_generated(one)),
        left=dict(Counter(one.kind for one in collectives)),
        combined=sum(bool(one.combined_with) for one in collectives),
        gone=lost - changed,
        copied=len(matched) - len(kept),
        added=unmatched - changed,
        moved=sum(_left_its_loop(matcher, one, matched.get(one.id)) for one in collectives),
    )


def _left_its_loop(matcher: Matcher, collective: Collective, made: Instruction | None) -> bool:
    """Whether optimisation took a collective out of the loop that it was made in."""
    if made is None or collective.within:
        return False
    return matcher.partitioned.is_loop(matcher.partitioned.graph_of(made))


def _by_kind(made: Iterable[Instruction]) -> dict[str, int]:
    return dict(Counter(kind_of(one.opcode) or one.opcode for one in made))
