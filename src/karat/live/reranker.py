"""Rerank what a retriever returns: a reranker scores the first items again.

What is in this file:

- `RerankingRetriever` wraps any retriever. It keeps the list before reranking as `candidates`.
- `create_reranker` makes the reranker from a function, a name `package.module:name`, or a URL.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from time import perf_counter_ns
from typing import Any

import msgspec

from karat.data.formats.mismatches import Mismatch
from karat.data.formats.native_run import ResultRow
from karat.errors import InputError, counted
from karat.live.instrumentation import stage
from karat.live.protocol import Answer, AttemptError, Query, Retriever, Search, TimedResponse
from karat.live.retrievers.callables import qualified_name
from karat.live.retrievers.endpoint import JsonEndpoint
from karat.live.retrievers.resolve import import_object

Reranker = Callable[[str, list[str]], Iterable[float]]
"""Takes a query and the texts of items, and returns one score per text; higher is better."""


class RerankingRetriever(Retriever):
    """Wraps a retriever and reranks the first items of each list.

    Items that are not reranked follow in their order, without a score, because the scores of the
    retriever and of the reranker do not compare.
    """

    def __init__(
        self,
        retriever: Retriever,
        reranker: Reranker,
        settings: Mapping[str, Any],
        search: Search,
    ) -> None:
        self.name = retriever.name
        self.is_async = retriever.is_async
        self.accepts = (retriever.accepts - {"score_threshold"}) | {"rerank_top_n"}
        self.settings = {**retriever.settings, **settings}
        self._retriever = retriever
        self._rerank = reranker
        self._count = search.rerank_top_n
        self._has_threshold = search.score_threshold is not None

    def retrieve(self, query: Query) -> Any:
        """Run the retriever, then the reranker."""
        if self.is_async:
            return self._retrieve_async(query)
        response = self._retriever.retrieve(query)
        return self._reranked(query, response)

    async def _retrieve_async(self, query: Query) -> Any:
        response = await self._retriever.retrieve(query)
        # In a thread, because a reranker that computes would block the other queries.
        return await asyncio.to_thread(self._reranked, query, response)

    def parse(self, response: Any) -> Answer:
        """Return the answer, which was already parsed for the reranker."""
        answer = response.response if isinstance(response, TimedResponse) else response
        assert isinstance(answer, Answer)
        return answer

    async def open(self, jobs: int) -> None:
        """Open the wrapped retriever."""
        await self._retriever.open(jobs)

    async def close(self) -> None:
        """Close the wrapped retriever."""
        await self._retriever.close()

    def _reranked(self, query: Query, response: Any) -> Any:
        answer = self._retriever.parse(response)
        start_ns = perf_counter_ns()
        with stage("rerank"):
            results = rerank(self._rerank, query.text, answer.results, self._count)
        if self._has_threshold:  # an item without a score of the reranker is below any threshold
            results = results[: self._count]
        reranked = replace(answer, results=results, candidates=answer.results)
        if isinstance(response, TimedResponse):
            end_ns = response.end_ns + perf_counter_ns() - start_ns
            return TimedResponse(reranked, response.start_ns, end_ns)
        return reranked


def rerank(
    reranker: Reranker, query: str, results: Sequence[ResultRow], count: int
) -> list[ResultRow]:
    """Order the first `count` results by the reranker; equal scores keep their order."""
    first = list(results[:count])
    texts: list[str] = []
    for position, result in enumerate(first):
        if result.text is None:
            raise AttemptError(
                "BadAnswer",
                f"results[{position}] has no text, which the reranker needs; return the texts of "
                "the items",
                retryable=False,
            )
        texts.append(result.text)
    scores = _checked_scores(reranker(query, texts) if texts else [], len(texts))
    order = sorted(range(len(first)), key=lambda position: -scores[position])
    reranked = [msgspec.structs.replace(first[i], score=scores[i]) for i in order]
    rest = [msgspec.structs.replace(result, score=None) for result in results[count:]]
    return reranked + rest


def _checked_scores(returned: Any, count: int) -> list[float]:
    try:
        scores = [float(score) for score in returned]
    except (TypeError, ValueError):
        scores = []
    if len(scores) != count or not all(map(math.isfinite, scores)):
        raise AttemptError(
            "BadAnswer",
            f"the reranker must return {counted(count, 'number')}, one per text, got "
            f"{_describe(returned)}",
            retryable=False,
        )
    return scores


def _describe(returned: Any) -> str:
    try:
        return f"{type(returned).__name__} of length {len(returned)}"
    except TypeError:
        return f"an object of type {type(returned).__name__}"


def search_before_reranking(search: Search) -> Search:
    """Return the settings for the retriever: enough items to rerank, and no threshold yet."""
    return replace(
        search,
        top_k=max(search.top_k, search.rerank_top_n),
        score_threshold=None,
        explicit=search.explicit - {"score_threshold", "rerank_top_n"},
    )


class _Relevance(msgspec.Struct):
    """The score of one text in the answer of a server."""

    index: int
    relevance_score: float


class _RerankAnswer(msgspec.Struct):
    """The answer of a server."""

    results: list[_Relevance]


class HttpReranker:
    """A server with the API of Cohere, Jina and vLLM: POST {"query": …, "documents": […]}."""

    def __init__(self, url: str, model: str | None, key_env: str | None) -> None:
        self._endpoint = JsonEndpoint(url, key_env, "reranker")
        self._model = {} if model is None else {"model": model}
        self.name = self._endpoint.name

    def __call__(self, query: str, texts: list[str]) -> list[float]:
        """Return one score per text."""
        response = self._endpoint.post({**self._model, "query": query, "documents": texts})
        try:
            answer = msgspec.convert(response, _RerankAnswer)
        except msgspec.ValidationError as error:
            raise AttemptError(
                "BadAnswer",
                f"{self.name} returned no scores: {Mismatch.of(error, response)}",
                retryable=False,
            ) from error
        scores = {one.index: one.relevance_score for one in answer.results}
        return [scores[number] for number in range(len(texts)) if number in scores]


def create_reranker(
    reranker: str | Reranker, model: str | None, key_env: str | None
) -> tuple[Reranker, dict[str, Any]]:
    """Return a reranker and its settings for the header of a run; a class is called once."""
    if isinstance(reranker, str) and reranker.lower().startswith(("http://", "https://")):
        server = HttpReranker(reranker, model, key_env)
        return server, {"reranker": server.name, "reranker_model": model}
    for name, value in {"reranker_model": model, "reranker_key_env": key_env}.items():
        if value is not None:
            raise InputError(
                "only a reranker on a server has this option",
                field=name,
                hint="remove the option, or set the reranker to a URL: https://host/v1/rerank",
            )
    name = reranker if isinstance(reranker, str) else qualified_name(reranker)
    target: Any = import_object(reranker, "reranker") if isinstance(reranker, str) else reranker
    if isinstance(target, type):
        target = target()
    if not callable(target):
        raise InputError(
            f"the reranker must be callable, got an object of type {type(target).__name__}",
            field="reranker",
            hint="pass a function that takes the query and a list of texts, and returns one score "
            "per text",
        )
    return target, {"reranker": name}
