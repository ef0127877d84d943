"""Apply a function to blocks in background threads, before its results are needed."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from threading import Lock
from typing import Generic, TypeVar

Block = TypeVar("Block")
Value = TypeVar("Value")

_MOST_THREADS = 4
"""More threads are not faster, because Polars already uses several threads for each block."""


def map_ahead(
    blocks: Generator[Block, None, None], function: Callable[[Block], Value], n_ahead: int
) -> Generator[tuple[Block, Value], None, None]:
    """Yield each block with the result of a function, in order.

    While a result is used, threads compute up to `n_ahead` more. Neither `blocks` nor the function
    may emit warnings, because the threads do not know which ones are suppressed.

    >>> list(map_ahead((text for text in ["1", "2"]), int, n_ahead=2))
    [('1', 1), ('2', 2)]
    """
    results = _Results(blocks, function)
    threads = ThreadPoolExecutor(min(n_ahead, _MOST_THREADS, os.cpu_count() or 1), "karat-read")
    with closing(blocks):
        try:
            pending = deque(threads.submit(results.compute_next) for _ in range(n_ahead))
            out_of_order: dict[int, _Result[Block, Value]] = {}
            for number in count():
                while number not in out_of_order:
                    result = pending.popleft().result()
                    out_of_order[result.number] = result
                result = out_of_order.pop(number)
                if result.error is not None:
                    raise result.error
                if result.value is None:
                    return
                pending.append(threads.submit(results.compute_next))
                yield result.value
        finally:
            threads.shutdown(cancel_futures=True)


@dataclass(frozen=True)
class _Result(Generic[Block, Value]):
    """The result for a block: a value, an error, or neither if there are no more blocks."""

    number: int
    value: tuple[Block, Value] | None = None
    error: Exception | None = None


class _Results(Generic[Block, Value]):
    """The results of a function for blocks, which several threads compute."""

    def __init__(self, blocks: Iterator[Block], function: Callable[[Block], Value]) -> None:
        self._blocks = blocks
        self._function = function
        self._n_blocks = 0
        self._lock = Lock()

    def compute_next(self) -> _Result[Block, Value]:
        """Compute the result for the next block.

        An error is returned instead of raised, so that preceding blocks are yielded first.
        """
        with self._lock:
            number = self._n_blocks
            self._n_blocks += 1
            try:
                block = next(self._blocks)
            except StopIteration:
                return _Result(number)
            except Exception as error:
                return _Result(number, error=error)
        try:
            return _Result(number, (block, self._function(block)))
        except Exception as error:
            return _Result(number, error=error)
