"""When an attempt may begin."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

SHORTEST_PAUSE, LONGEST_PAUSE, LONGEST_WAIT = 0.5, 30.0, 60.0
"""Seconds: of the first pause and of any, and what a retriever may ask us to wait."""


class Spacing:
    """Lets attempts begin evenly spaced, at most so many a second, with no burst at the start."""

    def __init__(
        self,
        rate: float | None,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._apart = 1 / rate if rate else 0.0
        self._next = 0.0
        self._clock = clock
        self._sleep = sleep

    async def turn(self) -> None:
        """Wait until the next attempt may begin."""
        if not self._apart:
            return
        now = self._clock()
        begins = max(self._next, now)
        self._next = begins + self._apart
        if begins > now:
            await self._sleep(begins - now)


def pause(failures: int, wait: float | None) -> float:
    """Return how many seconds to wait after so many failures in succession.

    Twice as long after each, and anything from 0 up to that by lot ("full jitter"), so that
    questions that failed together do not come back together. What the retriever asks us to wait
    is respected.
    """
    longest = min(LONGEST_PAUSE, SHORTEST_PAUSE * 2.0 ** min(failures - 1, 10))
    chosen = random.uniform(0, longest)  # noqa: S311 - no secret
    return max(chosen, min(wait or 0.0, LONGEST_WAIT))
