"""Search engines by configuration.

Elasticsearch and OpenSearch are a stub (support.recorded_search), not live engines.
Real Qdrant in local mode and real PostgreSQL are in tests/integration/test_search_engines.py.
"""

import builtins
import json
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import karat
from karat.live.protocol import Search, StopRunError
from karat.live.query_vectors import QueryVectors
from karat.live.retrievers import Elasticsearch, OpenSearch, PgVector, Qdrant
from karat.live.retrievers.answers import Fields
from karat.live.retrievers.embedders import create_embedder
from karat.live.retrievers.resolve import resolve_retriever
from karat.live.retrievers.search_engines.pgvector import _shown_url
from support.errors import refused
from support.live_server import send, serving
from support.recorded_search import (
    ANSWER,
    NO_CREDENTIALS,
    NO_INDEX,
    WRONG_DIMENSION,
    address,
    error,
    found,
    hit,
    playing,
)

QUERIES = {"q1": 'Wie "lange"?\n“5 €”'}
SECRET = "s3cr3t-w0rd"


def embed(texts):
    return np.array([[0.5, float(len(text)), -1.0] for text in texts], dtype=np.float32)


@pytest.fixture
def my_model(monkeypatch):
    module = ModuleType("my_model")
    module.embed = embed
    monkeypatch.setitem(sys.modules, "my_model", module)
    return "my_model:embed"


# Elasticsearch and OpenSearch


def test_texts_are_searched_by_default_and_documents_are_mapped():
    with playing(ANSWER) as server:
        run = karat.retrieve(address(server), QUERIES, top_k=7)
    query = {"multi_match": {"query": QUERIES["q1"]}}
    assert server.requests[-1] == {"query": query, "size": 7}
    assert run.results.rows() == [
        ("q1", "refunds-2", 1.3862942, "refunds", 26, 42, "No cash refunds."),
        ("q1", "refunds-1", 0.9808292, "refunds", 0, 25, "Refunds take “five” days."),
    ]
    assert dict(run.timings.select("stage", "ms").rows())["reported"] == 3


def test_one_search_checks_the_settings_before_the_queries():
    with playing(ANSWER) as server:
        karat.retrieve(address(server), QUERIES)
    texts = [request["query"]["multi_match"]["query"] for request in server.requests]
    assert texts == ["karat", QUERIES["q1"]]


@pytest.mark.parametrize(
    ("engine", "body"),
    [
        (
            "elasticsearch",
            {
                "knn": {
                    "field": "embedding",
                    "query_vector": [0.5, 1.0, -1.0],
                    "k": 20,
                    "num_candidates": 100,
                    "filter": {"term": {"language": "en"}},
                },
                "size": 20,
                "_source": {"excludes": ["embedding"]},
            },
        ),
        (
            "opensearch",
            {
                "query": {
                    "knn": {
                        "embedding": {
                            "vector": [0.5, 1.0, -1.0],
                            "k": 20,
                            "filter": {"term": {"language": "en"}},
                        }
                    }
                },
                "size": 20,
                "_source": {"excludes": ["embedding"]},
            },
        ),
    ],
)
def test_vectors_are_searched_in_the_way_of_the_engine(engine, body, my_model):
    options = ["vector=embedding", 'filter={"term": {"language": "en"}}']
    with playing(ANSWER) as server:
        run = karat.retrieve(
            address(server, engine), {"q1": "x"}, embedder=my_model, retriever_options=options
        )
    assert server.requests[-1] == body
    assert set(run.timings["stage"]) == {"total", "embedding", "reported"}
    settings = run.settings["engine"]
    assert (settings["name"], settings["embedder"], settings["dimension"]) == (engine, my_model, 3)


def test_fields_and_a_filter_limit_the_search_for_texts():
    with playing(ANSWER) as server:
        engine = Elasticsearch(
            server.url.removesuffix("/search"),
            "faq",
            search_fields="title^2, text",
            filter={"exists": {"field": "text"}},
        )
        karat.retrieve(engine, {"q1": "x"})
    match = {"multi_match": {"query": "x", "fields": ["title^2", "text"]}}
    query = {"bool": {"must": [match], "filter": [{"exists": {"field": "text"}}]}}
    assert server.requests[-1]["query"] == query


