"""Search engines: their addresses and options, templates, embedders, and what engines answer."""

import builtins
from types import SimpleNamespace
from unittest.mock import patch

import psycopg
from qdrant_client import QdrantClient, models

from karat import retrieve
from karat.live.protocol import Search
from karat.live.retrievers import Elasticsearch, PgVector, Qdrant
from karat.live.retrievers.answers import Fields
from karat.live.retrievers.resolve import resolve_retriever
from karat.live.retrievers.search_engines import elasticsearch, pgvector
from messages.cases import Section
from messages.live_retrievers import recorded
from support import live_server
from support.live_server import serving
from support.recorded_search import (
    ANSWER,
    NO_INDEX,
    NO_QUERY,
    address,
    found,
    hit,
    playing,
)

SECTION = Section("live: search engines")
case = SECTION.case
QUERY = {"q1": "pay by card"}
ES = "elasticsearch:http://127.0.0.1:1/faq"
PG = "pgvector:postgresql://127.0.0.1:1/db?table=faq"


def embed(texts):
    return [[1.0, 2.0] for _ in texts]


def made(name, retriever, fields=(), **how):
    case(
        name,
        lambda: resolve_retriever(retriever, Search(), fields=Fields.of(fields), **how),
    )


# Addresses and options

made("the address of an engine has no index", "elasticsearch:http://localhost:9200")
made("an engine has an empty index", Elasticsearch("http://localhost:9200", ""))
made("the address of an engine has no collection", "qdrant:faq")
made("the address of a database has no table", "pgvector:postgresql://host/db", embedder=embed)
made("the address of a database is invalid", "pgvector:me:word@host/db?table=a", embedder=embed)
made("an option of an engine is misspelled", ES, options=["vectr=embedding"])
made("an option of an engine has no value", ES, options=["vector"])
made("an option of an engine is set twice", ES, options=["vector=a", "vector=b"])
made("an engine needs an embedder", ES, options=["vector=embedding"])
made("an embedder is not used", ES, embedder=embed)
made("an embedder is given to an HTTP retriever", "http://localhost/search", embedder=embed)
made("an embedding model is given to BM25", "bm25:docs.jsonl", embedding_model="m")
made("an embedding model is given without an embedder", ES, embedding_model="m")
made("options are given to a built-in retriever", "bm25:docs.jsonl", options=["k1=1"])
made("options are given to an object", Qdrant("x", "faq"), options=["vector=a"])
made("headers are given to pgvector", PG, headers={"X": "1"}, embedder=embed)
made("an engine has no field of a request", ES, fields=["query=q"])
made("a distance is misspelled", PG, options=["distance=cosin"], embedder=embed)
made("a template replaces an option", ES, options=["template={}", "vector=a"])


def without(package):
    """Return a context in which a package cannot be imported."""
    import_ = builtins.__import__

    def importing(name, *arguments, **options):
        if name.partition(".")[0] == package:
            raise ImportError(name)
        return import_(name, *arguments, **options)

    return patch.object(builtins, "__import__", importing)


def missing(name, package, spec):
    def provoke():
        with without(package):
            resolve_retriever(spec, Search(), fields=Fields.of(()))

    case(name, provoke)


missing("qdrant-client is not installed", "qdrant_client", "qdrant:x/faq")
missing("psycopg is not installed", "psycopg", PG)

# Templates


def template(name, text, spec=ES):
    made(name, spec, options={"template": text})


template("a template is not JSON", '{"query": {{query}}')
SECTION.file(
    "a template in a file is not JSON",
    lambda path: resolve_retriever(
        ES, Search(), fields=Fields.of(()), options=[f"template=@{path}"]
    ),
    "query.json",
    '{"size": {{limit}},\n "query": ',
)
template("a template has a number with too many digits", '{"size": ' + "1" * 5000 + "}")
template("a template is a list", '["{{query}}"]')
template("a template is neither text nor a path", 7)
template("a template has no query", {"query": {"match_all": {}}, "size": "{{limit}}"})
template("a template has no limit", {"query": "{{query}}", "size": 10})
template("a template has an unknown placeholder", {"query": "{{qeury}}", "size": "{{limit}}"})
template("a template has a vector in a text", {"query": "v={{vector}}", "size": "{{limit}}"})
SQL = "pgvector:postgresql://127.0.0.1:1/db"
template("an SQL template is not a query", "DELETE FROM faq WHERE id = {{query}}", SQL)
template(
    "an SQL template has quotes around a placeholder",
    "SELECT id FROM faq WHERE text = '{{query}}' LIMIT {{limit}}",
    SQL,
)

# Embedders


def embedder(name, function):
    made(name, ES, options=["vector=embedding"], embedder=function)


async def embed_later(texts):
    """Return too late."""


def failing(texts):
    raise OSError("no such model")


embedder("an embedder is not a function", 7)
embedder("an embedder is async", embed_later)
embedder("an embedder fails", failing)
embedder("an embedder returns one vector for all texts", lambda texts: [1.0, 2.0])
embedder("an embedder returns NaN", lambda texts: [[float("nan")]])


