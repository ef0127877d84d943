"""Long steps of the work, and how far they are.

Loops that may take long report each item with `tracked`; other long work is a `step`. `watched`
sets who receives that, such as the progress bars of the command line; without it, nothing is
reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Watcher(Protocol):
    """Receives the progress of steps."""

    def begun(self, label: str, total: int) -> Any:
        """Start a step; the result is passed to the other methods."""

    def moved(self, step: Any, done: int) -> None:
        """Note how many of the items of a step are done."""

    def ended(self, step: Any) -> None:
        """End a step, also after an error."""


_watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


@contextmanager
def watched(watcher: Watcher | None) -> Iterator[None]:
    """Let a watcher receive the progress of all steps in this block; None: nobody."""
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


def tracked(
    items: Iterable[T], label: str, total: int, size: Callable[[T], int] | None = None
) -> Iterator[T]:
    """Yield the items of a step and report when each is done; `size` is how much an item counts.

    >>> list(tracked("abc", "reading letters", 3))
    ['a', 'b', 'c']
    """
    watcher = _watcher.get()
    if watcher is None:
        yield from items
        return
    step, done = watcher.begun(label, total), 0
    try:
        for item in items:
            yield item
            done += 1 if size is None else size(item)
            watcher.moved(step, done)
    finally:
        watcher.ended(step)


@contextmanager
def step(label: str) -> Iterator[None]:
    """Report a step whose progress cannot be counted.

    >>> with step("writing a report"):
    ...     pass
    """
    yield from tracked((None,), label, 1)
