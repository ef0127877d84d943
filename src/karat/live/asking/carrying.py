"""Marks in threads that a retriever starts itself.

Tasks take their context along; threads before Python 3.14 begin with an empty one, and those of a
pool with that of nobody in particular. While a run is going on, a thread and a function handed to
a pool take the mark along from where they were started.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from karat.live.marks import HERE, Mark

_lock = threading.Lock()
_runs = 0
_restore: Callable[[], None]


@contextmanager
def carrying() -> Iterator[None]:
    """Carry marks into new threads until the last run that asked for it has ended."""
    global _runs, _restore
    with _lock:
        _runs += 1
        if _runs == 1:
            _restore = _install()
    try:
        yield
    finally:
        with _lock:
            _runs -= 1
            if _runs == 0:
                _restore()


def _install() -> Callable[[], None]:
    """Set ours in the place of two methods; return what puts the old ones back."""
    start, submit = threading.Thread.start, ThreadPoolExecutor.submit

    def carrying_start(thread: threading.Thread) -> None:
        mark = HERE.get()
        if mark is not None:
            thread.run = _carried(mark, thread.run)  # type: ignore[method-assign]
        start(thread)

    def carrying_submit(
        pool: ThreadPoolExecutor, function: Callable[..., Any], /, *arguments: Any, **options: Any
    ) -> Future[Any]:
        mark = HERE.get()
        if mark is None:
            return submit(pool, function, *arguments, **options)
        # A thread that the pool starts for this serves other queries later: it carries nothing.
        token = HERE.set(None)
        try:
            return submit(pool, _carried(mark, function), *arguments, **options)
        finally:
            HERE.reset(token)

    def restore() -> None:
        # What somebody else has set over ours meanwhile stays: ours passes on what has no mark.
        if threading.Thread.start is carrying_start:
            threading.Thread.start = start  # type: ignore[method-assign]
        if ThreadPoolExecutor.submit is carrying_submit:
            ThreadPoolExecutor.submit = submit  # type: ignore[method-assign]

    threading.Thread.start = carrying_start  # type: ignore[assignment, method-assign]
    ThreadPoolExecutor.submit = carrying_submit  # type: ignore[assignment, method-assign]
    return restore


def _carried(mark: Mark, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any, **options: Any) -> Any:
        token = HERE.set(mark)
        try:
            return function(*arguments, **options)
        finally:
            HERE.reset(token)

    return call
