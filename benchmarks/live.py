"""Asking a retriever that does nothing but wait: what is over is the time of whoever asks."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
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


def karat(function: Any) -> int:
    """Ask the same function: timed, with a timeout and retries, every answer written and synced."""
    from karat.live.retrieve import retrieve

    queries = {str(number): text for number, text in enumerate(texts())}
    with TemporaryDirectory() as folder:
        run = retrieve(function, queries, jobs=JOBS, output=Path(folder, "run.jsonl"))
    return run.query_ids.len() - run.failed
