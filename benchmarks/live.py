"""Running a retriever that only waits: all further time is overhead of what runs it."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

QUERIES, JOBS, TOP_K, SECONDS = 10_000, 64, 10, 0.005
SHORTEST = QUERIES * SECONDS / JOBS
"""Seconds that the waiting alone takes."""
NAME = f"{QUERIES:,} queries of {SECONDS * 1000:g} ms, {JOBS} at a time"


def wait_in_thread(_: str) -> list[str]:
    time.sleep(SECONDS)
    return [f"chunk-{rank}" for rank in range(TOP_K)]


async def wait_in_task(_: str) -> list[str]:
    await asyncio.sleep(SECONDS)
    return [f"chunk-{rank}" for rank in range(TOP_K)]


def texts() -> list[str]:
    return [f"query {number}" for number in range(QUERIES)]


def plain_tasks() -> int:
    """Start all queries with asyncio, with a semaphore as the limit."""

    async def main() -> int:
        semaphore = asyncio.Semaphore(JOBS)

        async def search(text: str) -> list[str]:
            async with semaphore:
                return await wait_in_task(text)

        return len(await asyncio.gather(*map(search, texts())))

    return asyncio.run(main())


def plain_threads() -> int:
    """Map the queries over a pool of threads."""
    with ThreadPoolExecutor(JOBS) as pool:
        return len(list(pool.map(wait_in_thread, texts())))


def karat(function: Any) -> int:
    """Run the same function with karat, which times each query and writes each result to disk."""
    from karat.live.retrieve import retrieve

    queries = {str(number): text for number, text in enumerate(texts())}
    with TemporaryDirectory() as folder:
        run = retrieve(function, queries, jobs=JOBS, output=Path(folder, "run.jsonl"))
    return run.query_ids.len() - run.failed