def test_template_from_a_file_replaces_the_query(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("query.json").write_text(
        '{"query": {"match": {"text": "{{query}}"}}, "size": {{limit}}}', encoding="utf-8"
    )
    with playing(ANSWER) as server:
        run = karat.retrieve(
            address(server, "opensearch"), QUERIES, retriever_options=["template=@query.json"]
        )
    body = {"query": {"match": {"text": QUERIES["q1"]}}, "size": 20}
    assert server.requests[-1] == body
    assert run.settings["engine"]["template"]["size"] == "{{limit}}"


def test_paths_start_in_the_source_unless_they_name_a_key_of_the_hit():
    source = {"body": "Refunds", "meta": {"page": "p7", "from": 3}, "_id": "inner"}
    document = {**hit("refunds-1", 1.5), "_source": source, "fields": {"title": ["T"]}}
    with playing(found(document)) as server:
        for fields, expected in [
            (["text=body", "doc_id=meta.page", "start=meta.from"], ("refunds-1", "p7", "Refunds")),
            (["id=_source._id", "text=fields.title.0"], ("inner", None, "T")),
        ]:
            run = karat.retrieve(address(server), QUERIES, fields=fields)
            assert run.settings["fields"] == dict(pair.split("=") for pair in fields)
            row = run.results.row(0, named=True)
            assert (row["item_id"], row.get("doc_id"), row["text"]) == expected


def test_no_hits_are_an_empty_list():
    with playing(found()) as server:
        run = karat.retrieve(address(server), QUERIES)
    assert (run.failed, run.results.height) == (0, 0)


@pytest.mark.parametrize(
    ("response", "problem"),
    [
        (NO_INDEX, "HTTP 404: index_not_found_exception: no such index [faq]"),
        (NO_CREDENTIALS, "HTTP 401: security_exception: missing authentication credentials"),
        (WRONG_DIMENSION, "different dimension [2] than the index vectors [3]"),
        ({"name": "node", "tagline": "You Know, for Search"}, "BadAnswer: no value at 'hits.hits'"),
        (b"<html>", "BadAnswer: the response is not JSON"),
        ((400, b"<html>"), "HTTP 400: <html>"),
    ],
)
def test_wrong_settings_stop_before_a_file_is_written(response, problem, tmp_path):
    output = tmp_path / "run.jsonl"
    with (
        playing(response) as server,
        refused(path=None, line=None, field="retriever") as caught,
    ):
        karat.retrieve(address(server), QUERIES, output=output)
    assert problem in caught.value.problem
    assert len(server.requests) == 1
    assert not output.exists()


def test_refused_connection_stops_at_once():
    with refused(path=None, line=None, field="retriever") as caught:
        karat.retrieve("elasticsearch:http://127.0.0.1:1/faq", QUERIES)
    assert "ConnectionError: 127.0.0.1:1" in caught.value.problem


def test_engine_that_is_busy_is_tried_again_in_the_run():
    busy = error(429, "circuit_breaking_exception", "Data too large")
    with playing(busy, busy, ANSWER) as server:
        run = karat.retrieve(address(server), QUERIES)
    assert (run.failed, len(server.requests)) == (0, 3)


@pytest.mark.parametrize("partial", [{"timed_out": True}, {"failed": 1}])
def test_results_of_some_shards_are_a_failure(partial):
    with playing(found(hit("refunds-1", 1.0), **partial)) as server:
        run = karat.retrieve(address(server), QUERIES, retries=0, fail_on_error=1)
    assert run.errors["type"].to_list() == ["PartialResults"]


def test_failure_of_one_query_follows_the_usual_rules():
    with playing(ANSWER, WRONG_DIMENSION) as server:
        run = karat.retrieve(address(server), QUERIES, fail_on_error=1)
    kind, message, attempts = run.errors.select("type", "message", "attempts").row(0)
    assert (kind, attempts) == ("HTTP 400", 1)
    assert message.startswith("search_phase_execution_exception: all shards failed; query_shard")


SECRET_TEMPLATE = {"query": "{{query}}", "size": "{{limit}}", "ext": {"auth_token": SECRET}}


def with_secrets(server, output):
    """Run with a secret in the address, a header and the template."""
    host = server.host_and_port
    return karat.retrieve(
        f"elasticsearch:http://me:{SECRET}@{host}/faq?preference=_local&api_key={SECRET}",
        QUERIES,
        headers={"X-Key": "env:ES_KEY"},
        retriever_options={"template": SECRET_TEMPLATE},
        output=output,
    )


def test_secrets_are_sent_and_not_stored(monkeypatch, tmp_path):
    monkeypatch.setenv("ES_KEY", SECRET)
    with playing(ANSWER) as server:
        with_secrets(server, tmp_path / "run.jsonl")
    assert server.requests[-1]["ext"] == {"auth_token": SECRET}
    assert server.headers[-1]["X-Key"] == SECRET
    assert server.headers[-1]["Authorization"].startswith("Basic ")
    content = (tmp_path / "run.jsonl").read_text(encoding="utf-8")
    assert SECRET not in content
    settings = json.loads(content.partition("\n")[0])["settings"]
    assert settings["retriever"] == f"elasticsearch:http://{server.host_and_port}/faq"
    assert settings["engine"]["template"]["ext"] == {"auth_token": "***"}
    assert settings["engine"]["parameters"] == "preference=_local&api_key=***"
    assert settings["headers"] == ["X-Key"]


def test_secrets_that_the_engine_repeats_are_not_shown(monkeypatch, tmp_path):
    monkeypatch.setenv("ES_KEY", SECRET)
    refusal = error(400, "parsing_exception", f"cannot parse {SECRET}")
    with playing(refusal) as server, refused(path=None, line=None, field="retriever") as caught:
        with_secrets(server, tmp_path / "run.jsonl")
    assert caught.value.problem == "HTTP 400: parsing_exception: cannot parse ***"


def test_run_can_be_evaluated_directly():
    with playing(ANSWER) as server:
        engine = OpenSearch(server.url.removesuffix("/search"), "faq")
        gold = [{"query_id": "q1", "query": "refund", "relevant": ["refunds-1"]}]
        assert karat.evaluate(gold, engine, "RR")["RR"] == 0.5


def test_command_line_writes_a_run(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("queries.jsonl").write_text('{"query_id": "q1", "query": "refund"}\n', encoding="utf-8")
    Path("my_embedder.py").write_text(
        "def embed(texts):\n    return [[1.0, 2.0] for _ in texts]\n", encoding="utf-8"
    )
    words = ["--embedder", "my_embedder:embed", "--retriever-option", "vector=embedding"]
    with playing(ANSWER) as server:
        run = ["run", "queries.jsonl", "-r", address(server), *words, "-o", "run.jsonl", "--json"]
        code, _, errors = command(*run)
    assert code == 0, errors
    assert server.requests[-1]["knn"]["query_vector"] == [1.0, 2.0]
    assert karat.Run.read("run.jsonl").settings["source_sha256"]


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:word@host:5432/db", "postgresql://host:5432/db"),
        ("postgresql:///db?host=/tmp&password=word", "postgresql:///db?host=/tmp&password=***"),
        ("postgres://host/db?sslmode=require", "postgres://host/db?sslmode=require"),
    ],
)
def test_address_of_a_database_is_shown_without_the_password(url, shown):
    assert _shown_url(url) == shown


