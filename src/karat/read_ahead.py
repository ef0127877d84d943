"""Read and parse a file in blocks, in threads that are ahead of the use of the blocks."""

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
Parsed = TypeVar("Parsed")

_MOST_THREADS = 4
"""More threads are not faster, since Polars uses all cores for one block."""


def parsed_ahead(
    blocks: Generator[Block, None, None], parse: Callable[[Block], Parsed], n_ahead: int
) -> Generator[tuple[Block, Parsed], None, None]:
    """Yield each block and what a function returns for it, in order.

    While a block is used, threads read and parse up to `n_ahead` more blocks. They must not emit
    warnings: `warnings.catch_warnings` would catch them in any thread.

    >>> list(parsed_ahead((text for text in ["1", "2"]), int, n_ahead=2))
    [('1', 1), ('2', 2)]
    """
    turns = _Turns(blocks, parse)
    threads = ThreadPoolExecutor(min(n_ahead, _MOST_THREADS, os.cpu_count() or 1), "karat-read")
    with closing(blocks):
        try:
            pending = deque(threads.submit(turns.take) for _ in range(n_ahead))
            early: dict[int, _Turn[Block, Parsed]] = {}
            for number in count():
                while number not in early:
                    turn = pending.popleft().result()
                    early[turn.number] = turn
                turn = early.pop(number)
                if turn.error is not None:
                    raise turn.error
                if turn.result is None:
                    return
                pending.append(threads.submit(turns.take))
                yield turn.result
        finally:
            threads.shutdown(cancel_futures=True)


@dataclass(frozen=True)
class _Turn(Generic[Block, Parsed]):
    """A block and its result; an error; or neither after the last block."""

    number: int
    result: tuple[Block, Parsed] | None = None
    error: Exception | None = None


class _Turns(Generic[Block, Parsed]):
    """Blocks that threads take in turn."""

    def __init__(self, blocks: Iterator[Block], parse: Callable[[Block], Parsed]) -> None:
        self._blocks = blocks
        self._n_taken = 0
        self._parse = parse
        self._lock = Lock()

    def take(self) -> _Turn[Block, Parsed]:
        """Read and parse the next block. An error must not overtake the blocks before it."""
        with self._lock:
            number = self._n_taken
            self._n_taken += 1
            try:
                block = next(self._blocks)
            except StopIteration:
                return _Turn(number)
            except Exception as error:
                return _Turn(number, error=error)
        try:
            return _Turn(number, (block, self._parse(block)))
        except Exception as error:
            return _Turn(number, error=error)
