"""Call a retriever directly: no retries and no timing; an error takes the place of its answer."""

import asyncio

from karat.live.protocol import Query


async def _answer(retriever, number, query, timeout):
    try:
        returned = await asyncio.wait_for(retriever.retrieve(Query(f"q{number}", query)), timeout)
        return retriever.parse(returned)
    except Exception as error:
        return error


def retrieve_together(retriever, *queries, jobs=4):
    """Run all queries at the same time; return one answer or exception per query."""

    async def run():
        await retriever.open(jobs)
        try:
            return await asyncio.gather(
                *(_answer(retriever, number, query, 20.0) for number, query in enumerate(queries))
            )
        finally:
            await retriever.close()

    return asyncio.run(run())


def retrieve_in_turn(retriever, *queries, timeouts=None):
    """Run one query after the other; `timeouts` has the seconds of queries that must time out."""

    async def run():
        await retriever.open(1)
        try:
            return [
                await _answer(retriever, number, query, (timeouts or {}).get(query, 20.0))
                for number, query in enumerate(queries)
            ]
        finally:
            await retriever.close()

    return asyncio.run(run())


def ids(answer):
    """Return the ids of an answer; raise it if it is an error."""
    if isinstance(answer, Exception):
        raise answer
    return [result.id for result in answer.results]