# Options


@pytest.mark.parametrize(
    ("retriever", "how", "field"),
    [
        ("elasticsearch:http://host:9200", {}, "retriever"),
        ("elasticsearch:localhost/faq", {}, None),
        (Elasticsearch("http://host:9200", ""), {}, "retriever"),
        ("qdrant:http://host:6333", {}, "retriever"),
        ("qdrant:faq", {}, "retriever"),
        ("pgvector:postgresql://host/db", {"embedder": embed}, "retriever"),
        ("pgvector:host/db?table=faq", {"embedder": embed}, "retriever"),
        ("pgvector:postgresql://host:x/db?table=faq", {"embedder": embed}, "retriever"),
        ("elasticsearch:http://host/faq", {"options": ["vectr=x"]}, "retriever option vectr"),
        ("elasticsearch:http://host/faq", {"options": ["vector"]}, "retriever option vector"),
        ("qdrant:x/faq", {"options": ["vector=a", "vector=b"]}, "retriever option vector"),
        ("elasticsearch:http://host/faq", {"options": ["vector=x"]}, "embedder"),
        ("elasticsearch:http://host/faq", {"embedder": embed}, "embedder"),
        ("elasticsearch:http://host/faq", {"body": {"x": 1}}, "body"),
        ("pgvector:postgresql://host/db?table=faq", {"headers": {"X": "1"}}, "header"),
        ("http://host/search", {"embedder": embed}, "embedder"),
        ("http://host/search", {"embedding_model": "m"}, "embedding_model"),
        ("elasticsearch:http://host/faq", {"embedding_model": "m"}, "embedding_model"),
        ("bm25:docs.jsonl", {"embedder": embed}, "embedder"),
        ("dense:docs.jsonl", {"options": ["vector=x"]}, "retriever option"),
        (Qdrant("x", "faq"), {"options": ["vector=x"]}, "retriever option"),
        (
            PgVector("postgresql://host/db", "faq", embed, template="SELECT {{query}} {{limit}}"),
            {},
            "template",
        ),
    ],
)
def test_wrong_options_are_refused_without_a_connection(retriever, how, field):
    with refused(path=None, line=None, field=field):
        resolve_retriever(retriever, Search(), fields=Fields.of(()), **how)


@pytest.mark.parametrize("spec", ["elasticsearch:http://h/faq", "qdrant:x/faq"])
def test_names_of_a_request_cannot_be_mapped(spec):
    with refused(path=None, line=None, field="field query=q"):
        resolve_retriever(spec, Search(), fields=Fields.of(["query=q"]))


