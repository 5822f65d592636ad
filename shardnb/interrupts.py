"""What must not stop halfway: Python raises an interrupt in the main thread, at any bytecode."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager


def uninterrupted(step: Callable[[], object]) -> None:
    """Take a step that can be taken again, to its end; an interrupt meanwhile is raised after it.

    >>> uninterrupted(lambda: None)
    """
    interrupt: KeyboardInterrupt | None = None
    while True:
        try:
            step()
        except KeyboardInterrupt as error:
            interrupt = error
        else:
            break
    if interrupt is not None:
        raise interrupt


def apart[T](call: Callable[[], T]) -> T:
    """Call in another thread, which no interrupt reaches, and wait for its end in any case.

    >>> apart(lambda: 2)
    2
    """
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result()


@contextmanager
def held[T](make: Callable[[], T], end: Callable[[T], object]) -> Iterator[T]:
    """Yield what `make` returns, and `end` it after the block, also if an interrupt comes.

    Both are called in another thread, which no interrupt reaches: in this one it could come between
    a file and the object that removes it. `end` may be called twice.

    >>> with held(list, list.clear) as files:
    ...     files.append("one")
    >>> files
    []
    """
    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()  # the thread has started: from here on `submit` does not wait
        made = pool.submit(make)
        try:
            yield made.result()
        finally:
            uninterrupted(lambda: pool.submit(lambda: end(made.result())).result())