def later(name, function):
    """Add a case of an embedder that fails after the check before the run."""

    def provoke():
        with playing(ANSWER) as server:
            how = {"embedder": function, "retriever_options": ["vector=embedding"]}
            return recorded(retrieve(address(server), QUERY, fail_on_error=1, **how))

    case(name, provoke)


later("an embedder changes its dimension", lambda texts: [[1.0] * len(texts[0])])
later(
    "an embedder returns NaN for a query",
    lambda texts: [[float("nan") if text == QUERY["q1"] else 1.0] for text in texts],
)

# Elasticsearch, as a stub


def answered(name, *responses, **how):
    def provoke():
        with playing(*responses) as server:
            run = retrieve(address(server), QUERY, retries=0, fail_on_error=1, **how)
            return recorded(run)

    case(name, provoke, volatile=r"(?<=127\.0\.0\.1:)\d+")


answered("an index does not exist", NO_INDEX)
answered("a query is not known to the engine", NO_QUERY)
answered("a response has no hits", {"name": "node-1"})
answered("shards of an index failed", found(hit("refunds-1", 1.0), failed=1))
answered("a search timed out in the engine", found(hit("refunds-1", 1.0), timed_out=True))
answered("an engine fails in the run", ANSWER, NO_QUERY)
made("an engine is not running", ES)


def no_response():
    with serving(live_server.hanging) as server, patch.object(elasticsearch, "CHECK_TIMEOUT", 0.05):
        resolve_retriever(address(server), Search(), fields=Fields.of(()))


case("an engine does not respond", no_response)

# Qdrant


def client():
    local = QdrantClient(":memory:")
    size = models.VectorParams(size=3, distance=models.Distance.COSINE)
    local.create_collection("faq", vectors_config=size)
    local.create_collection("named", vectors_config={"dense": size})
    return local


def embed_three(texts):
    return [[1.0, 2.0, 3.0] for _ in texts]


def qdrant(name, location=None, collection="faq", function=embed_three, **settings):
    def provoke():
        engine = Qdrant(location or client(), collection, function, **settings)
        resolve_retriever(engine, Search(), fields=Fields.of(()))

    case(name, provoke)


qdrant("a collection does not exist", collection="fqa")
qdrant("a collection has another dimension", function=embed)
qdrant("a collection has no named vectors", vector="dense")
qdrant("a collection has only named vectors", collection="named")
qdrant("a filter has an unknown key", filter={"msut": []})
qdrant(
    "a template names other vectors",
    template={"query": "{{vector}}", "using": "no", "limit": "{{limit}}"},
)
qdrant("a collection in memory is named", ":memory:")
qdrant("a folder is not one of Qdrant", "nowhere")
qdrant("a server of Qdrant is not running", "http://127.0.0.1:1")
qdrant("the address of Qdrant has a password", "http://me:word@127.0.0.1:1")


def forbidden():
    with playing((403, {"status": {"error": "forbidden"}}), path="/collections") as server:
        engine = Qdrant(server.url.removesuffix("/search"), "faq", embed)
        resolve_retriever(engine, Search(), fields=Fields.of(()))


case("a server of Qdrant refuses the key", forbidden)

# pgvector, with a connection that answers as PostgreSQL does

COLUMNS = [
    ("id", "int4", "pg_catalog", -1),
    ("body", "text", "pg_catalog", -1),
    ("embedding", "vector", "public", 2),
]


class Connection:
    """A connection to a database with one table."""

    closed = False

    def __init__(self, columns, tables=()):
        self.columns, self.tables = columns, tables

    def execute(self, statement, parameters=None):
        if statement is pgvector._COLUMNS:
            return SimpleNamespace(fetchall=lambda: self.columns)
        if statement is pgvector._TABLES:
            return SimpleNamespace(fetchall=lambda: [(name,) for name in self.tables])
        raise psycopg.errors.UndefinedColumn('column "lang" does not exist')

    def close(self):
        self.closed = True


def table(name, connection, fields=(), function=embed, **settings):
    def provoke():
        engine = PgVector("postgresql://localhost/db", "faq", function, **settings)
        # Identifiers are quoted by the library of PostgreSQL, which needs no connection for this.
        as_string = patch.object(
            psycopg.sql.Identifier, "as_string", lambda self, context=None: str(self._obj)
        )
        with patch.object(psycopg, "connect", lambda *_, **__: connection), as_string:
            resolve_retriever(engine, Search(), fields=Fields.of(fields))

    case(name, provoke)


table("a table does not exist", Connection([], ["fqa", "notes"]))
table("a table has no vectors", Connection(COLUMNS[:2]))
table("a table has other vectors", Connection(COLUMNS), vector="vec")
table("a column has another dimension", Connection(COLUMNS), function=embed_three)
table("a field is not a column", Connection(COLUMNS), fields=["text=bdy"])
table("a filter is refused by the database", Connection(COLUMNS), filter="lang = 'en'")
made("a database is not running", PG, embedder=embed)