@pytest.mark.parametrize(
    ("spec", "package", "extra"),
    [
        ("elasticsearch:http://h/faq", "aiohttp", "karat[live]"),
        ("qdrant:x/faq", "qdrant_client", "karat[qdrant]"),
        ("pgvector:postgresql://h/db?table=t", "psycopg", "karat[pgvector]"),
    ],
)
def test_missing_extra_is_one_message_with_the_command(spec, package, extra, monkeypatch):
    import_ = builtins.__import__

    def without_package(name, *arguments, **options):
        if name.partition(".")[0] == package:
            raise ImportError(name)
        return import_(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without_package)
    with refused(path=None, line=None, field=None) as caught:
        resolve_retriever(spec, Search(), fields=Fields.of(()))
    assert caught.value.hint == f"pip install '{extra}'"


# Embedders


def query_vectors(embedder):
    return QueryVectors(create_embedder(embedder, None, None))


@pytest.mark.parametrize(
    "vectors",
    [
        [1.0, 2.0],
        [[1.0], [2.0]],
        [["a"]],
        [[]],
        None,
        [[1.0, float("nan")]],
        [[1.0, float("inf")]],
        [[1.0], [2.0, 3.0]],
    ],
)
def test_embedder_with_a_wrong_shape_is_refused(vectors):
    with refused(path=None, line=None, field="embedder"):
        query_vectors(lambda texts: vectors)


def test_embedder_that_fails_or_is_no_function_is_refused():
    async def later(texts):
        return [[1.0]]

    def failing(texts):
        raise OSError("no such model")

    for embedder in (failing, later, 7, "my_model_nowhere:embed"):
        with refused(path=None, line=None, field="embedder"):
            query_vectors(embedder)


def test_vector_with_another_dimension_is_an_error_of_the_embedder():
    vectors = query_vectors(lambda texts: [[1.0] * len(texts[0])])
    assert vectors("abcde") == [1.0] * 5
    with refused(StopRunError, path=None, line=None, field="embedder"):
        vectors("abcdef")


@pytest.mark.parametrize("is_spec", [True, False])
def test_queries_are_embedded_by_a_server(is_spec, monkeypatch):
    monkeypatch.setenv("TEST_KEY", SECRET)

    def respond(handler, request):
        data = [{"embedding": vector.tolist()} for vector in embed(request["input"])]
        send(handler, json.dumps({"data": data}).encode())

    with serving(respond) as model, playing(ANSWER) as server:
        url = model.url.removesuffix("/search") + "/v1"
        embedding = {"embedder": url, "embedding_model": "m", "embedding_key_env": "TEST_KEY"}
        if is_spec:
            options = ["vector=embedding"]
            run = karat.retrieve(
                address(server), {"q1": "abc"}, retriever_options=options, **embedding
            )
        else:
            engine = Elasticsearch(
                server.url.removesuffix("/search"), "faq", vector="embedding", **embedding
            )
            run = karat.retrieve(engine, {"q1": "abc"})
    assert server.requests[-1]["knn"]["query_vector"] == [0.5, 3.0, -1.0]
    assert {headers["Authorization"] for headers in model.headers} == {f"Bearer {SECRET}"}
    stored = run.settings["engine"]
    assert (stored["embedder"], stored["embedding_model"]) == (f"{url}/embeddings", "m")
    assert SECRET not in json.dumps(run.settings)


def test_queries_are_embedded_by_wordllama():
    pytest.importorskip("wordllama")
    with playing(ANSWER) as server:
        run = karat.retrieve(
            address(server),
            {"q1": "abc"},
            embedder="wordllama",
            retriever_options=["vector=embedding"],
        )
    assert len(server.requests[-1]["knn"]["query_vector"]) == 256
    assert run.settings["engine"]["dimension"] == 256


def test_vector_keeps_the_exact_values_of_the_array():
    vectors = query_vectors(embed)
    assert vectors("x" * 3) == embed(["xxx"])[0].astype(float).tolist()


# Qdrant behind HTTP: only how errors of a server are read


def test_error_of_a_qdrant_server_is_shown_without_secrets(monkeypatch):
    monkeypatch.setenv("QDRANT_KEY", SECRET)
    content = {"status": {"error": f"forbidden: {SECRET}"}, "time": 0.1}
    with playing((403, content), path="/collections") as server:
        location = server.url.removesuffix("/search")
        with refused(path=None, line=None, field="retriever") as caught:
            karat.retrieve(
                Qdrant(location, "faq", embed), QUERIES, headers={"api-key": "env:QDRANT_KEY"}
            )
        assert server.headers[0]["api-key"] == SECRET
    assert caught.value.problem == "HTTP 403: forbidden: ***"
