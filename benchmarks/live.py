"""Asking a retriever that does nothing but wait: what is over is the time of whoever asks."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

QUERIES, JOBS, DEPTH, SECONDS = 10_000, 64, 10, 0.005
IDEAL = QUERIES * SECONDS / JOBS
NAME = f"{QUERIES:,} queries of {SECONDS * 1000:g} ms, {JOBS} at a time"


def wait_in_thread(_: str) -> list[str]:
    time.sleep(SECONDS)
    return [f"chunk-{rank}" for rank in range(DEPTH)]


async def wait_in_task(_: str) -> list[str]:
    await asyncio.sleep(SECONDS)
    return [f"chunk-{rank}" for rank in range(DEPTH)]


def texts() -> list[str]:
    return [f"query {number}" for number in range(QUERIES)]


def bare_tasks() -> int:
    """Gather tasks behind a semaphore, as one would write it down."""

    async def main() -> int:
        places = asyncio.Semaphore(JOBS)

        async def one(text: str) -> list[str]:
            async with places:
                return await wait_in_task(text)

        return len(await asyncio.gather(*map(one, texts())))

    return asyncio.run(main())


def bare_threads() -> int:
    """Map over a pool of threads."""
    with ThreadPoolExecutor(JOBS) as pool:
        return len(list(pool.map(wait_in_thread, texts())))


def karat(function: Any, *, is_async: bool) -> int:
    """Ask the same function, timed, with a timeout and retries, a line handed over for each."""
    from karat.data.native_run import Result
    from karat.live.asking import ask_all
    from karat.live.exchange import Answer, Line, Pace, Question, Retriever, Search, encoded

    class Waiting(Retriever):
        def ask(self, question: Question) -> Any:
            return function(question.text)

        def read(self, returned: Any) -> Answer:
            return Answer([Result(id=item) for item in returned])

    retriever = Waiting()
    retriever.is_async, retriever.takes = is_async, frozenset()
    lines = 0

    def done(line: Line) -> None:
        nonlocal lines
        lines += bool(encoded(line))

    questions = [Question(str(number), text) for number, text in enumerate(texts())]
    ask_all(retriever, questions, Search(), Pace(jobs=JOBS), done)
    return lines
