"""Points that no other beats: less memory, or less of what a plan costs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

Point = tuple[float, float]
# A plan that sends nothing has no logarithm: this share of the worst stands for nothing, which
# counts as far better than any plan that sends (the last example of `gain`).
_FLOOR = 1e-3


def front[T](items: Iterable[T], point: Callable[[T], Point]) -> list[T]:
    """Return the items that none beats in both numbers, by the first; one of each point.

    >>> front([(2, 2), (1, 3), (3, 3), (3, 1)], lambda pair: pair)
    [(1, 3), (2, 2), (3, 1)]
    """
    kept: list[T] = []
    best = math.inf
    for item in sorted(items, key=point):
        if point(item)[1] < best:
            kept.append(item)
            best = point(item)[1]
    return kept


def gain(known: Sequence[Point], fresh: Point, worst: Point) -> float:
    """Give the area that a point adds to what known points beat, up to the `worst`, in logarithms.

    >>> gain([(1.0, 1.0)], (2.0, 2.0), (4.0, 4.0))
    0.0
    >>> gain([], (1.0, 1.0), (2.0, 2.0)) > gain([(1.0, 1.5)], (1.0, 1.0), (2.0, 2.0)) > 0
    True
    >>> gain([(4.0, 0.0)], (2.0, 0.0), (5.0, 0.0)) > 0
    True
    """
    floor = _FLOOR * worst[1] or 1.0
    x, y = math.log(max(fresh[0], 1.0)), math.log(fresh[1] + floor)
    right, top = math.log(max(worst[0], 1.0)), math.log(worst[1] + 2 * floor)
    area, start = 0.0, x
    for edge, height in [
        *((math.log(max(a, 1.0)), math.log(b + floor)) for a, b in front(known, lambda p: p)),
        (right, -math.inf),
    ]:
        if edge > start:
            area += (min(edge, right) - start) * max(0.0, top - y)
            start = min(edge, right)
        top = min(top, height)
    return max(0.0, area)


def crowding(points: Sequence[Point]) -> list[float]:
    """Return for each point of a front how far its neighbours are from each other.

    >>> crowding([(1, 4), (2, 3), (8, 0)])[1] > crowding([(1, 4), (2, 3), (3, 2)])[1]
    True
    """
    if len(points) < 3:
        return [1.0] * len(points)
    top = max(value for _, value in points) or 1.0
    # Twice the memory weighs as much as a quarter of the front's height. What is drawn by these
    # widths divides by them, so that none may be 0.
    places = [(math.log2(max(held, 1.0)), 4 * value / top) for held, value in points]
    widths = [
        abs(after[0] - before[0]) + abs(after[1] - before[1])
        for before, after in zip(places, places[2:], strict=False)
    ]
    most = max(widths) or 1.0
    return [max(width, most / 20) for width in (most, *widths, most)]
