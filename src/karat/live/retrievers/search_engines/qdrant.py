"""Qdrant: a collection on a server or in a local folder, by qdrant-client."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self
from urllib.parse import urlsplit

import msgspec

from karat.checks import did_you_mean
from karat.errors import InputError, printable
from karat.live.instrumentation import stage
from karat.live.protocol import Answer, AttemptError, Query, Retriever, Search
from karat.live.query_vectors import PROBE
from karat.live.redaction import Scrubber, mask_secrets, safe_url
from karat.live.retrievers.answers import Fields, first_line, parse_answer
from karat.live.retrievers.callables import qualified_name
from karat.live.retrievers.embedders import EmbeddingFunction
from karat.live.retrievers.http import expand_variables, find_proxy, parse_url
from karat.live.retrievers.search_engines.engine import (
    SearchEngine,
    check_dimension,
    engine_settings,
    missing_extra,
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

SEARCH_STAGE = "search"
"""The stage of the time that the engine takes."""
TIMEOUT = 600
"""Seconds after which the client gives up; `--timeout` ends an attempt earlier."""
_PAYLOAD = "payload"
_POINT_KEYS = ("id", "score", _PAYLOAD, "version", "order_value", "shard_key")
_FILTER_KEYS = ("key",)  # in a filter, the name of a field of the payload
_URL_SCHEMES = ("http://", "https://")
_MEMORY = ":memory:"


@dataclass(frozen=True)
class Qdrant(SearchEngine):
    """A collection of Qdrant, for `karat.retrieve`.

    Before a run, karat searches once, so that a wrong setting is one error. Requires
    `pip install 'karat[qdrant]'`.

    Parameters
    ----------
    location : str or QdrantClient
        The address of a server, `"http://localhost:6333"`; a folder of Qdrant's local mode,
        `"./storage"`; or a client.
    collection : str
        The name of the collection.
    embedder : callable or str, optional
        Embeds the queries: a function `texts -> array`; its name, `package.module:name`; the URL of
        an OpenAI-compatible server, `"https://host/v1"`; or `"wordllama"`.
        Required unless a template has no `{{vector}}`.
    vector : str, optional
        The name of the vectors to search, if the collection has named vectors: `"dense"`.
    filter : dict, str or Path, optional
        A filter of Qdrant as an object, JSON text or a file:
        `{"must": [{"key": "language", "match": {"value": "en"}}]}`.
    template : dict, str or Path, optional
        The body of the request to `points/query`, instead of the two options before, with the
        placeholders `{{query}}`, `{{vector}}`, `{{limit}}` and `{{prefetch_limit}}`:
        `{"query": "{{vector}}", "using": "dense", "limit": "{{limit}}"}`.
    embedding_model : str, optional
        The name of the model, for an embedder on a server.
    embedding_key_env : str, optional
        The environment variable with the key of this server. The key is never stored.

    Examples
    --------
    >>> from karat.live.retrievers import Qdrant
    >>> engine = Qdrant("http://localhost:6333", "faq", embedder="my_model:embed")

    `karat.retrieve(engine, gold, headers={"api-key": "env:QDRANT_API_KEY"})` runs it.
    """

    engine: ClassVar[str] = "qdrant"
    option_names: ClassVar[tuple[str, ...]] = ("vector", "filter", "template")

    location: Any
    collection: str
    embedder: str | EmbeddingFunction | None = None
    vector: str | None = None
    filter: Mapping[str, Any] | str | Path | None = None
    template: Mapping[str, Any] | str | Path | None = None
    embedding_model: str | None = None
    embedding_key_env: str | None = None

    @classmethod
    def from_address(cls, address: str, options: Mapping[str, Any]) -> Self:
        """Create the engine from `http://host:6333/COLLECTION` or `FOLDER/COLLECTION`."""
        location, _, collection = address.rstrip("/").rpartition("/")
        is_url = address.lower().startswith(_URL_SCHEMES)
        if is_url:
            parse_url(address)
        if not location or not collection or (is_url and location.count("/") < 2):
            raise missing_part(cls.engine, "collection")
        return cls(location, collection, **options)

    def bind(self, search: Search, fields: Fields, headers: Mapping[str, str]) -> Retriever:
        """Return a retriever, after one search that checks the settings."""
        retriever = _CollectionRetriever(self, search, fields, headers)
        retriever.check()
        return retriever

    def _json_template(self) -> JsonTemplate:
        refuse_with_template(self, ("vector", "filter"))
        if self.template is not None:
            return JsonTemplate.of(self.template, "template")
        body: dict[str, Any] = {"query": "{{vector}}", "limit": "{{limit}}"}
        if self.vector is not None:
            body["using"] = self.vector
        if self.filter is not None:
            body["filter"] = dict(parse_json(self.filter, "filter"))
        return JsonTemplate(body)


class _CollectionRetriever(Retriever):
    """Queries a collection in threads; the client is closed after the run if karat opened it."""

    is_async = False

    def __init__(
        self, engine: Qdrant, search: Search, fields: Fields, headers: Mapping[str, str]
    ) -> None:
        try:
            import qdrant_client  # noqa: F401
        except ImportError:
            raise missing_extra("Qdrant", "qdrant-client", "qdrant") from None
        result_fields(fields, engine.engine)
        self._engine = engine
        self._search = search
        self._fields = relative_to(_PAYLOAD, _POINT_KEYS, fields)
        self._template = engine._json_template()  # noqa: SLF001 - the same module
        self._headers = expand_variables(headers)
        self._scrub = Scrubber(
            word for value in self._headers.values() for word in (value, *value.split())
        )
        self.name = f"qdrant:{_shown_location(engine.location)}/{engine.collection}"
        self.accepts = accepted_settings(self._template.names)
        self._vectors = query_vectors(engine, self._template.names, "Qdrant")
        self.settings = engine_settings(
            engine,
            self._vectors,
            fields,
            headers,
            template=mask_secrets(self._template.content, public=_FILTER_KEYS),
        )
        self._lock = threading.Lock()
        self._client: Any = None

    def check(self) -> None:
        """Check the collection and search once; raise an InputError if the settings are wrong."""
        try:
            self._check_collection()
            self.parse(self.retrieve(Query("-", PROBE)))
        except AttemptError as error:
            # A server that is busy may answer later: the run tries again.
            if not error.retryable or error.kind in ("ConnectionError", "BadAnswer"):
                raise stopped_by(error, self.settings) from error
        finally:
            self._close()  # a local folder stays locked until then

    async def open(self, jobs: int) -> None:  # noqa: ARG002
        """Open the client; if that fails, the queries try again."""
        with suppress(AttemptError):
            await asyncio.to_thread(self._open_client)

    def retrieve(self, query: Query) -> Any:
        """Embed the query if the template needs its vector, and search."""
        vector = None if self._vectors is None else self._vectors(query.text)
        arguments = self._arguments(values_for(query.text, self._search, vector))
        client = self._open_client()
        with stage(SEARCH_STAGE):
            return self._call(
                client.query_points, collection_name=self._engine.collection, **arguments
            )

    def parse(self, response: Any) -> Answer:
        """Convert the points."""
        points = [
            {"id": point.id, "score": point.score, _PAYLOAD: point.payload or {}}
            for point in response.points
        ]
        return parse_answer({"results": points}, self._fields)

    async def close(self) -> None:
        """Close the client, unless the user opened it."""
        self._close()

    def _close(self) -> None:
        with self._lock:
            if self._client is not None and self._client is not self._engine.location:
                self._client.close()
            self._client = None

    def _open_client(self) -> Any:
        with self._lock:
            if self._client is None:
                location = self._engine.location
                is_client = not isinstance(location, (str, Path))
                self._client = location if is_client else self._connect(str(location))
            return self._client

    def _connect(self, location: str) -> Any:
        from qdrant_client import QdrantClient

        if location.lower().startswith(_URL_SCHEMES):
            parts = parse_url(location)
            if parts.username is not None or parts.password is not None:
                raise InputError(
                    "Qdrant accepts no user and password in the address",
                    field="retriever",
                    hint="send an API key: --header 'api-key: env:QDRANT_API_KEY' (headers=)",
                )
            return QdrantClient(
                url=location,
                headers=self._headers,
                timeout=TIMEOUT,
                check_compatibility=False,
                trust_env=find_proxy(parts) is not None or parts.scheme == "https",
            )
        if location == _MEMORY or not Path(location, "meta.json").is_file():
            problem = f"{printable(location)} is not a folder of Qdrant's local mode"
            if location == _MEMORY:
                problem = "a collection in memory exists only in the process that created it"
            raise InputError(
                problem,
                field="retriever",
                hint="write the folder of QdrantClient(path=…), the address of a server, "
                "http://localhost:6333/COLLECTION, or pass a client in Python: "
                "Qdrant(client, collection)",
            )
        return self._call(QdrantClient, path=location, force_disable_check_same_thread=True)

    def _check_collection(self) -> None:
        client, name = self._open_client(), self._engine.collection
        collections = [one.name for one in self._call(client.get_collections).collections]
        if name not in collections:
            listed = ", ".join(map(printable, sorted(collections)[:12]))
            raise InputError(
                f"the collection {name!r} was not found",
                field="retriever",
                hint=did_you_mean(name, collections) or f"its collections: {listed or 'none'}",
            )
        if self._engine.template is None:
            params = self._call(client.get_collection, collection_name=name).config.params.vectors
            self._check_vectors(params)

    def _check_vectors(self, params: Any) -> None:
        """Check the name and the dimension of the vectors; `params` are one or several by name."""
        name, collection = self._engine.vector, f"the collection {self._engine.collection!r}"
        by_name = dict(params) if isinstance(params, Mapping) else {"": params}
        if (name or "") not in by_name:
            names = ", ".join(map(repr, sorted(by_name)))
            wrong = "has no unnamed vectors" if name is None else f"has no vectors {name!r}"
            only_unnamed = not isinstance(params, Mapping)
            raise InputError(
                f"{collection} {wrong}",
                field="vector",
                hint="remove the option: its vectors have no name"
                if only_unnamed
                else f"set one of its vectors: {names} (--retriever-option vector=NAME)",
            )
        if by_name[name or ""] is not None:
            check_dimension(self._vectors, by_name[name or ""].size, collection)

    def _arguments(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of `query_points` for a request of the REST API."""
        from pydantic import ValidationError
        from qdrant_client import models

        try:
            request = models.QueryRequest.model_validate(self._template.fill(values))
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"] if part != "")
            raise AttemptError(
                "BadTemplate", f"{place}: {first['msg'].lower()}", retryable=False
            ) from error
        renamed = {
            "filter": "query_filter",
            "params": "search_params",
            "with_vector": "with_vectors",
            "shard_key": "shard_key_selector",
        }
        arguments = {name: getattr(request, name) for name in type(request).model_fields}
        return {renamed.get(n, n): value for n, value in arguments.items() if value is not None}

    def _call(self, function: Any, **arguments: Any) -> Any:
        """Call the client; its exceptions become failed attempts with short messages."""
        from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

        try:
            return function(**arguments)
        except UnexpectedResponse as error:
            status = error.status_code or 0
            raise AttemptError(
                f"HTTP {status}",
                self._safe_line(_reason(error.content)),
                retryable=status >= 500 or status == 429,
            ) from error
        except ResponseHandlingException as error:
            raise AttemptError(
                "ConnectionError", f"{self.name}: {self._safe_line(str(error))}"
            ) from error
        except (ValueError, RuntimeError) as error:  # what local mode raises
            raise AttemptError(
                "QdrantError", self._safe_line(str(error)), retryable=False
            ) from error

    def _safe_line(self, text: str) -> str:
        return first_line(self._scrub(text))


def _shown_location(location: Any) -> str:
    """Return a location without secrets; a client is shown by its class."""
    if not isinstance(location, (str, Path)):
        return qualified_name(location)
    text = str(location)
    return safe_url(text).rstrip("/") if urlsplit(text).netloc else text


def _reason(content: bytes) -> str:
    """Return the message of an error response, or its start."""
    try:
        return str(msgspec.json.decode(content)["status"]["error"])
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError):
        return content.decode(errors="replace") or "the server gave no reason"
