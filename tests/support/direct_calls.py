"""The least that asks a retriever: no retries, no times, an exception stands for its answer."""

import asyncio

from karat.live.exchange import Question


def asked(retriever, *queries, jobs=4, timeout=20.0):
    """Return an answer or an exception for each query, asked at the same time."""

    async def one(question):
        try:
            return retriever.read(await asyncio.wait_for(retriever.ask(question), timeout))
        except Exception as error:
            return error

    async def everything():
        await retriever.open(jobs)
        try:
            questions = [Question(f"q{n}", query) for n, query in enumerate(queries)]
            return await asyncio.gather(*map(one, questions))
        finally:
            await retriever.close()

    return asyncio.run(everything())


def in_turn(retriever, *queries, timeout=20.0):
    """Return the same, asked one after the other."""

    async def everything():
        await retriever.open(1)
        found = []
        try:
            for n, query in enumerate(queries):
                try:
                    returned = await asyncio.wait_for(
                        retriever.ask(Question(f"q{n}", query)), timeout
                    )
                    found.append(retriever.read(returned))
                except Exception as error:
                    found.append(error)
        finally:
            await retriever.close()
        return found

    return asyncio.run(everything())


def ids(answer):
    """Return the ids of an answer; fail on an error with what it says."""
    if isinstance(answer, Exception):
        raise answer
    return [result.id for result in answer.results]
