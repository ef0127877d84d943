"""Elasticsearch and OpenSearch: a query template that is posted to `INDEX/_search`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self
from urllib.parse import quote

import msgspec

from karat.live.protocol import Answer, AttemptError, Query, Retriever, Search
from karat.live.query_vectors import PROBE
from karat.live.redaction import mask_secrets, safe_url
from karat.live.retrievers.answers import Fields
from karat.live.retrievers.embedders import EmbeddingFunction
from karat.live.retrievers.http import HttpRetriever, Reply, parse_url
from karat.live.retrievers.search_engines.engine import (
    SearchEngine,
    engine_settings,
    missing_part,
    query_vectors,
    refuse_with_template,
    relative_to,
    result_fields,
    stopped_by,
)
from karat.live.retrievers.search_engines.template import (
    JsonTemplate,
    accepted_settings,
    parse_json,
    values_for,
)

CHECK_TIMEOUT = 60.0
"""Seconds that the search before a run may take."""
_SOURCE_KEY = "_source"
# The keys of a hit next to the document; a path of --field that starts with another is in _source.
_HIT_KEYS = (
    *("_id", "_index", "_score", _SOURCE_KEY, "fields", "highlight", "inner_hits", "sort"),
    *("_explanation", "_ignored", "_routing", "_version", "matched_queries"),
)
_PATHS = {"results": "hits.hits", "latency_ms": "took"}


@dataclass(frozen=True)
class Elasticsearch(SearchEngine):
    """An index of Elasticsearch, for `karat.retrieve`.

    Without `vector` and `template`, the texts of the documents are searched (`multi_match`). Before
    a run, karat searches once, so that a wrong setting is one error.

    Parameters
    ----------
    url : str
        The address of the server: `"http://localhost:9200"`. A user and password in it are sent as
        basic authentication.
    index : str
        The name of an index, an alias or a pattern: `"faq"`, `"faq-*"`.
    embedder : callable or str, optional
        Embeds the queries: a function `texts -> array`; its name, `package.module:name`; the URL of
        an OpenAI-compatible server, `"https://host/v1"`; or `"wordllama"`.
        Required for `vector` and for a template with `{{vector}}`.
    vector : str, optional
        The field with the vectors of the documents: `"embedding"`. Without it, texts are searched.
    search_fields : str or sequence of str, optional
        The fields to search for the text of the query, with commas between them or as a list:
        `"title^2,body"`. Default: all fields.
    filter : dict, str or Path, optional
        A condition for the documents, in the query language of the engine, as an object, JSON text
        or a file: `{"term": {"language": "en"}}`.
    template : dict, str or Path, optional
        The body of the request, instead of the three options before, with the placeholders
        `{{query}}`, `{{vector}}`, `{{limit}}` and `{{prefetch_limit}}`:
        `{"query": {"match": {"text": "{{query}}"}}, "size": "{{limit}}"}`.
    embedding_model : str, optional
        The name of the model, for an embedder on a server.
    embedding_key_env : str, optional
        The environment variable with the key of this server. The key is never stored.

    Examples
    --------
    >>> from karat.live.retrievers import Elasticsearch
    >>> engine = Elasticsearch("http://localhost:9200", "faq", search_fields="title^2,body")

    `karat.retrieve(engine, gold, fields=["text=body"])` runs it.
    """

    engine: ClassVar[str] = "elasticsearch"
    option_names: ClassVar[tuple[str, ...]] = ("vector", "search_fields", "filter", "template")

    url: str
    index: str
    embedder: str | EmbeddingFunction | None = None
    vector: str | None = None
    search_fields: str | Sequence[str] | None = None
    filter: Mapping[str, Any] | str | Path | None = None
    template: Mapping[str, Any] | str | Path | None = None
    embedding_model: str | None = None
    embedding_key_env: str | None = None

    @classmethod
    def from_address(cls, address: str, options: Mapping[str, Any]) -> Self:
        """Create the engine from `http://host:9200/INDEX`; parameters of the URL are kept."""
        url, question_mark, parameters = address.partition("?")
        parse_url(url)
        server, _, index = url.rstrip("/").rpartition("/")
        if server.count("/") < 2:
            raise missing_part(cls.engine, "index")
        return cls(server + question_mark + parameters, index, **options)

    def bind(self, search: Search, fields: Fields, headers: Mapping[str, str]) -> Retriever:
        """Return a retriever, after one search that checks the settings."""
        retriever = _IndexRetriever(self, search, fields, headers)
        retriever.check()
        return retriever

    def _json_template(self) -> JsonTemplate:
        refuse_with_template(self, ("vector", "search_fields", "filter"))
        if self.template is not None:
            return JsonTemplate.of(self.template, "template")
        condition = None if self.filter is None else dict(parse_json(self.filter, "filter"))
        if self.vector is None:
            return JsonTemplate(self._text_query(condition))
        body = self._vector_query(self.vector, condition)
        return JsonTemplate(body | {"_source": {"excludes": [self.vector]}})

    def _text_query(self, condition: dict[str, Any] | None) -> dict[str, Any]:
        match: dict[str, Any] = {"query": "{{query}}"}
        if self.search_fields is not None:
            fields = self.search_fields
            names = fields.split(",") if isinstance(fields, str) else fields
            match["fields"] = [name.strip() for name in names]
        query: dict[str, Any] = {"multi_match": match}
        if condition is not None:
            query = {"bool": {"must": [query], "filter": [condition]}}
        return {"query": query, "size": "{{limit}}"}

    def _vector_query(self, vector: str, condition: dict[str, Any] | None) -> dict[str, Any]:
        knn: dict[str, Any] = {
            "field": vector,
            "query_vector": "{{vector}}",
            "k": "{{limit}}",
            "num_candidates": "{{prefetch_limit}}",
        }
        if condition is not None:
            knn["filter"] = condition
        return {"knn": knn, "size": "{{limit}}"}


@dataclass(frozen=True)
class OpenSearch(Elasticsearch):
    """An index of OpenSearch, for `karat.retrieve`.

    The parameters are those of `Elasticsearch`. Only the query for vectors differs.

    Examples
    --------
    >>> from karat.live.retrievers import OpenSearch
    >>> engine = OpenSearch(
    ...     "http://localhost:9200", "faq", vector="embedding", embedder="my_model:embed"
    ... )
    """

    engine: ClassVar[str] = "opensearch"

    def _vector_query(self, vector: str, condition: dict[str, Any] | None) -> dict[str, Any]:
        knn: dict[str, Any] = {"vector": "{{vector}}", "k": "{{limit}}"}
        if condition is not None:
            knn["filter"] = condition
        return {"query": {"knn": {vector: knn}}, "size": "{{limit}}"}


class _IndexRetriever(HttpRetriever):
    """Posts the filled template to an index."""

    def __init__(
        self,
        engine: Elasticsearch,
        search: Search,
        fields: Fields,
        headers: Mapping[str, str],
    ) -> None:
        if not engine.index:
            raise missing_part(engine.engine, "index")
        result_fields(fields, engine.engine, also=("results", "latency_ms", "calls"))
        self._template = engine._json_template()  # noqa: SLF001 - the same module
        self._vectors = query_vectors(engine, self._template.names, engine.engine)
        self._search_settings = search
        paths = Fields({**_PATHS, **relative_to(_SOURCE_KEY, _HIT_KEYS, fields).paths})
        server, question_mark, parameters = engine.url.partition("?")
        address = f"{server.rstrip('/')}/{quote(engine.index, safe='*,-_.<>')}"
        url = f"{address}/_search{question_mark}{parameters}"
        super().__init__(url, search, paths, headers, self._template.content)
        self.name = f"{engine.engine}:{safe_url(address)}"
        self.accepts = accepted_settings(self._template.names)
        self.settings = engine_settings(
            engine,
            self._vectors,
            fields,
            headers,
            template=mask_secrets(self._template.content),
            parameters=safe_url(url).partition("?")[2],
        )

    def check(self) -> None:
        """Search once; raise an InputError if the settings are wrong."""

        async def search_once() -> None:
            await self.open(1)
            try:
                async with asyncio.timeout(CHECK_TIMEOUT):
                    self.parse(await self.retrieve(Query("-", PROBE)))
            except TimeoutError:
                raise AttemptError(
                    "Timeout", f"no response within {CHECK_TIMEOUT:g} s", retryable=False
                ) from None
            finally:
                await self.close()

        try:
            # In a thread, because a notebook already has an event loop in this one.
            with ThreadPoolExecutor(1) as executor:
                executor.submit(asyncio.run, search_once()).result()
        except AttemptError as error:
            # An engine that is busy may answer later: the run tries again.
            if not error.retryable or error.kind in ("ConnectionError", "BadAnswer"):
                raise stopped_by(error, self.settings) from error

    async def retrieve(self, query: Query) -> Reply:
        """Embed the query if the template needs its vector, and search."""
        vector = None
        if self._vectors is not None:
            vector = await asyncio.to_thread(self._vectors, query.text)
        return await self._exchange(*self._request(query.text, vector))

    def _request(self, text: str, vector: list[float] | None = None) -> tuple[str, bytes]:
        values = values_for(text, self._search_settings, vector)
        return self._url, msgspec.json.encode(self._template.fill(values))

    def parse(self, response: Any) -> Answer:
        """Convert a response; results of only some of the shards are a failed attempt."""
        answer = super().parse(response)
        content = msgspec.json.decode(response.body, type=_SearchResponse)
        if content.timed_out or content.shards.failed:
            problem = f"{content.shards.failed} of {content.shards.total} shards failed"
            if content.timed_out:
                problem = "the search timed out in the engine"
            raise AttemptError("PartialResults", f"the results are not complete: {problem}")
        return answer

    def _reason(self, reply: Reply) -> str:
        """Return the types and reasons of an error response, or else its start."""
        try:
            error = msgspec.json.decode(reply.body, type=_ErrorResponse).error
        except (msgspec.DecodeError, UnicodeDecodeError):
            return super()._reason(reply)
        causes = [error, *error.root_cause[:1]]
        while causes[-1].caused_by is not None:
            causes.append(causes[-1].caused_by)
        texts = [f"{cause.type}: {cause.reason or 'no reason'}" for cause in causes if cause.type]
        return self._safe_line("; ".join(dict.fromkeys(texts))) or super()._reason(reply)


class _Cause(msgspec.Struct):
    type: str | None = None
    reason: str | None = None
    root_cause: list[_Cause] = []
    caused_by: _Cause | None = None


class _ErrorResponse(msgspec.Struct):
    error: _Cause


class _Shards(msgspec.Struct):
    total: int = 0
    failed: int = 0


class _SearchResponse(msgspec.Struct):
    timed_out: bool = False
    shards: _Shards = msgspec.field(default_factory=_Shards, name="_shards")
